// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/slow_stage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Ranks along the sends, one rank a stage; from the end with the smaller number. Empty where they are no chain.
std::vector<Rank> ChainFrom(Rank start, const std::map<Rank, std::set<Rank>>& neighbours) {
  std::vector<Rank> chain = {start};
  while (true) {
    const std::set<Rank>& own = neighbours.at(chain.back());
    if (own.size() > 2) return {};
    const auto next = std::find_if(own.begin(), own.end(),
                                   [&](Rank rank) { return chain.size() < 2 || rank != chain[chain.size() - 2]; });
    if (next == own.end()) return chain;
    chain.push_back(*next);
  }
}

std::vector<std::vector<Rank>> FindChains(std::span<const Transfer> transfers) {
  std::map<Rank, std::set<Rank>> neighbours;
  for (const Transfer& one : transfers) {
    if (!one.peer.known()) continue;
    neighbours[one.rank].insert(one.peer);
    neighbours[one.peer].insert(one.rank);
  }
  std::vector<std::vector<Rank>> chains;
  std::set<Rank> seen;
  for (const auto& [rank, own] : neighbours) {
    if (own.size() != 1 || seen.count(rank)) continue;
    chains.push_back(ChainFrom(rank, neighbours));
    if (chains.back().size() != chains.front().size() || chains.back().size() < 2) return {};
    seen.insert(chains.back().begin(), chains.back().end());
  }
  return seen.size() == neighbours.size() ? chains : std::vector<std::vector<Rank>>();
}

// Of one rank, by step.
struct StageTime {
  std::vector<int64_t> starts;             // when its host issued the first send or receive of each
  std::vector<double> sends, collectives;  // ns in them
  std::vector<double> host;                // what its host was busy
  double messages = 0;                     // to another rank

  double length(size_t step) const { return static_cast<double>(starts[step + 1] - starts[step]); }
};

class StageComparison {
  static constexpr size_t kLeastSteps = 8;
  static constexpr double kExtremes = 0.15, kSteadySteps = 0.6, kLonger = 0.02, kClockSlackNs = 50'000;
  // Own time over that of the next stage. Of compute alone, which traces show, this much is beyond doubt; in a healthy
  // pipeline whose hosts set the pace the last stage has 1.6 times the own time.
  static constexpr double kFarHeavier = 1.5, kLeastGain = 0.10;
  // Of the step: what the stage waits beyond the way of one microbatch. Recorded: 0.04 of a delayed stage, 0.27 of the
  // slowest one in the same job without the delay.
  static constexpr double kUnexplained = 0.10;

 public:
  StageComparison(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers)
      : chains_(FindChains(transfers)) {
    if (chains_.empty()) return;
    for (const Transfer& one : transfers)
      if (one.at_ns != kNoTime) transfers_[one.rank].push_back(&one);
    for (auto& [rank, own] : transfers_)
      std::stable_sort(own.begin(), own.end(), [](const auto* a, const auto* b) { return a->at_ns < b->at_ns; });
    FindSteps();
    if (good_.size() < kLeastSteps) return;
    for (const auto& chain : chains_)
      for (const Rank rank : chain) Measure(rank);
    for (const CollectiveRound& round : rounds) TakeRound(round);
  }

  // What takes longest, if it does so beyond doubt.
  void AddTo(StragglerReport& report) {
    if (good_.size() < kLeastSteps || (chains_[0].size() == 2 && IsExchange())) return;
    std::vector<double> least, most;  // own time by stage: of the replica that has least, and most
    for (size_t s = 0; s < chains_[0].size(); ++s) {
      least.push_back(MeanOf(OwnOf(ExtremeOf(s, false), true)));
      most.push_back(MeanOf(OwnOf(ExtremeOf(s, true), false)));
    }
    const auto heavy = static_cast<size_t>(std::max_element(least.begin(), least.end()) - least.begin());
    most[heavy] = -1;
    const auto next = static_cast<size_t>(std::max_element(most.begin(), most.end()) - most.begin());
    if (*std::min_element(least.begin(), least.end()) <= 0 || least[heavy] < kFarHeavier * most[next]) return;
    const Rank rank = ExtremeOf(heavy, false);
    if (Unexplained(rank) > kUnexplained || !IsLaterInNearlyEveryStep(rank, heavy)) return;
    const std::vector<double> more = Minus(OwnOf(rank, true), OwnOf(ExtremeOf(next, true), false));
    if (TestPairs(more).p > StragglerLimits::kFalseAlarms / static_cast<double>(times_.size())) return;
    const std::vector<double> gain = GainOf(more, heavy);
    const double cost = TrimmedMean(gain, kExtremes);
    if (cost < kLeastGain || IsWithinHostSpread(cost, cost * step_ns_, MeanOf(more) * step_ns_, false)) return;
    Straggler found{.origin = chains_.size() > 1 ? StragglerOrigin::stage : StragglerOrigin::unknown,
                    .trust = Trust::likely,
                    .late_ns = std::llround(MeanOf(more) * step_ns_),
                    .steps = good_.size(),
                    .explained = chains_.size() > 1 ? 1.0 : 0.0,
                    .among_stages = true,
                    .cost = std::min(1.0, cost)};
    found.late_steps =
        static_cast<size_t>(std::count_if(more.begin(), more.end(), [](double one) { return one >= kLonger; }));
    const auto n = static_cast<double>(gain.size());
    const double reach = TailPointOfT(0.05, n - 1) * RobustDeviation(gain) / std::sqrt(n);
    found.low = std::max(0.0, cost - reach);
    found.high = std::min(1.0, cost + reach);
    for (const auto& chain : chains_) {
      found.rank = chain[heavy];
      report.stragglers.push_back(found);
    }
    Describe(report);
    AddCosts(report);
  }

 private:
  void FindSteps() {
    std::vector<CollectiveRound> own;
    for (const Transfer* one : transfers_[chains_[0].front()]) {
      CollectiveRound& round = own.emplace_back();
      round.kind = one->kind;
      round.bytes = one->bytes;
      round.members.push_back({.rank = one->rank, .enter_ns = one->at_ns});
    }
    starts_ = FindPeriodStarts(own);
    if (starts_.size() < kLeastSteps + 1) return;
    std::vector<double> lengths;
    for (size_t s = 0; s + 1 < starts_.size(); ++s) lengths.push_back(static_cast<double>(starts_[s + 1] - starts_[s]));
    const size_t warmup = std::max<size_t>(3, lengths.size() / 10);
    step_ns_ = Median(std::vector<double>(lengths.begin() + static_cast<ptrdiff_t>(warmup), lengths.end()));
    std::vector<double> kept;
    for (size_t s = warmup; s < lengths.size(); ++s) {
      if (lengths[s] <= 0 || lengths[s] >= kPauseOfJob * step_ns_) continue;
      good_.push_back(s);
      kept.push_back(lengths[s]);
    }
    if (step_ns_ <= 0 || RobustDeviation(kept) > kSteadySteps * step_ns_) good_.clear();
  }

  // A long wait that one step begins with another counts to the step before where all are cut at one moment: each rank
  // has steps of its own, of as many operations as there are to one of the first stage.
  std::vector<int64_t> StartsOf(Rank rank) {
    const std::vector<const Transfer*>& own = transfers_[rank];
    const auto at = [&](int64_t ns) {
      return static_cast<size_t>(
          std::lower_bound(own.begin(), own.end(), ns, [](const auto* one, int64_t x) { return one->at_ns < x; }) -
          own.begin());
    };
    const size_t first = at(starts_.front()), last = at(starts_.back()), steps = starts_.size() - 1;
    const size_t each = (last - first + steps / 2) / steps;
    const auto off = static_cast<double>(last - first) - static_cast<double>(each * steps);
    if (each == 0 || std::fabs(off) > static_cast<double>(each)) return starts_;
    std::vector<int64_t> out;
    for (size_t s = 0; s <= steps; ++s)
      out.push_back(first + s * each < own.size() ? own[first + s * each]->at_ns : std::max(out.back(), starts_[s]));
    return out;
  }

  static std::optional<size_t> StepAt(const StageTime& own, int64_t ns) {
    const auto after = std::upper_bound(own.starts.begin(), own.starts.end(), ns);
    if (after == own.starts.begin() || after == own.starts.end()) return std::nullopt;
    return static_cast<size_t>(after - own.starts.begin()) - 1;
  }

  // A host that issues an operation when those before have ended may have waited for them. Ends follow from lengths,
  // and are early by what the GPU computes between: the host is taken for busier than it is.
  void Measure(Rank rank) {
    StageTime& own = times_[rank];
    own.starts = StartsOf(rank);
    own.sends.assign(own.starts.size(), 0);
    own.collectives = own.host = own.sends;
    double before = 0, end = -1e300;
    for (const Transfer* one : transfers_[rank]) {
      const auto at = static_cast<double>(one->at_ns - starts_[0]), length = static_cast<double>(one->duration_ns);
      if (const auto step = StepAt(own, one->at_ns)) {
        own.sends[*step] += length;
        own.messages += one->kind == OpKind::send && one->peer.known();
        if (end > -1e300) own.host[*step] += at < end - kClockSlackNs ? at - before : at - std::max(before, end);
      }
      before = at;
      end = std::max(at, end) + length;
    }
  }

  void TakeRound(const CollectiveRound& round) {
    if (IsPointToPoint(round.kind)) return;
    for (const RoundMember& m : round.members) {
      const auto own = times_.find(m.rank);
      if (own == times_.end() || m.enter_ns == kNoTime || m.duration_ns < 0) continue;
      if (const auto step = StepAt(own->second, m.enter_ns))
        own->second.collectives[*step] += static_cast<double>(m.duration_ns);
    }
  }

  // Shares of the typical step, by step. Collectives may run beside the work: all of them count, or none.
  std::vector<double> OwnOf(Rank rank, bool without_collectives) const {
    const StageTime& one = times_.at(rank);
    std::vector<double> out;
    for (const size_t s : good_)
      out.push_back((one.length(s) - one.sends[s] - (without_collectives ? one.collectives[s] : 0)) / step_ns_);
    return out;
  }

  static double MeanOf(const std::vector<double>& values) { return TrimmedMean(values, kExtremes); }

  static std::vector<double> Minus(std::vector<double> values, const std::vector<double>& others) {
    for (size_t i = 0; i < values.size(); ++i) values[i] -= others[i];
    return values;
  }

  // Of the replicas of a stage the one with most own time, or with least.
  Rank ExtremeOf(size_t stage, bool most) const {
    Rank out;
    double extreme = 0;
    for (const auto& chain : chains_) {
      const double own = MeanOf(OwnOf(chain[stage], !most));
      if (out.known() && (most ? own <= extreme : own >= extreme)) continue;
      out = chain[stage], extreme = own;
    }
    return out;
  }

  // How much longer the rank waits in its sends and receives than one microbatch takes in the other stages.
  double Unexplained(Rank rank) const {
    const auto& chain = *std::find_if(chains_.begin(), chains_.end(), [&](const auto& one) {
      return std::find(one.begin(), one.end(), rank) != one.end();
    });
    // As many as the first stage sends on, and as many as come back to it.
    const double per_step = times_.at(chain.front()).messages / static_cast<double>(starts_.size() - 1);
    std::vector<double> waits;
    for (const size_t s : good_) waits.push_back(times_.at(rank).sends[s] / step_ns_);
    double way = 0;
    for (const Rank other : chain)
      if (other != rank) way += MeanOf(OwnOf(other, true)) / std::max(1.0, per_step);
    return MeanOf(waits) - way;
  }

  bool IsLaterInNearlyEveryStep(Rank rank, size_t stage) const {
    const std::vector<double> own = OwnOf(rank, true);
    const double needed =
        chains_[0].size() == 2 ? StragglerLimits::kNearlyEveryStepOfOne : StragglerLimits::kNearlyEveryStep;
    for (const auto& chain : chains_)
      for (size_t s = 0; s < chain.size(); ++s) {
        if (s == stage) continue;
        const std::vector<double> more = Minus(own, OwnOf(chain[s], true));
        const auto later = std::count_if(more.begin(), more.end(), [](double one) { return one > 0; });
        if (static_cast<double>(later) < needed * static_cast<double>(more.size())) return false;
      }
    return true;
  }

  // By step: up to the pace of the next stage, and no further than the busiest of the other hosts allows.
  std::vector<double> GainOf(const std::vector<double>& more, size_t stage) const {
    std::vector<double> out = more;
    for (const auto& chain : chains_)
      for (size_t s = 0; s < chain.size(); ++s) {
        if (s == stage) continue;
        const StageTime& other = times_.at(chain[s]);
        std::vector<double> left;
        for (const size_t step : good_) left.push_back((other.length(step) - other.host[step]) / step_ns_);
        if (MeanOf(left) < MeanOf(out)) out = std::move(left);
      }
    return out;
  }

  // Two ranks that send to each other at the same time, or in turn, are no stages: of a pipeline one sends first.
  bool IsExchange() const {
    const auto sends_first = [&](Rank rank) {
      const auto& own = transfers_.at(rank);
      const auto first = std::lower_bound(own.begin(), own.end(), starts_[good_.front()],
                                          [](const Transfer* one, int64_t ns) { return one->at_ns < ns; });
      return first != own.end() && (*first)->kind == OpKind::send;
    };
    return sends_first(chains_[0][0]) == sends_first(chains_[0][1]);
  }

  // The table of ranks, where nothing else has filled it.
  void Describe(StragglerReport& report) const {
    if (!report.ranks.empty()) return;
    std::vector<double> all;
    for (const auto& [rank, unused] : times_) all.push_back(MeanOf(OwnOf(rank, true)));
    const double usual = Median(all);
    for (const auto& [rank, unused] : times_) {
      const std::vector<double> own = OwnOf(rank, true);
      const auto late = std::count_if(own.begin(), own.end(), [&](double one) { return one - usual >= kLonger; });
      report.ranks.push_back(
          {.rank = rank,
           .rounds = transfers_.at(rank).size(),
           .steps = own.size(),
           .late_steps = static_cast<size_t>(late),
           .median_share = Median(own) - usual,
           .mean_ns = std::llround((MeanOf(own) - usual) * step_ns_),
           .worst_ns = std::llround((*std::max_element(own.begin(), own.end()) - usual) * step_ns_)});
      report.rounds += transfers_.at(rank).size();
    }
    report.step_ns = std::llround(step_ns_);
    report.steps = good_.size();
    report.source = Name(PaceSource::flight_records);
  }

  const std::vector<std::vector<Rank>> chains_;
  std::map<Rank, std::vector<const Transfer*>> transfers_;  // in the order of issue
  std::vector<int64_t> starts_;
  std::vector<size_t> good_;  // steps that count
  double step_ns_ = 0;
  std::map<Rank, StageTime> times_;
};

}  // namespace

void AddSlowStage(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers,
                  StragglerReport& report) {
  if (report.stragglers.empty() && !transfers.empty()) StageComparison(rounds, transfers).AddTo(report);
}

}  // namespace tacet
