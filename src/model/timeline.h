// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/source_ref.h"
#include "base/string_table.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

inline constexpr uint32_t kNoIndex = 0xffffffffu;

// What a GPU is busy with. Everything that is not a copy, a memset or communication is compute.
enum class GpuWork : uint8_t { compute, communication, copy, memset };

// One kernel, copy or memset. There are millions of these, so the struct stays at 32 bytes.
struct GpuEvent {
  int64_t start_ns = 0, end_ns = 0;
  StringId name{};                 // in Timeline::names
  uint32_t launch = kNoIndex;      // the host call that issued it, in Timeline::launches
  uint32_t collective = kNoIndex;  // its first operation in Timeline::collectives
  uint16_t stream = 0;             // in Timeline::streams
  GpuWork work = GpuWork::compute;
};

struct GpuStream {
  int32_t device = -1;
  int64_t id = -1;
};

// A host call that put work on a stream.
struct Launch {
  int64_t start_ns = 0;
  uint32_t duration_ns = 0;
  uint32_t thread = 0;  // in Timeline::threads
};

// A stretch of the host that means something by itself.
enum class HostWork : uint8_t {
  annotation,    // record_function of the user or of a library
  data_loading,  // the loop waits for the next batch
  device_wait,   // the host waits for the GPU: cudaStreamSynchronize, cudaDeviceSynchronize
};

struct HostRange {
  int64_t start_ns = 0, end_ns = 0;
  StringId name{};
  uint32_t thread = 0;
  HostWork work = HostWork::annotation;
};

// One iteration of the training loop as the profiler marks it (ProfilerStep#N).
struct TrainingStep {
  int64_t number = 0;
  int64_t start_ns = 0, end_ns = 0;
};

// One communication operation. Several may share one kernel (a coalesced group): they stand side by side, each with the
// same gpu_event.
struct TraceCollective {
  GroupIndex group = GroupIndex::none;
  OpKind kind = OpKind::unknown;
  DataType type = DataType::unknown;
  bool coalesced = false;  // shares its kernel with its neighbours
  GroupRank peer;          // of a send or recv, or the root
  int32_t group_size = -1;
  int64_t seq = -1;  // the framework's number, -1 where the trace has none
  int64_t in_elements = -1, out_elements = -1;
  int64_t enter_ns = kNoTime;     // the host issued it
  uint32_t gpu_event = kNoIndex;  // in Timeline::gpu; kNoIndex where no kernel was recorded
};

// Floating-point work that the recorded operand shapes of a matrix operation tell.
struct MatrixWork {
  int64_t start_ns = 0;
  double flops = 0;
};

// The gradient of one parameter became ready: the backward pass, in its order, and the parameter's size.
struct GradientReady {
  int64_t ns = 0;
  int64_t elements = 0;
  uint32_t thread = 0;  // the backward pass has a thread of its own
  DataType type = DataType::unknown;
};

// The caching allocator's state. `allocated` is what tensors hold, `reserved` what was taken from the device.
struct MemorySample {
  int64_t ns = 0;
  int64_t allocated = 0, reserved = 0;
};

struct DeviceProperties {
  int32_t id = -1;
  std::string name;
  int64_t memory_bytes = -1;
  int32_t compute_major = -1, compute_minor = -1;
  int32_t multiprocessors = -1;
};

// What a profiler trace of one rank becomes: who worked when, on the device and as far as needed on the host. All times
// are wall-clock ns of that rank's host. gpu, launches, ranges, steps and collectives (by enter) are sorted by start.
struct Timeline {
  uint32_t speaker = 0;  // index into Fragment::speakers, later into Incident::processes
  Rank rank;             // filled by the assembly
  FileId file{};
  bool cut = false;                              // the file ended early
  int64_t begin_ns = kNoTime, end_ns = kNoTime;  // first and last moment of anything recorded
  StringTable names;
  std::vector<DeviceProperties> devices;
  std::vector<GpuStream> streams;
  std::vector<int64_t> threads;  // thread ids
  std::vector<GpuEvent> gpu;
  std::vector<Launch> launches;
  std::vector<HostRange> ranges;
  std::vector<TrainingStep> steps;
  std::vector<TraceCollective> collectives;
  std::vector<MatrixWork> matrix_work;
  std::vector<GradientReady> gradients;
  std::vector<MemorySample> memory;  // thinned out on long traces; peaks are kept
  int64_t out_of_memory_ns = kNoTime;
  std::string nccl_version;
  std::string framework;  // "PyTorch", "Nsight Systems"

  int32_t DeviceOf(const GpuEvent& event) const { return streams[event.stream].device; }
  // The device that did most of the work; its properties, or nothing where the trace has none.
  int32_t MainDevice() const;
  const DeviceProperties* PropertiesOf(int32_t device) const;
};

}  // namespace tacet
