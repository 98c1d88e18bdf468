// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/assembly/launch_join.h"
#include "model/collective_link.h"
#include "model/fragment.h"
#include "torch_trace_parse.h"
#include "trace_stream.h"

namespace tacet {

// Gathers the events of one trace, in any order, and makes a Timeline of them. Keeps what is needed only; names are
// interned.
class TimelineBuilder : public TraceSink {
 public:
  // `expected_bytes` of text: room for its events is reserved, since a list that grows needs three times its size for a
  // moment, and that moment would decide the peak memory. Room that is not used costs nothing.
  TimelineBuilder(Fragment& fragment, uint64_t expected_bytes);

  Reading OnMember(std::string_view key, std::string_view value) override;
  Reading OnEvent(std::string_view event) override;

  // Joins launches with GPU events, kernels with operations, applies the base time, sorts, and adds the timeline and
  // its speaker to the fragment. `assumed` is the rank that the file's name tells, used when the content tells none.
  void Finish(bool cut, Rank assumed);

  uint64_t events() const { return events_; }

 private:
  // A file that makes up events without end costs bounded memory.
  static constexpr size_t kMaxGpuEvents = size_t{1} << 26;
  static constexpr size_t kMaxSmallEvents = size_t{1} << 24;
  static constexpr size_t kMaxMemorySamples = size_t{1} << 16;

  void TakeGpu(const TraceEventRecord& event, GpuWork work);
  bool TakeRuntime(const TraceEventRecord& event);
  void TakeCommunication(const TraceEventRecord& event);
  void TakeAnnotation(const TraceEventRecord& event);
  void TakeMemory(const TraceEventRecord& event);
  void TakeGradient(const TraceEventRecord& event);
  TraceCollective ToCollective(const CollectiveArguments& arguments);
  GroupIndex FindGroup(const CollectiveArguments& arguments);
  uint16_t StreamIndex(int32_t device, int64_t stream);
  uint32_t ThreadIndex(int64_t tid);
  StringId Name(std::string_view raw);
  void Extend(int64_t start_ns, int64_t end_ns);
  void TakeDistributedInfo(std::string_view value);
  void TakeDeviceProperties(std::string_view value);

  void SettleGroups();
  void ShiftToWallClock();
  void SortAll();

  Fragment& fragment_;
  Timeline timeline_;
  std::vector<PendingLaunch> launches_;
  std::vector<CommunicationCall> calls_;
  std::vector<CommunicationKernel> kernels_;
  std::map<std::pair<int32_t, int64_t>, uint16_t> streams_;
  std::unordered_map<int64_t, uint32_t> threads_;
  std::unordered_map<std::string, GroupIndex> groups_;  // by name, else by ranks
  int64_t base_ns_ = 0;
  int64_t pid_ = -1;
  Speaker speaker_;
  uint64_t events_ = 0, dropped_ = 0;
};

}  // namespace tacet
