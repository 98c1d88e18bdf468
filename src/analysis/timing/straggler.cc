// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/timing/rank_pace.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

using Limits = StragglerLimits;

// Somebody is last in every step. In a single one nothing tells who always is; durations alone, without a trace, tell
// nothing in a record of a few steps.
constexpr size_t kMinTracedSteps = 2, kMinMeasuredSteps = 8, kFewSteps = 5;
// Less than this is no lateness: kernels start and end as raggedly as that on any machine.
constexpr double kMinLateNs = 50'000, kMinMeasuredLateNs = 150'000;
// Stragglers are exceptions. Where more than this share of the ranks are late, the others are early: halves of a mesh
// that share a group, a device or a switch drift apart in healthy jobs.
constexpr size_t kMostLateShare = 3;  // one of so many
// A lateness of several steps' length means that the steps were not found.
constexpr double kAbsurdShare = 3;
// What is always there is in the ordinary step too.
constexpr double kOrdinary = 0.4;
// Where chance can make a rank late by so much on the whole, others are the last in many a step.
constexpr double kGreatLateness = 0.1;
constexpr size_t kNextSlowest = 8;
// Deviations of what has other evidence beside it.
constexpr double kSurely = 2;
// A rank that lags by milliseconds in one part of the record alone had company there: another process, the profiler. A
// slow rank lags throughout, or by more than this.
constexpr double kMuchNs = 10'000'000;
// What stalls add to the steps around them, over what the others wait. Recorded ones: 0.63 and more.
constexpr double kLengthens = 0.5;
// A stall of nearly a step is something by itself. Of smaller ones a long record knows how often they come: what they
// cost at least must be worth a word too. Recorded delays: 3 % and more; hiccups of a healthy job: 2 %.
constexpr double kGreatStall = 0.75, kSureCost = 0.025;
// Where hosts are slower now and then, and now this and now that one, stalls stand out if they are so many times as
// long as what comes to the others. Recorded: delays 2.5 times and more, hosts of healthy FSDP jobs up to 1.6 times.
constexpr double kStandsOut = 2;

bool CanTell(const RankPace& one) {
  return one.steps >= (one.source == PaceSource::traces ? kMinTracedSteps : kMinMeasuredSteps);
}

// A long record shows whether a stall comes back; a trace of a few steps has room for one only, which must be great.
// Durations alone are no match for starts.
size_t LeastStalls(const RankPace& one) {
  constexpr size_t kLongTrace = 12;
  if (one.source != PaceSource::traces) return 3;
  return one.steps < kLongTrace && one.stalls.smallest >= kGreatStall ? 1 : 2;
}

// One rank by all records: means weighted by how surely each of them knows.
struct Joint {
  Rank rank;
  double mean = 0, error = 0, median = 0, freedom = 0;
  size_t steps = 0;
  uint32_t peers = 0;
  bool traced = false;
  bool throughout = true;      // in every part of the records, not in one alone
  bool counted_again = false;  // in one of the records
  double shared = std::numeric_limits<double>::quiet_NaN(), shared_error = 0;  // RankPace's, of the first that has it
  double z() const { return error > 0 ? mean / error : 0; }
};

Joint Join(Rank rank, const std::vector<const RankPace*>& records) {
  Joint out{.rank = rank, .peers = records.front()->peers};
  double weights = 0;
  for (const RankPace* one : records) {
    const double weight = 1 / (one->error * one->error);
    weights += weight;
    out.mean += weight * one->mean;
    out.median += weight * one->median;
    out.freedom = std::max(out.freedom, one->freedom);
    out.steps = std::max(out.steps, one->steps);
    out.traced |= one->source == PaceSource::traces;
    if (std::isnan(out.shared)) out.shared = one->shared, out.shared_error = one->shared_error;
    out.throughout &= one->least_third >= kOrdinary * one->mean;
    out.counted_again |= one->counted_again;
  }
  out.mean /= weights;
  out.median /= weights;
  out.error = std::sqrt(1 / weights);
  return out;
}

class Decision {
 public:
  Decision(std::span<const Pace> paces, std::span<const Timeline> timelines) : paces_(paces), timelines_(timelines) {
    for (const Pace& pace : paces)
      if (pace.steps() > 0 && pace.ranks.size() > 1) records_.push_back(SummarisePace(pace));
  }

  StragglerReport Run() {
    if (records_.empty()) return {};
    FillTable();
    JoinRecords();
    AddPersistent();
    for (const PaceSummary& record : records_) AddIntermittent(record);
    AddCosts(report_);
    return std::move(report_);
  }

  // The costs of ranks that are known to be late.
  StragglerReport Estimate(std::span<const Straggler> known) {
    if (records_.empty()) return {};
    FillTable();
    JoinRecords();
    const auto is_known = [&](Rank rank) {
      return std::any_of(known.begin(), known.end(), [&](const Straggler& one) { return one.rank == rank; });
    };
    std::stable_partition(joint_.begin(), joint_.end(), [&](const Joint& one) { return is_known(one.rank); });
    const auto named = static_cast<size_t>(
        std::count_if(joint_.begin(), joint_.end(), [&](const Joint& one) { return is_known(one.rank); }));
    for (const Straggler& one : known) {
      if (one.pattern == StragglerPattern::intermittent) {
        EstimateStalls(one.rank);
        continue;
      }
      for (size_t i = 0; i < named; ++i)
        if (joint_[i].rank == one.rank) report_.stragglers.push_back(Persistent(joint_[i], named));
    }
    AddCosts(report_);
    return std::move(report_);
  }

 private:
  void JoinRecords() {
    std::map<Rank, std::vector<const RankPace*>> by_rank;
    for (const PaceSummary& record : records_)
      for (const RankPace& one : record.ranks)
        if (CanTell(one)) by_rank[one.rank].push_back(&one);
    for (const auto& [rank, list] : by_rank) joint_.push_back(Join(rank, list));
    std::stable_sort(joint_.begin(), joint_.end(), [](const Joint& a, const Joint& b) { return a.mean > b.mean; });
  }

  // The table shows one record: that which sees most of what a rank does.
  void FillTable() {
    const PaceSummary& first = records_.front();
    report_.step_ns = std::llround(first.step_ns);
    report_.rounds = first.operations;
    report_.steps = first.steps;
    for (const RankPace& one : first.ranks)
      report_.ranks.push_back({.rank = one.rank,
                               .rounds = one.rounds,
                               .last = one.last,
                               .steps = one.steps,
                               .late_steps = one.late_steps,
                               .share = one.share,
                               .median_share = one.median,
                               .mean_ns = std::llround(one.mean_ns),
                               .worst_ns = std::llround(one.worst_ns),
                               .z = one.error > 0 ? one.mean / one.error : 0});
    for (size_t i = 0; i < records_.size(); ++i)
      report_.source += (i == 0                    ? ""
                         : i + 1 < records_.size() ? ", "
                                                   : " and ") +
                        std::string(Name(records_[i].source));
  }

  double StepNs() const { return records_.front().step_ns; }

  // Where the ranks' means fall apart: behind this many from the top comes the widest gap.
  size_t FindGap() const {
    size_t best = 0;
    double widest = 0;
    const size_t most = std::max<size_t>(1, joint_.size() / kMostLateShare);
    for (size_t k = 1; k <= most && k < joint_.size(); ++k) {
      const double gap = joint_[k - 1].mean - joint_[k].mean;
      if (gap > widest) widest = gap, best = k;
    }
    return best;
  }

  // The mean of the next-slowest of a rank's peers, without what mere chance makes of the largest of many.
  double PaceOfTheOthers(size_t named, uint32_t peers, double Joint::*mean, double Joint::*sure) const {
    std::vector<double> means, errors;
    for (size_t i = named; i < joint_.size(); ++i) {
      if (joint_[i].peers != peers || std::isnan(joint_[i].*mean)) continue;
      means.push_back(joint_[i].*mean);
      errors.push_back(joint_[i].*sure);
    }
    if (means.empty()) return 0;
    const double middle = Median(means), error = Median(errors), spread = Variance(means);
    const double real = spread > 0 ? std::max(0.0, 1 - error * error / spread) : 0;
    return middle + real * (*std::max_element(means.begin(), means.end()) - middle);
  }

  // A rank of a pipeline has less to wait for than its peers where its next stage is fast: it is late if they wait for
  // it, and costs no more than that.
  bool IsWaitedFor(const Joint& one) const { return std::isnan(one.shared) || one.shared > kSurely * one.shared_error; }

  // Of the records, the one that shows it best decides.
  bool IsLaterInNearlyEveryStep(const Joint& one, size_t named) const {
    const size_t end = std::min(joint_.size(), named + kNextSlowest);
    return std::any_of(paces_.begin(), paces_.end(), [&](const Pace& pace) {
      double least = 2;
      size_t others = 0;
      for (size_t i = named; i < end; ++i)
        if (const double share = ShareOfStepsLater(pace, one.rank, joint_[i].rank);
            joint_[i].peers == one.peers && !std::isnan(share))
          least = std::min(least, share), ++others;
      return least >= (others == 1 ? Limits::kNearlyEveryStepOfOne : Limits::kNearlyEveryStep) && least <= 1;
    });
  }

  void AddPersistent() {
    const size_t named = FindGap();
    if (named == 0) return;
    for (size_t i = 0; i < named; ++i) {
      const Joint& one = joint_[i];
      const double others = PaceOfTheOthers(named, one.peers, &Joint::mean, &Joint::error);
      const double tail = Limits::kFalseAlarms / static_cast<double>(joint_.size());
      const double least = one.steps < kFewSteps ? Limits::kMinCostOfFew : Limits::kMinCost;
      const double cost = one.mean - others;
      if (cost < least || cost > kAbsurdShare || one.z() < kSurely || cost < kSurely * one.error) continue;
      // What comes about in one place of the step, time and again, is not chance.
      SlowPlace place;
      if (one.traced) place = FindSlowPlace(timelines_, one.rank);
      const bool placed = place.HoldsMostOf(one.mean * StepNs());
      const double needed = placed ? kSurely : TailPointOfT(2 * tail, one.freedom);
      const double floor = one.traced ? kMinLateNs : kMinMeasuredLateNs;
      if (one.z() < needed || cost < needed * one.error) continue;
      if (one.median < kOrdinary * one.mean || cost * StepNs() < floor) continue;
      if (!IsWaitedFor(one) || (!one.throughout && one.mean * StepNs() < kMuchNs)) continue;
      if (!placed) {
        if (std::max(one.mean, cost) >= kGreatLateness && !IsLaterInNearlyEveryStep(one, named)) continue;
        if (IsWithinHostSpread(cost, cost * StepNs(), one.mean * StepNs(), one.traced)) continue;
      }
      Straggler found = Persistent(one, named);
      found.place = std::move(place);
      found.trust = one.steps < kFewSteps                        ? Trust::possible
                    : one.z() >= 2 * needed && cost >= 2 * least ? Trust::certain
                                                                 : Trust::likely;
      report_.stragglers.push_back(found);
    }
  }

  // What a rank that is always late costs, where so many are.
  Straggler Persistent(const Joint& one, size_t named) const {
    const double others = PaceOfTheOthers(named, one.peers, &Joint::mean, &Joint::error);
    Straggler found{.rank = one.rank,
                    .share = one.mean,
                    .steps = one.steps,
                    .cost = std::clamp(one.mean - others, 0.0, 1.0),
                    .z = one.z()};
    found.late_ns = std::llround(one.mean * StepNs());
    found.counted_again = one.counted_again;
    const double reach = TailPointOfT(0.05, one.freedom) * one.error;
    if (!std::isnan(one.shared)) {
      const double waited = one.shared - PaceOfTheOthers(named, one.peers, &Joint::shared, &Joint::shared_error);
      found.cost = std::clamp(waited, 0.0, found.cost);
    }
    found.low = std::max(0.0, found.cost - reach);
    found.high = std::min(1.0, found.cost + reach);
    TakeFiguresOfTheTable(found);
    return found;
  }

  // What is said of a rank is what the table shows of it.
  void TakeFiguresOfTheTable(Straggler& found) const {
    for (const RankLateness& own : report_.ranks) {
      if (own.rank != found.rank) continue;
      found.late_steps = own.late_steps;
      found.steps = own.steps;
      found.counted_in = Name(records_.front().source);
      found.share = own.share;
      found.late_ns = own.mean_ns;
    }
  }

  // A record that is as long and does not see the rank late at all speaks against the stalls of another.
  bool IsDenied(const PaceSummary& record, const RankPace& one) const {
    for (const PaceSummary& other : records_) {
      if (&other == &record || other.steps < record.steps) continue;
      for (const RankPace& own : other.ranks)
        if (own.rank == one.rank && own.share * 4 < one.stalls.cost) return true;
    }
    return false;
  }

  // What the stalls of a rank cost.
  static Straggler Intermittent(const PaceSummary& record, const RankPace& one) {
    Straggler found{.rank = one.rank, .pattern = StragglerPattern::intermittent, .share = one.share};
    found.late_ns = std::llround(one.stalls.mean_ns);
    found.late_steps = one.stalls.count;
    found.steps = one.steps;
    found.counted_in = Name(record.source);
    found.cost = std::min(1.0, one.stalls.cost);
    // So many stalls could as well have been more or fewer: a count's error is its root.
    const double relative = 1.96 / std::sqrt(static_cast<double>(one.stalls.count));
    found.low = std::max(0.0, found.cost * (1 - relative));
    found.high = std::min(1.0, found.cost * (1 + relative));
    found.z = one.stalls.z;
    return found;
  }

  // By the first record that has enough of them.
  void EstimateStalls(Rank rank) {
    for (const PaceSummary& record : records_)
      for (const RankPace& one : record.ranks) {
        if (one.rank != rank || one.stalls.count < LeastStalls(one)) continue;
        report_.stragglers.push_back(Intermittent(record, one));
        return;
      }
  }

  void AddIntermittent(const PaceSummary& record) {
    for (const RankPace& one : record.ranks) {
      const auto known = std::find_if(report_.stragglers.begin(), report_.stragglers.end(),
                                      [&](const Straggler& other) { return other.rank == one.rank; });
      const bool traced = record.source == PaceSource::traces;
      if (one.stalls.count < LeastStalls(one) || one.stalls.usual_cost < Limits::kMinCost || !CanTell(one)) continue;
      if (one.stalls.chance > Limits::kFalseAlarms / static_cast<double>(records_.size())) continue;
      if (one.stalls.mean_ns < (traced ? kMinLateNs : kMinMeasuredLateNs) || IsDenied(record, one)) continue;
      if (!one.stalls.throughout && one.stalls.mean_ns < kMuchNs) continue;
      if (one.stalls.lengthens < kLengthens) continue;  // not where it is not known
      if (one.stalls.usual < kStandsOut * one.stalls.beside) continue;
      // In most steps is always, rather: that has been decided.
      if (one.stalls.count * 2 > one.steps && one.stalls.mean_ns < kMuchNs) continue;
      Straggler found = Intermittent(record, one);
      if (!traced && one.stalls.usual < kGreatStall && found.low < kSureCost) continue;
      found.trust =
          one.stalls.chance < Limits::kFalseAlarms / 10 && one.stalls.count >= 3 ? Trust::certain : Trust::likely;
      if (known == report_.stragglers.end()) {
        report_.stragglers.push_back(found);
      } else if (known->pattern == StragglerPattern::intermittent && known->steps < found.steps) {
        *known = found;  // the longer record knows better how often
      }
    }
  }

  const std::span<const Pace> paces_;
  const std::span<const Timeline> timelines_;
  std::vector<PaceSummary> records_;
  std::vector<Joint> joint_;  // latest first
  StragglerReport report_;
};

}  // namespace

bool IsWithinHostSpread(double cost, double cost_ns, double late_ns, bool traced) {
  constexpr double kHostSpreadNs = 1'000'000, kBeyondHostSpread = 0.08, kBeyondTracedSpread = 0.2;
  constexpr double kUsualSpreadNs = 700'000, kBeyondUsualSpread = 0.25;
  if (cost < kBeyondHostSpread && cost_ns < kHostSpreadNs) return true;
  if (cost < kBeyondUsualSpread && cost_ns < kUsualSpreadNs) return true;
  return traced && cost < kBeyondTracedSpread && late_ns < kHostSpreadNs;
}

CostInterval IntervalOfCost(const StragglerReport& report) {
  if (report.stragglers.size() != 1) return {};
  return {report.stragglers.front().low, report.stragglers.front().high};
}

void AddCosts(StragglerReport& report) {
  std::stable_sort(report.stragglers.begin(), report.stragglers.end(),
                   [](const Straggler& a, const Straggler& b) { return a.cost > b.cost; });
  report.cost_share = 0;
  for (const Straggler& one : report.stragglers)
    report.cost_share = one.pattern == StragglerPattern::intermittent ? std::min(1.0, report.cost_share + one.cost)
                                                                      : std::max(report.cost_share, one.cost);
}

StragglerReport DecideStragglers(std::span<const Pace> paces, std::span<const Timeline> timelines) {
  return Decision(paces, timelines).Run();
}

StragglerReport EstimateCosts(std::span<const Pace> paces, std::span<const Straggler> known) {
  return Decision(paces, {}).Estimate(known);
}

}  // namespace tacet
