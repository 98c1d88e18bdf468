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

// When the host asked for the work that ends an idle gap: the launch of the first GPU event that starts at or after
// `ns`. A gap that no event ends, and one whose launch was not recorded, is the host's.
class LaunchTimes {
 public:
  explicit LaunchTimes(const Timeline& timeline) : timeline_(timeline), device_(timeline.MainDevice()) {}

  int64_t Before(int64_t ns) const {
    auto at = std::lower_bound(timeline_.gpu.begin(), timeline_.gpu.end(), ns,
                               [](const GpuEvent& event, int64_t value) { return event.start_ns < value; });
    while (at != timeline_.gpu.end() && timeline_.DeviceOf(*at) != device_) ++at;
    if (at == timeline_.gpu.end() || at->launch == kNoIndex) return INT64_MAX;
    return timeline_.launches[at->launch].start_ns;
  }

 private:
  const Timeline& timeline_;
  int32_t device_;
};

void AddIdle(const IntervalSet& gaps, const LaunchTimes& launches, const IntervalSet& loading, TimeBudget& budget) {
  for (const Interval& gap : gaps) {
    const int64_t asked = std::clamp(launches.Before(gap.end), gap.begin, gap.end);
    const int64_t loaded = TotalLength(Clip(loading, {gap.begin, asked}));
    budget.data_wait_ns += loaded;
    budget.host_wait_ns += asked - gap.begin - loaded;
    budget.launch_ns += gap.end - asked;
  }
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

RankBudget MeasureTimeBudget(const Timeline& timeline) {
  RankBudget out;
  out.rank = timeline.rank;
  const GpuActivity whole = MeasureActivity(timeline);
  const IntervalSet loading = DataLoading(timeline);
  const LaunchTimes launches(timeline);
  for (const TrainingStep& step : StepsOf(timeline)) {
    const Interval window{step.start_ns, step.end_ns};
    const GpuActivity activity = Clip(whole, window);
    StepBudget one{step, {}};
    one.budget.hidden_ns = IntersectionLength(activity.compute, activity.communication);
    one.budget.compute_only_ns = TotalLength(activity.compute) - one.budget.hidden_ns;
    one.budget.exposed_ns = TotalLength(activity.communication) - one.budget.hidden_ns;
    one.budget.copies_ns =
        TotalLength(activity.busy) - one.budget.compute_only_ns - one.budget.hidden_ns - one.budget.exposed_ns;
    AddIdle(Subtract({window}, activity.busy), launches, loading, one.budget);
    out.total += one.budget;
    out.steps.push_back(one);
  }
  return out;
}

}  // namespace tacet
