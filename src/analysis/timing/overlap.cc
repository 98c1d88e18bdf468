// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/overlap.h"

#include <algorithm>

namespace tacet {

double Overlap::efficiency() const {
  const auto shorter = static_cast<double>(std::min(communication_ns, compute_ns));
  const auto longer = static_cast<double>(std::max(communication_ns, compute_ns));
  if (shorter == 0) return 0;
  return 1 - (static_cast<double>(actual_ns()) - longer) / shorter;
}

Overlap OverlapOf(const TimeBudget& budget) {
  return {budget.hidden_ns + budget.exposed_ns, budget.compute_only_ns + budget.hidden_ns, budget.hidden_ns};
}

Overlap MeasureOverlap(const GpuActivity& activity, Interval window) {
  const IntervalSet communication = Clip(activity.communication, window), compute = Clip(activity.compute, window);
  return {TotalLength(communication), TotalLength(compute), IntersectionLength(compute, communication)};
}

Overlap MeasureOverlap(const Timeline& timeline) {
  const GpuActivity activity = MeasureActivity(timeline);
  if (activity.busy.empty()) return {};
  return MeasureOverlap(activity, {activity.busy.front().begin, activity.busy.back().end});
}

}  // namespace tacet
