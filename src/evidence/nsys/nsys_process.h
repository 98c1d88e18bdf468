// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/assembly/launch_join.h"
#include "model/collective_link.h"
#include "model/fragment.h"
#include "nsys_parse.h"
#include "nsys_steps.h"

namespace tacet {

// A communicator as one process knows it.
struct NsysCommunicator {
  uint64_t id = 0, parent = 0;
  int32_t nranks = -1, rank = -1;
};

// Gathers what one process did and makes a Timeline of it.
class NsysProcess {
 public:
  void TakeGpu(const NsysGpuRecord& work);
  void TakeRuntime(const NsysRuntimeRecord& call);
  void TakeRange(const NsysRangeRecord& range);

  int32_t MainDevice() const { return timeline_.MainDevice(); }
  bool used_device() const { return !timeline_.gpu.empty(); }
  uint64_t graphs() const { return graphs_; }
  uint64_t dropped() const { return dropped_; }
  const std::vector<NsysCommunicator>& communicators() const { return communicators_; }
  // The communicator with most ranks of those whose making was recorded; null where none was.
  const NsysCommunicator* Largest() const;

  // `group_of` gives the index of a communicator's group in the fragment.
  Timeline Finish(int64_t session_start_ns, const std::unordered_map<uint64_t, GroupIndex>& group_of);

 private:
  // A file that makes up events without end costs bounded memory.
  static constexpr size_t kMaxGpuEvents = size_t{1} << 26;
  static constexpr size_t kMaxSmallEvents = size_t{1} << 22;

  void TakeNcclCall(const NsysRangeRecord& range);
  NsysCommunicator& CommunicatorOf(uint64_t id);
  uint16_t StreamIndex(int64_t device, int64_t stream);
  uint32_t ThreadIndex(int64_t tid);
  void SetSizes(CommunicationCall& call, int64_t bytes, int32_t nranks) const;
  void ShiftBy(int64_t ns);

  Timeline timeline_;
  std::vector<PendingLaunch> launches_;
  std::vector<CommunicationCall> calls_;
  std::vector<std::pair<uint64_t, int64_t>> call_arguments_;  // communicator and bytes, beside calls_
  std::vector<CommunicationKernel> kernels_;
  std::vector<NsysCommunicator> communicators_;
  std::unordered_map<uint64_t, size_t> place_of_;  // id -> place in communicators_
  std::map<std::pair<int64_t, int64_t>, uint16_t> streams_;
  std::unordered_map<int64_t, uint32_t> threads_;
  NsysStepMarks steps_;
  uint64_t graphs_ = 0, dropped_ = 0;
};

}  // namespace tacet
