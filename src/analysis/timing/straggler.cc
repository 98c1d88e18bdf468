// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Below this share of the step nobody would act on it.
constexpr double kMinShare = 0.04;
// With fewer steps than this chance alone makes a rank the last one in all of them, so more is asked for.
constexpr size_t kFewSteps = 5;
constexpr double kMinShareOfFew = 0.10;
// Durations alone, without a trace, tell nothing in a record of a few steps. A lateness of several steps' length means
// that the steps were not found.
constexpr size_t kMinMeasuredSteps = 8;
// Somebody is last in every step. In a single one nothing tells who always is.
constexpr size_t kMinTracedSteps = 2;
constexpr double kAbsurdShare = 3;
// A straggler stands out: this many times the lateness of the typical rank.
constexpr double kTimesTypical = 3;
// A step counts as late when the rank's lateness is this share of it.
constexpr double kLateStep = 0.02;
// Now and then: this share of a typical step on several occasions, or the larger one on fewer. A single hiccup of less
// is what every machine has.
constexpr double kRareLateness = 0.15, kSingleLateness = 0.75;
// Without a trace the ranks of a healthy job on a shared machine come a sixth of a step late now and then.
constexpr double kRareMeasuredLateness = 0.4;

// Arrival of each member, later is larger; empty when the round cannot tell.
std::vector<double> Arrivals(const CollectiveRound& round) {
  const auto& members = round.members;
  if (!round.synchronises() || members.size() < 2) return {};
  const bool traced = std::all_of(members.begin(), members.end(),
                                  [](const auto& m) { return m.timeline != kNoIndex && m.start_ns != kNoTime; });
  const bool timed = std::all_of(members.begin(), members.end(), [](const auto& m) { return m.duration_ns >= 0; });
  if (!traced && !timed) return {};
  std::vector<double> out;
  for (const RoundMember& m : members)
    out.push_back(static_cast<double>(traced ? m.start_ns - members[0].start_ns : -m.duration_ns));
  return out;
}

// How far apart the members' ends are: they should be one moment, so lateness below this is noise of the measurement.
double Raggedness(const CollectiveRound& round) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const RoundMember& m : round.members) {
    if (m.timeline == kNoIndex || m.end_ns == kNoTime) return 0;
    first = std::min(first, m.end_ns);
    last = std::max(last, m.end_ns);
  }
  return static_cast<double>(last - first);
}

double LowerMedian(std::vector<double> values);

// How long each member took since it was let go by the operation before. A broadcast, or one that two ranks end at
// different times, releases them one after the other; who was released late is not to blame for coming late. Empty
// where it is not known of all.
std::vector<double> OwnTimes(const CollectiveRound& round, int64_t RoundMember::*own_time) {
  std::vector<double> out;
  for (const RoundMember& m : round.members) {
    if (m.timeline != kNoIndex || m.*own_time < 0) return {};
    out.push_back(static_cast<double>(m.*own_time));
  }
  return out;
}

double LowerMedian(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Hosts that run ahead of their GPUs: the starts of most follow the operation before.
bool MostAreQueued(const CollectiveRound& round) {
  const auto queued = std::count_if(round.members.begin(), round.members.end(), [](const auto& m) { return m.queued; });
  return static_cast<size_t>(queued) * 2 > round.members.size();
}

// Where most merely follow the operation before, one that comes late is late only by what it was idle for.
std::vector<double> OwnTimesOf(const CollectiveRound& round) {
  return OwnTimes(round, MostAreQueued(round) ? &RoundMember::alone_ns : &RoundMember::idle_ns);
}

bool Counts(const CollectiveRound& round, const std::vector<double>& arrivals) {
  if (MostAreQueued(round) && OwnTimesOf(round).empty()) return false;
  const auto last = std::max_element(arrivals.begin(), arrivals.end()) - arrivals.begin();
  return !round.members[static_cast<size_t>(last)].queued;
}

// Distances between the first operations of consecutive steps. Hosts run ahead of their GPUs, so starts tell more than
// the moments of issue.
StepTimes TimesOf(const std::vector<CollectiveRound>& rounds) {
  std::map<int64_t, double> first;
  for (const CollectiveRound& round : rounds) {
    if (round.step < 0) continue;
    for (const RoundMember& m : round.members) {
      if (m.enter_ns == kNoTime) continue;
      const bool started = m.timeline == kNoIndex && m.start_ns != kNoTime;
      const auto at = static_cast<double>(started ? m.start_ns : m.enter_ns);
      const auto [found, added] = first.try_emplace(round.step, at);
      if (!added) found->second = std::min(found->second, at);
    }
  }
  StepTimes times;
  for (auto at = first.begin(); at != first.end() && std::next(at) != first.end(); ++at)
    if (std::next(at)->first == at->first + 1) times[at->first] = std::next(at)->second - at->second;
  if (!first.empty() && !times.empty()) {
    std::vector<double> all;
    for (const auto& [step, ns] : times) all.push_back(ns);
    times.try_emplace(first.rbegin()->first, Median(std::move(all)));
  }
  return times;
}

struct RankSteps {
  RankLateness lateness;
  std::map<int64_t, double> by_step;  // ns late in each step in which the rank has a round that counts
};

class Finder {
 public:
  Finder(const std::vector<CollectiveRound>& rounds, const StepTimes& step_times)
      : rounds_(rounds), times_(step_times.empty() ? TimesOf(rounds) : step_times) {}

  StragglerReport Run() {
    StragglerReport report;
    std::vector<double> lengths;
    for (const auto& [step, ns] : times_) lengths.push_back(ns);
    step_ns_ = Median(lengths);
    report.step_ns = std::llround(step_ns_);
    if (step_ns_ <= 0) return report;
    Gather(report);
    for (auto& [rank, one] : ranks_) Conclude(one);
    for (const auto& [rank, one] : ranks_) report.ranks.push_back(one.lateness);
    Choose(report);
    report.cost_share = Cost(report);
    return report;
  }

 private:
  void Gather(StragglerReport& report) {
    std::set<int64_t> steps;
    for (const CollectiveRound& round : rounds_) {
      if (!times_.count(round.step)) continue;
      const auto arrivals = Arrivals(round);
      if (arrivals.empty() || !Counts(round, arrivals)) continue;
      const double middle = LowerMedian(arrivals), noise = Raggedness(round);
      const double last = *std::max_element(arrivals.begin(), arrivals.end());
      const std::vector<double> own_times = OwnTimesOf(round);
      const double usual = own_times.empty() ? 0 : LowerMedian(own_times);
      for (size_t i = 0; i < arrivals.size(); ++i) {
        RankSteps& one = ranks_[round.members[i].rank];
        one.lateness.rank = round.members[i].rank;
        ++one.lateness.rounds;
        if (arrivals[i] == last && last > middle) ++one.lateness.last;
        double late = arrivals[i] - middle - noise;
        if (!own_times.empty()) late = std::min(late, own_times[i] - usual);
        one.by_step[round.step] += std::max(0.0, late);
      }
      traced_ |= round.members[0].timeline != kNoIndex;
      ++report.rounds;
      steps.insert(round.step);
    }
    report.steps = steps.size();
  }

  void Conclude(RankSteps& one) {
    RankLateness& out = one.lateness;
    double sum = 0, time = 0, worst = 0;
    std::vector<double> shares;
    for (const auto& [step, ns] : one.by_step) {
      const double length = times_.at(step);
      shares.push_back(length > 0 ? ns / length : 0);
      sum += ns;
      time += length;
      worst = std::max(worst, ns);
      if (ns >= kLateStep * length) ++out.late_steps;
    }
    out.steps = one.by_step.size();
    if (out.steps == 0 || time <= 0) return;
    out.share = sum / time;
    out.median_share = Median(std::move(shares));
    out.mean_ns = std::llround(sum / static_cast<double>(out.steps));
    out.worst_ns = std::llround(worst);
  }

  void Choose(StragglerReport& report) {
    std::vector<double> means, medians, rare;
    for (const auto& [rank, one] : ranks_) {
      means.push_back(one.lateness.share);
      medians.push_back(one.lateness.median_share);
      rare.push_back(static_cast<double>(RareSteps(one)));
    }
    if (ranks_.size() < 2) return;
    const double typical_mean = LowerMedian(means), typical_median = LowerMedian(medians),
                 typical_rare = LowerMedian(rare);
    for (const auto& [rank, one] : ranks_) {
      const RankLateness& late = one.lateness;
      if (late.steps < (traced_ ? kMinTracedSteps : kMinMeasuredSteps) || late.share > kAbsurdShare) continue;
      const double least = late.steps < kFewSteps ? kMinShareOfFew : kMinShare;
      if (late.share < least || late.share < kTimesTypical * typical_mean) continue;
      Straggler straggler{.rank = rank, .share = late.share, .late_steps = late.late_steps, .steps = late.steps};
      if (late.median_share >= least && late.median_share >= kTimesTypical * typical_median && IsPersistent(late)) {
        SetPersistent(late, straggler);
        // Somebody is the last more often than the others. Without a trace that alone names nobody.
        if (!traced_ && straggler.trust == Trust::possible) continue;
      } else if (static_cast<double>(RareSteps(one)) <= kTimesTypical * typical_rare ||
                 !SetIntermittent(one, straggler)) {
        continue;
      }
      report.stragglers.push_back(straggler);
    }
    std::sort(report.stragglers.begin(), report.stragglers.end(),
              [](const auto& a, const auto& b) { return a.share > b.share; });
  }

  bool IsPersistent(const RankLateness& late) const {
    return late.late_steps * 5 >= late.steps * 3 && (late.last * 2 >= late.rounds || HasMostOfTheLateness(late));
  }

  // It need not be the last in every operation of a step, if what the others are late is nothing beside it.
  bool HasMostOfTheLateness(const RankLateness& late) const {
    constexpr double kMost = 0.8;
    double all = 0;
    for (const auto& [rank, one] : ranks_)
      all += static_cast<double>(one.lateness.mean_ns) * static_cast<double>(one.lateness.steps);
    return static_cast<double>(late.mean_ns) * static_cast<double>(late.steps) >= kMost * all;
  }

  void SetPersistent(const RankLateness& late, Straggler& out) const {
    out.pattern = StragglerPattern::persistent;
    out.late_ns = late.mean_ns;
    const bool often =
        late.late_steps * 5 >= late.steps * 4 && (late.last * 3 >= late.rounds * 2 || HasMostOfTheLateness(late));
    out.trust = late.steps >= 5 && often && late.share >= 2 * kMinShare ? Trust::certain
                : often                                                 ? Trust::likely
                                                                        : Trust::possible;
  }

  double RareNs() const { return (traced_ ? kRareLateness : kRareMeasuredLateness) * step_ns_; }

  size_t RareSteps(const RankSteps& one) const {
    return static_cast<size_t>(std::count_if(one.by_step.begin(), one.by_step.end(),
                                             [&](const auto& step) { return step.second >= RareNs(); }));
  }

  bool SetIntermittent(const RankSteps& one, Straggler& out) const {
    size_t rare = 0, great = 0;
    double sum = 0;
    for (const auto& [step, ns] : one.by_step) {
      if (ns < RareNs()) continue;
      ++rare;
      great += ns >= kSingleLateness * step_ns_;
      sum += ns;
    }
    // A long record shows whether it comes back, and durations alone are no match for starts.
    const bool lenient = traced_ && one.by_step.size() < 12;
    const bool few_but_great = traced_ && great >= (lenient ? 1u : 2u);
    if (rare < (lenient ? 2u : 3u) && !few_but_great) return false;
    out.pattern = StragglerPattern::intermittent;
    out.late_steps = rare;
    out.late_ns = std::llround(sum / static_cast<double>(rare));
    out.trust = rare >= 3 ? Trust::certain : rare == 2 ? Trust::likely : Trust::possible;
    return true;
  }

  double Cost(const StragglerReport& report) const {
    std::set<Rank> guilty;
    for (const Straggler& one : report.stragglers) guilty.insert(one.rank);
    if (guilty.empty()) return 0;
    // Per group, what its members would gain: gains in different groups of one step overlap, so the largest counts.
    std::map<int64_t, std::map<GroupIndex, double>> gain;
    for (const CollectiveRound& round : rounds_) {
      if (!times_.count(round.step)) continue;
      const auto arrivals = Arrivals(round);
      if (arrivals.empty() || !Counts(round, arrivals)) continue;
      double others = -1e300, last = -1e300;
      for (size_t i = 0; i < arrivals.size(); ++i) {
        last = std::max(last, arrivals[i]);
        if (!guilty.count(round.members[i].rank)) others = std::max(others, arrivals[i]);
      }
      if (others > -1e300) gain[round.step][round.group] += last - others;
    }
    double sum = 0, time = 0;
    for (const auto& [step, groups] : gain) {
      double most = 0;
      for (const auto& [group, ns] : groups) most = std::max(most, ns);
      sum += std::min(most, times_.at(step));
      time += times_.at(step);
    }
    return time > 0 ? sum / time : 0;
  }

  const std::vector<CollectiveRound>& rounds_;
  StepTimes times_;
  double step_ns_ = 0;
  bool traced_ = false;
  std::map<Rank, RankSteps> ranks_;
};

}  // namespace

StragglerReport FindStragglers(const std::vector<CollectiveRound>& rounds, const StepTimes& step_times) {
  return Finder(rounds, step_times).Run();
}

}  // namespace tacet
