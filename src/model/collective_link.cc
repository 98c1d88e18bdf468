// SPDX-License-Identifier: Apache-2.0
#include "model/collective_link.h"

#include <algorithm>
#include <unordered_map>

namespace tacet {
namespace {

class Linker {
 public:
  Linker(std::vector<CommunicationCall>& calls, const std::vector<CommunicationKernel>& kernels, Timeline& timeline)
      : calls_(calls), kernels_(kernels), timeline_(timeline), last_launch_(timeline.threads.size(), INT64_MIN) {
    std::sort(calls_.begin(), calls_.end(),
              [](const auto& a, const auto& b) { return a.operation.enter_ns < b.operation.enter_ns; });
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].external_id >= 0 && !calls_[i].from_annotation) by_external_.emplace(calls_[i].external_id, i);
      if (calls_[i].thread >= by_thread_.size()) by_thread_.resize(calls_[i].thread + 1);
      by_thread_[calls_[i].thread].push_back(i);
    }
  }

  void Run() {
    std::vector<uint32_t> events;
    for (uint32_t i = 0; i < timeline_.gpu.size(); ++i)
      if (timeline_.gpu[i].collective != kNoIndex) events.push_back(i);
    std::stable_sort(events.begin(), events.end(), [&](uint32_t a, uint32_t b) { return IssueNs(a) < IssueNs(b); });
    for (const uint32_t event : events) Link(event);
    for (CommunicationCall& call : calls_)
      if (!call.used && !call.from_annotation && call.operation.kind != OpKind::unknown)
        Add(call.operation, kNoIndex, false);
    SortByEnter();
  }

 private:
  int64_t IssueNs(uint32_t event) const {
    const GpuEvent& gpu = timeline_.gpu[event];
    return gpu.launch == kNoIndex ? gpu.start_ns : timeline_.launches[gpu.launch].start_ns;
  }

  void Add(const TraceCollective& operation, uint32_t event, bool coalesced) {
    if (event != kNoIndex && first_of_event_ == kNoIndex)
      first_of_event_ = static_cast<uint32_t>(timeline_.collectives.size());
    timeline_.collectives.push_back(operation);
    timeline_.collectives.back().gpu_event = event;
    timeline_.collectives.back().coalesced = coalesced;
  }

  void Link(uint32_t event) {
    GpuEvent& gpu = timeline_.gpu[event];
    const CommunicationKernel& kernel = kernels_[gpu.collective];
    first_of_event_ = kNoIndex;
    const int64_t issue = IssueNs(event);
    const uint32_t thread = gpu.launch == kNoIndex ? kNoIndex : timeline_.launches[gpu.launch].thread;
    TraceCollective operation = kernel.operation;
    operation.enter_ns = issue;
    const auto named = by_external_.find(kernel.external_id);
    uint32_t call = named == by_external_.end() ? kNoIndex : named->second;
    if (call == kNoIndex && !kernel.has_arguments) call = CallDuring(thread, issue);
    if (call != kNoIndex) {
      calls_[call].used = true;
      operation.enter_ns = calls_[call].operation.enter_ns;
      if (!kernel.has_arguments) operation = Complete(calls_[call].operation, thread, issue, kernel.operation);
      Add(operation, event, false);
    } else if (kernel.has_arguments || !AddCallsSinceLastLaunch(thread, issue, event)) {
      Add(operation, event, false);
    }
    if (thread != kNoIndex && thread < last_launch_.size()) last_launch_[thread] = issue;
    gpu.collective = first_of_event_;
  }

  // The innermost call that was going on when the kernel was launched.
  uint32_t CallDuring(uint32_t thread, int64_t issue, bool annotation = false) const {
    if (thread == kNoIndex || thread >= by_thread_.size()) return kNoIndex;
    const auto& list = by_thread_[thread];
    auto at = std::upper_bound(list.begin(), list.end(), issue,
                               [&](int64_t ns, uint32_t i) { return ns < calls_[i].operation.enter_ns; });
    for (int looked = 0; at != list.begin() && looked < 8; ++looked) {
      --at;
      if (calls_[*at].end_ns >= issue && calls_[*at].from_annotation == annotation) return *at;
    }
    return kNoIndex;
  }

  // Old versions write no arguments: the annotation inside the call and the kernel's name stand in.
  TraceCollective Complete(TraceCollective operation, uint32_t thread, int64_t issue,
                           const TraceCollective& by_name) const {
    if (operation.kind == OpKind::unknown) {
      const uint32_t annotation = CallDuring(thread, issue, true);
      if (annotation != kNoIndex) {
        operation.kind = calls_[annotation].operation.kind;
        operation.in_elements = calls_[annotation].operation.in_elements;
      } else {
        operation.kind = by_name.kind;
      }
    }
    if (operation.type == DataType::unknown) operation.type = by_name.type;
    if (operation.group == GroupIndex::none) operation.group = by_name.group;
    return operation;
  }

  bool AddCallsSinceLastLaunch(uint32_t thread, int64_t issue, uint32_t event) {
    if (thread == kNoIndex || thread >= by_thread_.size()) return false;
    const auto& list = by_thread_[thread];
    const int64_t since = thread < last_launch_.size() ? last_launch_[thread] : INT64_MIN;
    auto end = std::upper_bound(list.begin(), list.end(), issue,
                                [&](int64_t ns, uint32_t i) { return ns < calls_[i].operation.enter_ns; });
    auto begin = end;
    while (begin != list.begin() && calls_[*(begin - 1)].operation.enter_ns > since) --begin;
    std::vector<uint32_t> members;
    for (auto at = begin; at != end; ++at) {
      const CommunicationCall& call = calls_[*at];
      if (!call.used && !call.from_annotation && call.operation.kind != OpKind::unknown) members.push_back(*at);
    }
    for (const uint32_t member : members) {
      calls_[member].used = true;
      Add(calls_[member].operation, event, members.size() > 1);
    }
    return !members.empty();
  }

  // Members of one kernel stay side by side: they follow their first one.
  void SortByEnter() {
    auto& all = timeline_.collectives;
    std::vector<int64_t> key(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const bool follows =
          i > 0 && all[i].coalesced && all[i].gpu_event != kNoIndex && all[i].gpu_event == all[i - 1].gpu_event;
      key[i] = follows ? key[i - 1] : all[i].enter_ns;
    }
    std::vector<uint32_t> order(all.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key[a] < key[b]; });
    std::vector<TraceCollective> sorted;
    sorted.reserve(all.size());
    for (const uint32_t i : order) sorted.push_back(all[i]);
    all = std::move(sorted);
    for (uint32_t i = static_cast<uint32_t>(all.size()); i-- > 0;)
      if (all[i].gpu_event != kNoIndex) timeline_.gpu[all[i].gpu_event].collective = i;
  }

  std::vector<CommunicationCall>& calls_;
  const std::vector<CommunicationKernel>& kernels_;
  Timeline& timeline_;
  std::vector<int64_t> last_launch_;
  std::unordered_map<int64_t, uint32_t> by_external_;
  std::vector<std::vector<uint32_t>> by_thread_;
  uint32_t first_of_event_ = kNoIndex;
};

}  // namespace

void LinkCollectives(std::vector<CommunicationCall> calls, const std::vector<CommunicationKernel>& kernels,
                     Timeline& timeline) {
  Linker(calls, kernels, timeline).Run();
}

}  // namespace tacet
