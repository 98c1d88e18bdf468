// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler_origin.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// An origin is named when it accounts for at least half of the lateness.
constexpr double kExplains = 0.5;
// Uneven work: this share of the step, in this share of the steps.
constexpr double kMinWorkShare = 0.08, kMostSteps = 0.6;
// Of what a rank computes more, the others must wait at least this share in communication.
constexpr double kOthersWait = 0.3;

// The end of the last communication kernel of a rank that ended before `ns`, else the beginning of the trace.
int64_t LastSyncBefore(const BudgetMeter& meter, const Timeline& timeline, int64_t ns) {
  const IntervalSet& communication = meter.activity().communication;
  auto at = std::lower_bound(communication.begin(), communication.end(), ns,
                             [](const Interval& interval, int64_t value) { return interval.begin < value; });
  while (at != communication.begin()) {
    --at;
    if (at->end <= ns) return at->end;
  }
  return timeline.begin_ns;
}

struct Explanation {
  double late = 0, compute = 0, host = 0, data = 0;
};

void Add(const TimeBudget& own, const std::vector<TimeBudget>& others, double late, Explanation& out) {
  const auto excess = [&](auto part) {
    std::vector<double> values;
    for (const TimeBudget& other : others) values.push_back(static_cast<double>(part(other)));
    return static_cast<double>(part(own)) - Median(std::move(values));
  };
  out.late += late;
  out.compute += excess([](const TimeBudget& b) { return b.compute_ns() + b.copies_ns; });
  out.host += excess([](const TimeBudget& b) { return b.host_wait_ns + b.launch_ns; });
  out.data += excess([](const TimeBudget& b) { return b.data_wait_ns; });
}

void Conclude(const Explanation& sum, Straggler& straggler) {
  if (sum.late <= 0) return;
  struct Candidate {
    StragglerOrigin origin;
    double ns;
  };
  const Candidate candidates[] = {{StragglerOrigin::gpu_work, sum.compute},
                                  {StragglerOrigin::host, sum.host},
                                  {StragglerOrigin::data_loading, sum.data}};
  const auto best = std::max_element(std::begin(candidates), std::end(candidates),
                                     [](const auto& a, const auto& b) { return a.ns < b.ns; });
  straggler.explained = std::clamp(best->ns / sum.late, 0.0, 1.0);
  if (straggler.explained >= kExplains) straggler.origin = best->origin;
}

// Per rank and step.
struct Work {
  double compute = 0, communication = 0, length = 0;
};
using WorkTable = std::map<int64_t, std::map<Rank, Work>>;

WorkTable MeasureWork(std::span<const Timeline> timelines) {
  WorkTable table;
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

struct WorkSum {
  double excess = 0, less_waiting = 0, length = 0;
  size_t steps = 0, heavy = 0, most = 0;
};

}  // namespace

void ExplainFromTraces(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                       StragglerReport& report) {
  if (report.stragglers.empty()) return;
  std::vector<BudgetMeter> meters;
  meters.reserve(timelines.size());
  for (const Timeline& timeline : timelines) meters.emplace_back(timeline);
  for (Straggler& straggler : report.stragglers) {
    Explanation sum;
    for (const CollectiveRound& round : rounds) {
      const RoundMember* own = nullptr;
      std::vector<double> starts;
      std::vector<TimeBudget> others;
      if (!round.synchronises()) continue;
      for (const RoundMember& m : round.members) {
        if (m.timeline == kNoIndex || m.start_ns == kNoTime) continue;
        if (m.rank == straggler.rank) own = &m;
        starts.push_back(static_cast<double>(m.start_ns));
      }
      if (!own || own->queued || starts.size() < 2) continue;
      const double late = static_cast<double>(own->start_ns) - Median(starts);
      if (late <= 0) continue;
      // Windows are of the member's own clock: the trace's times, not the aligned ones.
      const auto measure = [&](const RoundMember& m) {
        const Timeline& timeline = timelines[m.timeline];
        const int64_t start = timeline.gpu[timeline.collectives[m.collective].gpu_event].start_ns;
        return meters[m.timeline].Measure({LastSyncBefore(meters[m.timeline], timeline, start), start});
      };
      for (const RoundMember& m : round.members)
        if (m.timeline != kNoIndex && m.start_ns != kNoTime && m.rank != straggler.rank) others.push_back(measure(m));
      Add(measure(*own), others, late, sum);
    }
    Conclude(sum, straggler);
  }
}

void ExplainFromEnters(const std::vector<CollectiveRound>& rounds, StragglerReport& report) {
  for (Straggler& straggler : report.stragglers) {
    double late = 0, late_on_host = 0;
    for (const CollectiveRound& round : rounds) {
      std::vector<double> enters, durations;
      const RoundMember* own = nullptr;
      for (const RoundMember& m : round.members) {
        if (m.enter_ns == kNoTime || m.duration_ns < 0 || m.queued) continue;
        if (m.rank == straggler.rank) own = &m;
        enters.push_back(static_cast<double>(m.enter_ns));
        durations.push_back(static_cast<double>(m.duration_ns));
      }
      if (!own || enters.size() < 2) continue;
      const double shorter = Median(durations) - static_cast<double>(own->duration_ns);
      if (shorter <= 0) continue;
      late += shorter;
      late_on_host += std::clamp(static_cast<double>(own->enter_ns) - Median(enters), 0.0, shorter);
    }
    if (late <= 0 || late_on_host / late > 1 - kExplains) continue;
    straggler.origin = StragglerOrigin::gpu_work;
    straggler.explained = 1 - late_on_host / late;
  }
}

void AddUnevenWork(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                   StragglerReport& report) {
  const bool together =
      std::any_of(rounds.begin(), rounds.end(), [](const auto& round) { return round.synchronises(); });
  if (!together || timelines.size() < 2) return;
  std::map<Rank, WorkSum> sums;
  double spread = 0, length = 0;
  size_t steps = 0;
  for (const auto& [step, ranks] : MeasureWork(timelines)) {
    if (ranks.size() < 2 || ranks.size() * 2 < timelines.size()) continue;
    const double compute = MedianOf(ranks, &Work::compute), waiting = MedianOf(ranks, &Work::communication);
    const double usual = MedianOf(ranks, &Work::length);
    const auto most = std::max_element(
        ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second.compute < b.second.compute; });
    for (const auto& [rank, work] : ranks) {
      WorkSum& sum = sums[rank];
      ++sum.steps;
      sum.excess += work.compute - compute;
      sum.less_waiting += waiting - work.communication;
      sum.length += usual;
      sum.heavy += work.compute - compute >= kMinWorkShare * usual;
    }
    ++sums[most->first].most;
    spread += most->second.compute - compute;
    length += usual;
    ++steps;
  }
  if (steps == 0 || length <= 0) return;
  const auto known = [&](Rank rank) {
    return std::find_if(report.stragglers.begin(), report.stragglers.end(),
                        [&](const auto& s) { return s.rank == rank; });
  };
  bool one_rank = false;
  for (const auto& [rank, sum] : sums) {
    const double share = sum.excess / sum.length;
    if (share < kMinWorkShare || static_cast<double>(sum.heavy) < kMostSteps * static_cast<double>(sum.steps)) continue;
    one_rank = true;
    if (sum.less_waiting < kOthersWait * sum.excess) continue;
    auto at = known(rank);
    if (at == report.stragglers.end()) {
      report.stragglers.push_back({.rank = rank, .share = share});
      at = std::prev(report.stragglers.end());
    } else if (at->origin != StragglerOrigin::gpu_work && at->origin != StragglerOrigin::unknown) {
      continue;
    }
    at->pattern = StragglerPattern::persistent;
    at->origin = StragglerOrigin::gpu_work;
    at->trust = std::max(at->trust, sum.steps >= 3 ? Trust::likely : Trust::possible);
    at->late_ns = std::max<int64_t>(at->late_ns, std::llround(sum.excess / static_cast<double>(sum.steps)));
    at->steps = sum.steps;
    at->late_steps = sum.heavy;
    at->explained = 1;
    report.cost_share = std::max(report.cost_share, std::min(share, std::max(0.0, sum.less_waiting / sum.length)));
  }
  if (one_rank || !report.stragglers.empty() || steps < 3 || spread / length < kMinWorkShare) return;
  for (const auto& [rank, sum] : sums) {
    if (sum.most == 0 || static_cast<double>(sum.most) > kMostSteps * static_cast<double>(steps)) continue;
    report.stragglers.push_back({.rank = rank,
                                 .pattern = StragglerPattern::intermittent,
                                 .origin = StragglerOrigin::uneven_input,
                                 .trust = Trust::possible,
                                 .share = spread / length * static_cast<double>(sum.most) / static_cast<double>(steps),
                                 .late_ns = std::llround(spread / static_cast<double>(steps)),
                                 .late_steps = sum.most,
                                 .steps = steps,
                                 .explained = 1});
  }
}

}  // namespace tacet
