// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "nsys_database.h"
#include "nsys_payload.h"

namespace tacet {

// A serialised process or thread: the process id in bits 24 to 47, the thread id in the lowest 24.
inline int64_t NsysPid(int64_t global) { return global >> 24 & 0xffffff; }
inline int64_t NsysTid(int64_t global) { return global & 0xffffff; }

enum class NsysGpuKind : uint8_t { kernel, copy, memset, graph };

// Work of a device. Times are ns since the session began.
struct NsysGpuRecord {
  NsysGpuKind kind = NsysGpuKind::kernel;
  int64_t start_ns = 0, end_ns = 0;
  int64_t device = -1, stream = -1, correlation = -1, pid = -1;
  std::string_view name;  // demangled where the export has it
};

// A CUDA call of the host.
struct NsysRuntimeRecord {
  int64_t start_ns = 0, end_ns = 0;
  int64_t correlation = -1, pid = -1, tid = -1;
  std::string_view name;  // "cudaLaunchKernel_v7000"
};

// A range that the program or NCCL marked.
struct NsysRangeRecord {
  int64_t start_ns = 0, end_ns = 0, pid = -1, tid = -1;
  std::string_view text;
  NsysNcclArguments nccl;  // filled where the payload tells
};

struct NsysDeviceRecord {
  int64_t pid = -1;  // -1: of any process
  int64_t cuda_id = -1, gpu_id = -1;
  std::string_view name;
  int64_t memory_bytes = -1, compute_major = -1, compute_minor = -1, multiprocessors = -1;
};

// Takes records as they are found. Views are valid during the call only.
class NsysSink {
 public:
  virtual ~NsysSink() = default;
  virtual void OnSessionStart(int64_t utc_ns) = 0;
  virtual void OnHost(std::string_view name) = 0;
  virtual void OnDevice(const NsysDeviceRecord& device) = 0;
  virtual void OnRuntime(const NsysRuntimeRecord& call) = 0;
  virtual void OnGpu(const NsysGpuRecord& work) = 0;
  virtual void OnRange(const NsysRangeRecord& range) = 0;
};

struct NsysReading {
  bool has_kernels = false, has_ranges = false, has_session_start = false;
  uint64_t odd_rows = 0;     // rows with times that cannot be
  uint64_t value_bytes = 0;  // about what the values that were read take in the file
};

// Reads an export of Nsight Systems: strings first, then what describes the machine, then calls, work and ranges.
NsysReading ParseNsys(NsysDatabase& database, NsysSink& sink);

}  // namespace tacet
