// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/timing/statistics.h"
#include "analysis/timing/straggler_origin.h"

namespace tacet {
namespace {

// Uneven work: this share of the step, in this share of the steps.
constexpr double kMinWorkShare = 0.08, kMostSteps = 0.6;
// Of what a rank computes more, the others must wait at least this share in communication; unless it computes this many
// times as much as the typical rank, by this share of the step: on a device that they share its kernels slow theirs,
// and nobody is seen to wait.
constexpr double kOthersWait = 0.3, kManyTimes = 3, kManyTimesShare = 0.2;
// Fewer steps do not show whether it is always the same rank; still fewer than these not whether the heavy one changes.
constexpr size_t kMinStepsForHeavy = 2, kMinStepsForChange = 3;

constexpr int64_t kFarMore = 2;

// Of one rank in one step.
struct Work {
  double compute = 0, communication = 0, length = 0;
};

std::map<int64_t, std::map<Rank, Work>> MeasureWork(std::span<const Timeline> timelines) {
  std::map<int64_t, std::map<Rank, Work>> table;
  for (const Timeline& timeline : timelines) {
    const BudgetMeter meter(timeline);
    for (const TrainingStep& step : timeline.steps) {
      const TimeBudget budget = meter.Measure({step.start_ns, step.end_ns});
      table[step.number][timeline.rank] = {static_cast<double>(budget.compute_ns()),
                                           static_cast<double>(budget.communication_ns()),
                                           static_cast<double>(budget.total_ns())};
    }
  }
  return table;
}

double MedianOf(const std::map<Rank, Work>& ranks, double Work::*part) {
  std::vector<double> values;
  for (const auto& [rank, work] : ranks) values.push_back(work.*part);
  return Median(std::move(values));
}

// Of one rank over all steps, against the median rank of each step.
struct RankWork {
  double compute = 0, more_compute = 0, less_waiting = 0, length = 0;
  size_t steps = 0, heavy_steps = 0, most_steps = 0;  // in most_steps it computed longest of all
  double share() const { return length > 0 ? more_compute / length : 0; }
  bool slows_others() const {
    const bool many_times = compute >= kManyTimes * (compute - more_compute) && share() >= kManyTimesShare;
    return many_times || less_waiting >= kOthersWait * more_compute;
  }
  bool heavy() const {
    return share() >= kMinWorkShare && static_cast<double>(heavy_steps) >= kMostSteps * static_cast<double>(steps);
  }
};

struct WorkTotals {
  std::map<Rank, RankWork> ranks;
  size_t steps = 0;
  double spread = 0, length = 0;  // longest minus median compute, and step time, summed over steps
};

WorkTotals SumWork(std::span<const Timeline> timelines) {
  WorkTotals out;
  for (const auto& [step, ranks] : MeasureWork(timelines)) {
    if (ranks.size() < 2 || ranks.size() * 2 < timelines.size()) continue;
    const double compute = MedianOf(ranks, &Work::compute), waiting = MedianOf(ranks, &Work::communication);
    const double usual = MedianOf(ranks, &Work::length);
    Rank longest;
    double most = -1;
    for (const auto& [rank, work] : ranks) {
      RankWork& sum = out.ranks[rank];
      ++sum.steps;
      sum.compute += work.compute;
      sum.more_compute += work.compute - compute;
      sum.less_waiting += waiting - work.communication;
      sum.length += usual;
      sum.heavy_steps += work.compute - compute >= kMinWorkShare * usual;
      if (work.compute <= most) continue;
      most = work.compute;
      longest = rank;
    }
    ++out.ranks[longest].most_steps;
    out.spread += most - compute;
    out.length += usual;
    ++out.steps;
  }
  return out;
}

// Who is late already keeps its figures; only why is known better now.
void AddHeavyRank(Rank rank, const RankWork& work, StragglerReport& report) {
  const auto known = std::find_if(report.stragglers.begin(), report.stragglers.end(),
                                  [&](const auto& one) { return one.rank == rank; });
  if (known != report.stragglers.end()) {
    if (known->origin != StragglerOrigin::unknown || known->pattern != StragglerPattern::persistent) return;
    known->origin = StragglerOrigin::gpu_work;
    known->explained = 1;
    return;
  }
  // While another is late by far more, what this one computes more costs nobody anything.
  const int64_t late_ns = std::llround(work.more_compute / static_cast<double>(work.steps));
  if (std::any_of(report.stragglers.begin(), report.stragglers.end(), [&](const Straggler& one) {
        return one.pattern == StragglerPattern::persistent && one.late_ns > kFarMore * late_ns;
      }))
    return;
  const double waited = std::clamp(work.less_waiting / work.length, 0.0, work.share());
  report.stragglers.push_back({.rank = rank,
                               .pattern = StragglerPattern::persistent,
                               .origin = StragglerOrigin::gpu_work,
                               .trust = work.steps >= 3 ? Trust::likely : Trust::possible,
                               .share = work.share(),
                               .late_ns = late_ns,
                               .late_steps = work.heavy_steps,
                               .steps = work.steps,
                               .explained = 1,
                               .cost = waited,
                               .low = waited,
                               .high = waited});
  report.cost_share = std::max(report.cost_share, waited);
}

void AddChangingRanks(const WorkTotals& totals, StragglerReport& report) {
  const auto steps = static_cast<double>(totals.steps);
  const double share = totals.spread / totals.length;
  if (totals.steps < kMinStepsForChange || share < kMinWorkShare) return;
  for (const auto& [rank, work] : totals.ranks) {
    const auto most = static_cast<double>(work.most_steps);
    if (work.most_steps == 0 || most > kMostSteps * steps) continue;
    report.stragglers.push_back({.rank = rank,
                                 .pattern = StragglerPattern::persistent,
                                 .origin = StragglerOrigin::uneven_input,
                                 .trust = Trust::possible,
                                 .share = share * most / steps,
                                 .late_ns = std::llround(totals.spread / steps),
                                 .late_steps = work.most_steps,
                                 .steps = totals.steps,
                                 .explained = 1,
                                 .cost = share * most / steps,
                                 .low = 0,
                                 .high = share});
  }
}

}  // namespace

void AddUnevenWork(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                   StragglerReport& report) {
  const bool together =
      std::any_of(rounds.begin(), rounds.end(), [](const auto& round) { return round.synchronises(); });
  if (!together || timelines.size() < 2) return;
  const WorkTotals totals = SumWork(timelines);
  if (totals.steps < kMinStepsForHeavy || totals.length <= 0) return;
  bool any_heavy = false;
  for (const auto& [rank, work] : totals.ranks) {
    if (!work.heavy()) continue;
    any_heavy = true;
    if (work.slows_others()) AddHeavyRank(rank, work, report);
  }
  if (!any_heavy && report.stragglers.empty()) AddChangingRanks(totals, report);
}

}  // namespace tacet
