// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>

#include "analysis/bandwidth/better_way.h"

namespace tacet {
namespace {

// As benchmarks count: the whole buffer of gather and scatter, not one rank's part.
int64_t BytesOfCall(const TraceCollective& call) {
  const int64_t elements = call.kind == OpKind::all_gather ? call.out_elements : call.in_elements;
  const int size = BytesOf(call.type);
  return elements > 0 && size > 0 && elements <= INT64_MAX / size ? elements * size : -1;
}

// Of sizes that double each time, the nearest is never further away than this; calls beyond the sweep's ends are.
constexpr double kNearest = 1.5;

int64_t NearestSize(const Sweep& sweep, int64_t bytes) {
  int64_t nearest = -1;
  double least = std::log(kNearest);
  for (const SweepPoint& point : sweep.points) {
    const double apart = std::fabs(std::log(static_cast<double>(point.bytes) / static_cast<double>(bytes)));
    if (apart <= least) nearest = point.bytes, least = apart;
  }
  return nearest;
}

struct StepCounts {
  uint64_t steps = 0;
  double step_ns = 0;
  std::map<int64_t, uint64_t> calls;  // by the sweep's size
};

void CountIn(const Timeline& timeline, const Sweep& sweep, StepCounts& counts) {
  std::map<int64_t, uint64_t> calls;
  for (const TraceCollective& call : timeline.collectives) {
    if (call.kind != sweep.kind || call.group_size != sweep.ranks) continue;
    const int64_t bytes = BytesOfCall(call);
    const bool inside =
        call.enter_ns >= timeline.steps.front().start_ns && call.enter_ns < timeline.steps.back().end_ns;
    if (!inside || bytes <= 0) continue;
    if (const int64_t size = NearestSize(sweep, bytes); size > 0) ++calls[size];
  }
  if (calls.empty()) return;  // a rank of another group
  counts.steps += timeline.steps.size();
  for (const TrainingStep& step : timeline.steps) counts.step_ns += static_cast<double>(step.end_ns - step.start_ns);
  for (const auto& [size, number] : calls) counts.calls[size] += number;
}

}  // namespace

void CountCallsPerStep(const std::vector<const Incident*>& incidents, const std::vector<Sweep>& sweeps,
                       std::vector<BetterWay>& ways) {
  for (BetterWay& way : ways) {
    if (way.cells.empty()) continue;
    StepCounts counts;
    for (const Incident* incident : incidents)
      for (const Timeline& timeline : incident->timelines)
        if (!timeline.steps.empty()) CountIn(timeline, sweeps[way.sweep], counts);
    if (counts.steps == 0) continue;
    way.step_us = counts.step_ns / static_cast<double>(counts.steps) / 1000;
    for (BetterCell& cell : way.cells)
      if (const auto found = counts.calls.find(cell.bytes); found != counts.calls.end())
        cell.calls_per_step = static_cast<double>(found->second) / static_cast<double>(counts.steps);
  }
}

}  // namespace tacet
