// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/time_budget.h"

#include <algorithm>

namespace tacet {
namespace {

IntervalSet DataLoading(const Timeline& timeline) {
  std::vector<Interval> ranges;
  for (const HostRange& range : timeline.ranges)
    if (range.work == HostWork::data_loading) ranges.push_back({range.start_ns, range.end_ns});
  return MergeIntervals(std::move(ranges));
}

}  // namespace

TimeBudget& TimeBudget::operator+=(const TimeBudget& other) {
  compute_only_ns += other.compute_only_ns;
  hidden_ns += other.hidden_ns;
  exposed_ns += other.exposed_ns;
  copies_ns += other.copies_ns;
  host_wait_ns += other.host_wait_ns;
  launch_ns += other.launch_ns;
  data_wait_ns += other.data_wait_ns;
  return *this;
}

BudgetMeter::BudgetMeter(const Timeline& timeline)
    : timeline_(timeline),
      device_(timeline.MainDevice()),
      activity_(MeasureActivity(timeline)),
      loading_(DataLoading(timeline)) {}

// When the host asked for the work that ends an idle gap: the launch of the first GPU event that starts at or after
// `ns`. A gap that no event ends, and one whose launch was not recorded, is the host's.
int64_t BudgetMeter::LaunchBefore(int64_t ns) const {
  auto at = std::lower_bound(timeline_.gpu.begin(), timeline_.gpu.end(), ns,
                             [](const GpuEvent& event, int64_t value) { return event.start_ns < value; });
  while (at != timeline_.gpu.end() && timeline_.DeviceOf(*at) != device_) ++at;
  if (at == timeline_.gpu.end() || at->launch == kNoIndex) return INT64_MAX;
  return timeline_.launches[at->launch].start_ns;
}

void BudgetMeter::AddIdle(const IntervalSet& gaps, TimeBudget& budget) const {
  for (const Interval& gap : gaps) {
    const int64_t asked = std::clamp(LaunchBefore(gap.end), gap.begin, gap.end);
    const int64_t loaded = TotalLength(Clip(loading_, {gap.begin, asked}));
    budget.data_wait_ns += loaded;
    budget.host_wait_ns += asked - gap.begin - loaded;
    budget.launch_ns += gap.end - asked;
  }
}

TimeBudget BudgetMeter::Measure(Interval window) const {
  TimeBudget budget;
  if (window.length() <= 0) return budget;
  const GpuActivity activity = Clip(activity_, window);
  budget.hidden_ns = IntersectionLength(activity.compute, activity.communication);
  budget.compute_only_ns = TotalLength(activity.compute) - budget.hidden_ns;
  budget.exposed_ns = TotalLength(activity.communication) - budget.hidden_ns;
  budget.copies_ns = TotalLength(activity.busy) - budget.compute_only_ns - budget.hidden_ns - budget.exposed_ns;
  AddIdle(Subtract({window}, activity.busy), budget);
  return budget;
}

RankBudget MeasureTimeBudget(const Timeline& timeline) {
  RankBudget out;
  out.rank = timeline.rank;
  const BudgetMeter meter(timeline);
  for (const TrainingStep& step : StepsOf(timeline)) {
    out.steps.push_back({step, meter.Measure({step.start_ns, step.end_ns})});
    out.total += out.steps.back().budget;
  }
  return out;
}

}  // namespace tacet
