// SPDX-License-Identifier: Apache-2.0
#include "nsys_process.h"

#include <algorithm>

#include "base/text_scan.h"
#include "model/kernel_name.h"

namespace tacet {
namespace {

constexpr size_t kMaxCommunicators = 1 << 16;

GpuWork WorkOf(const NsysGpuRecord& work) {
  switch (work.kind) {
    case NsysGpuKind::copy: return GpuWork::copy;
    case NsysGpuKind::memset: return GpuWork::memset;
    case NsysGpuKind::graph: return GpuWork::compute;
    case NsysGpuKind::kernel: break;
  }
  return ClassifyKernel(work.name);
}

bool IsDataLoading(std::string_view text) {
  for (const std::string_view part : {"DataLoader", "dataloader", "data_loader", "data loading", "data_loading"})
    if (Contains(text, part)) return true;
  return false;
}

}  // namespace

uint16_t NsysProcess::StreamIndex(int64_t device, int64_t stream) {
  const auto next = static_cast<uint16_t>(std::min<size_t>(timeline_.streams.size(), 0xffff));
  if (next == 0xffff && !streams_.contains({device, stream})) return 0;  // no real recording has that many
  const auto [found, added] = streams_.try_emplace({device, stream}, next);
  if (added) timeline_.streams.push_back({static_cast<int32_t>(std::clamp<int64_t>(device, -1, INT32_MAX)), stream});
  return found->second;
}

uint32_t NsysProcess::ThreadIndex(int64_t tid) {
  const auto [found, added] = threads_.try_emplace(tid, static_cast<uint32_t>(timeline_.threads.size()));
  if (added) timeline_.threads.push_back(tid);
  return found->second;
}

void NsysProcess::TakeGpu(const NsysGpuRecord& work) {
  if (timeline_.gpu.size() >= kMaxGpuEvents) {
    ++dropped_;
    return;
  }
  GpuEvent event;
  event.start_ns = work.start_ns;
  event.end_ns = work.end_ns;
  event.name = timeline_.names.Intern(work.name);
  event.work = WorkOf(work);
  event.stream = StreamIndex(work.device, work.stream);
  event.launch =
      work.correlation >= 0 && work.correlation < kNoIndex ? static_cast<uint32_t>(work.correlation) : kNoIndex;
  graphs_ += work.kind == NsysGpuKind::graph;
  if (event.work == GpuWork::communication) {
    event.collective = static_cast<uint32_t>(kernels_.size());
    CommunicationKernel kernel;
    kernel.operation.kind = OperationOfKernel(work.name);
    kernel.operation.type = DataTypeOfKernel(work.name);
    kernels_.push_back(kernel);
  }
  timeline_.gpu.push_back(event);
}

void NsysProcess::TakeRuntime(const NsysRuntimeRecord& call) {
  if (IsLaunchCall(call.name) && call.correlation >= 0 && call.correlation < kNoIndex &&
      launches_.size() < kMaxGpuEvents) {
    const auto duration = static_cast<uint32_t>(std::min<int64_t>(call.end_ns - call.start_ns, UINT32_MAX));
    launches_.push_back({static_cast<uint32_t>(call.correlation), duration, call.start_ns, ThreadIndex(call.tid)});
  } else if (IsDeviceWait(call.name) && timeline_.ranges.size() < kMaxSmallEvents) {
    timeline_.ranges.push_back(
        {call.start_ns, call.end_ns, timeline_.names.Intern(call.name), ThreadIndex(call.tid), HostWork::device_wait});
  }
}

NsysCommunicator& NsysProcess::CommunicatorOf(uint64_t id) {
  if (communicators_.size() >= kMaxCommunicators && !place_of_.contains(id)) return communicators_.back();
  const auto [found, added] = place_of_.try_emplace(id, communicators_.size());
  if (added) communicators_.push_back({id});
  return communicators_[found->second];
}

// ncclAllReduce, ncclSend, ncclCommInitRankConfig, ncclCommSplit, ncclGroupStart
void NsysProcess::TakeNcclCall(const NsysRangeRecord& range) {
  const NsysNcclArguments& arguments = range.nccl;
  std::string_view name = range.text;
  name.remove_prefix(4);
  if (name.starts_with("Comm")) {
    const bool makes = name.starts_with("CommInitRank") || name.starts_with("CommSplit") ||
                       name.starts_with("CommShrink") || name.starts_with("CommGrow");
    if (!makes || arguments.comm_id == 0) return;
    NsysCommunicator& made = CommunicatorOf(arguments.comm_id);
    made.parent = arguments.parent_comm_id;
    if (arguments.nranks > 0) made.nranks = arguments.nranks;
    if (arguments.rank >= 0 && arguments.rank < made.nranks) made.rank = arguments.rank;
    return;
  }
  const OpKind kind = ParseOpKind(name);
  if (kind == OpKind::unknown || calls_.size() >= kMaxSmallEvents) return;
  CommunicationCall call;
  call.operation.kind = kind;
  call.operation.enter_ns = range.start_ns;
  call.end_ns = range.end_ns;
  call.thread = ThreadIndex(range.tid);
  const int32_t peer = arguments.peer >= 0 ? arguments.peer : arguments.root;
  if (peer >= 0) call.operation.peer = {peer};
  if (arguments.comm_id != 0) CommunicatorOf(arguments.comm_id);
  calls_.push_back(call);
  call_arguments_.emplace_back(arguments.comm_id, arguments.bytes);
}

void NsysProcess::TakeRange(const NsysRangeRecord& range) {
  if (range.text.starts_with("nccl") && range.text.size() > 5 && range.text[4] >= 'A' && range.text[4] <= 'Z')
    return TakeNcclCall(range);
  const uint32_t thread = ThreadIndex(range.tid);
  const bool step = steps_.Add(range.text, thread, range.start_ns, range.end_ns);
  if (step || !IsDataLoading(range.text) || timeline_.ranges.size() >= kMaxSmallEvents) return;
  timeline_.ranges.push_back(
      {range.start_ns, range.end_ns, timeline_.names.Intern(range.text), thread, HostWork::data_loading});
}

const NsysCommunicator* NsysProcess::Largest() const {
  const NsysCommunicator* largest = nullptr;
  for (const NsysCommunicator& one : communicators_)
    if (one.rank >= 0 && (!largest || one.nranks > largest->nranks)) largest = &one;
  return largest;
}

// NVTX tells bytes and no type: elements of one byte. Which buffer is meant depends on the call: NCCL counts what one
// rank gives to an all-gather and what it gets of a reduce-scatter.
void NsysProcess::SetSizes(CommunicationCall& call, int64_t bytes, int32_t nranks) const {
  TraceCollective& operation = call.operation;
  operation.group_size = nranks;
  if (bytes < 0) return;
  operation.type = DataType::uint8;
  int64_t whole = -1;
  if (nranks <= 0 || __builtin_mul_overflow(bytes, int64_t{nranks}, &whole)) whole = -1;
  operation.in_elements = operation.out_elements = bytes;
  if (operation.kind == OpKind::all_gather || operation.kind == OpKind::gather) operation.out_elements = whole;
  if (operation.kind == OpKind::reduce_scatter || operation.kind == OpKind::scatter) operation.in_elements = whole;
  if (operation.kind == OpKind::all_to_all) operation.in_elements = operation.out_elements = whole;
}

void NsysProcess::ShiftBy(int64_t ns) {
  for (auto& event : timeline_.gpu) event.start_ns += ns, event.end_ns += ns;
  for (auto& launch : timeline_.launches) launch.start_ns += ns;
  for (auto& range : timeline_.ranges) range.start_ns += ns, range.end_ns += ns;
  for (auto& step : timeline_.steps) step.start_ns += ns, step.end_ns += ns;
  for (auto& operation : timeline_.collectives) operation.enter_ns += ns;
}

Timeline NsysProcess::Finish(int64_t session_start_ns, const std::unordered_map<uint64_t, GroupIndex>& group_of) {
  std::sort(timeline_.gpu.begin(), timeline_.gpu.end(), [](const GpuEvent& a, const GpuEvent& b) {
    return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
  });
  JoinLaunches(std::move(launches_), timeline_);
  std::stable_sort(timeline_.ranges.begin(), timeline_.ranges.end(),
                   [](const HostRange& a, const HostRange& b) { return a.start_ns < b.start_ns; });
  timeline_.steps = steps_.Find();
  for (size_t i = 0; i < calls_.size(); ++i) {
    const auto& [id, bytes] = call_arguments_[i];
    const auto group = group_of.find(id);
    if (group != group_of.end()) calls_[i].operation.group = group->second;
    SetSizes(calls_[i], bytes, id == 0 ? -1 : CommunicatorOf(id).nranks);
  }
  LinkCollectives(std::move(calls_), kernels_, timeline_);
  ShiftBy(session_start_ns);
  const auto extend = [&](int64_t start, int64_t end) {
    if (timeline_.begin_ns == kNoTime || start < timeline_.begin_ns) timeline_.begin_ns = start;
    if (timeline_.end_ns == kNoTime || end > timeline_.end_ns) timeline_.end_ns = end;
  };
  for (const GpuEvent& event : timeline_.gpu) extend(event.start_ns, event.end_ns);
  for (const Launch& launch : timeline_.launches) extend(launch.start_ns, launch.start_ns + launch.duration_ns);
  for (const TrainingStep& step : timeline_.steps) extend(step.start_ns, step.end_ns);
  timeline_.framework = "Nsight Systems";
  return std::move(timeline_);
}

}  // namespace tacet
