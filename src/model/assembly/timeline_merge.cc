// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/timeline_merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tacet {
namespace {

template <typename T>
void MoveBehind(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

uint32_t Shifted(uint32_t index, size_t by) { return index == kNoIndex ? index : index + static_cast<uint32_t>(by); }

std::vector<uint16_t> MapStreams(Timeline& first, const Timeline& later) {
  std::map<std::pair<int32_t, int64_t>, uint16_t> known;
  for (size_t i = 0; i < first.streams.size(); ++i)
    known.emplace(std::pair(first.streams[i].device, first.streams[i].id), static_cast<uint16_t>(i));
  std::vector<uint16_t> map;
  for (const GpuStream& stream : later.streams) {
    const auto next = static_cast<uint16_t>(std::min<size_t>(first.streams.size(), 0xffff));
    const auto [found, added] = known.try_emplace({stream.device, stream.id}, next);
    if (added && next < 0xffff) first.streams.push_back(stream);
    if (added && next == 0xffff) found->second = 0;
    map.push_back(found->second);
  }
  return map;
}

std::vector<uint32_t> MapThreads(Timeline& first, const Timeline& later) {
  std::vector<uint32_t> map;
  for (const int64_t thread : later.threads) {
    const auto found = std::find(first.threads.begin(), first.threads.end(), thread);
    map.push_back(static_cast<uint32_t>(found - first.threads.begin()));
    if (found == first.threads.end()) first.threads.push_back(thread);
  }
  return map;
}

// One after the other, each with its steps: then the time between them belongs to no step.
bool FollowEachOther(const Timeline& first, const Timeline& later) {
  if (first.steps.empty() || later.steps.empty() || first.end_ns == kNoTime || later.begin_ns == kNoTime) return false;
  if (first.end_ns > later.begin_ns || first.threads.size() + later.threads.size() > 4096) return false;
  std::set<int64_t> numbers;
  for (const TrainingStep& step : first.steps) numbers.insert(step.number);
  return std::none_of(later.steps.begin(), later.steps.end(),
                      [&](const TrainingStep& step) { return numbers.contains(step.number); });
}

}  // namespace

void AppendTimeline(Timeline& first, Timeline&& later) {
  const size_t events = first.gpu.size(), launches = first.launches.size(), operations = first.collectives.size();
  const std::vector<uint16_t> streams = MapStreams(first, later);
  const std::vector<uint32_t> threads = MapThreads(first, later);
  const auto name = [&](StringId id) { return first.names.Intern(later.names.Get(id)); };
  for (GpuEvent& event : later.gpu) {
    event.name = name(event.name);
    event.stream = streams[event.stream];
    event.launch = Shifted(event.launch, launches);
    event.collective = Shifted(event.collective, operations);
  }
  for (Launch& launch : later.launches) launch.thread = threads[launch.thread];
  for (HostRange& range : later.ranges) {
    range.name = name(range.name);
    range.thread = threads[range.thread];
  }
  for (TraceCollective& operation : later.collectives) operation.gpu_event = Shifted(operation.gpu_event, events);
  for (GradientReady& gradient : later.gradients) gradient.thread = threads[gradient.thread];
  MoveBehind(later.gpu, first.gpu);
  MoveBehind(later.launches, first.launches);
  MoveBehind(later.ranges, first.ranges);
  MoveBehind(later.steps, first.steps);
  MoveBehind(later.collectives, first.collectives);
  MoveBehind(later.matrix_work, first.matrix_work);
  MoveBehind(later.gradients, first.gradients);
  MoveBehind(later.memory, first.memory);
  first.end_ns = std::max(first.end_ns, later.end_ns);
  first.cut |= later.cut;
  if (first.out_of_memory_ns == kNoTime) first.out_of_memory_ns = later.out_of_memory_ns;
}

void JoinTracesOfOneRank(std::vector<Timeline>& timelines, std::vector<Diagnostic>& diagnostics) {
  std::stable_sort(timelines.begin(), timelines.end(), [](const Timeline& a, const Timeline& b) {
    return std::pair(a.rank, a.begin_ns) < std::pair(b.rank, b.begin_ns);
  });
  std::vector<Timeline> kept;
  for (Timeline& next : timelines) {
    if (kept.empty() || !next.rank.known() || kept.back().rank != next.rank) {
      kept.push_back(std::move(next));
      continue;
    }
    Timeline& before = kept.back();
    const std::string rank = std::to_string(next.rank.value);
    if (FollowEachOther(before, next)) {
      diagnostics.push_back({DiagnosticSeverity::note,
                             "traces-joined",
                             "continues the trace of rank " + rank + " before it; both were read as one",
                             {next.file},
                             ""});
      AppendTimeline(before, std::move(next));
      continue;
    }
    if (next.gpu.size() > before.gpu.size()) std::swap(before, next);
    diagnostics.push_back(
        {DiagnosticSeverity::warning,
         "trace-left-out",
         "another trace of rank " + rank + " is here with as much GPU work or more; this one was ignored",
         {next.file},
         "put the traces of different runs into separate folders"});
  }
  timelines = std::move(kept);
}

}  // namespace tacet
