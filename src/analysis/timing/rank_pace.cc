// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/rank_pace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Of a long record this share of the steps is left out at each end: hiccups, saving, the profiler's own steps.
constexpr double kTrim = 0.15;
// With so many steps a rank's own spread is known; with fewer that of all ranks stands for it.
constexpr size_t kOwnSpread = 8;
// A step counts as late when the rank's lateness is this share of it.
constexpr double kLateStep = 0.02;
// Clocks and counters resolve no better than this share of a step.
constexpr double kLeastDeviation = 0.002;
// A stall stands out of the noise, is this share of a step, and is the rank's alone.
constexpr double kStallDeviations = 4, kMinStall = 0.15, kAlone = 2;
// So many that come at any time leave no third of the record empty, but for one in twenty such ranks.
constexpr size_t kManyStalls = 10, kSomeStalls = 5;
// How often a rank of a healthy job has a hiccup of this share of a step, by the healthy recordings (4 and 8 ranks on
// one machine: 4 of a quarter to a half of a step in some 600 steps of a rank, none of a whole step); twice as large,
// four times as rare.
constexpr double kHiccups = 0.01, kHiccupSize = 0.25;

// A host that shares its core with another process is slower by up to a half for as long as that lasts: 20 steps in a
// row in healthy FSDP jobs, by up to 23 ms. Stalls in adjacent steps are one event, but for those of nearly a step or
// of more than that.
constexpr double kEachCounts = 0.75, kEachCountsNs = 25'000'000;
constexpr size_t kStepsToDivide = 24;  // in thirds of fewer steps chance says too much

// Which third of a record a step is in.
size_t ThirdOf(size_t step, size_t steps) { return std::min<size_t>(2, step * 3 / std::max<size_t>(1, steps)); }

// What a kind of record cannot see, as a share of the step: a trace shows what hid a wait; kernels as the host noticed
// them are up to a poll late; a duration alone says nothing of what went on beside it.
double Unseen(PaceSource source) {
  switch (source) {
    case PaceSource::traces: return 0.002;
    case PaceSource::inspector:
    case PaceSource::black_boxes: return 0.004;
    case PaceSource::flight_records: return 0.006;
  }
  return 0;
}

// One rank's known lateness, as shares of the typical step, in order.
struct Series {
  size_t row = 0;
  std::vector<double> shares;
  std::vector<size_t> steps;
};

// How alike neighbouring steps are, over all ranks: 0 where each step is drawn anew, less where one makes up for the
// one before, as an operation does that ended late on a rank.
double Memory(const std::vector<Series>& all, double deviation) {
  double products = 0, squares = 0;
  for (const Series& one : all) {
    const double usual = Median(one.shares);
    const auto off = [&](size_t i) { return std::clamp(one.shares[i] - usual, -3 * deviation, 3 * deviation); };
    for (size_t i = 0; i < one.shares.size(); ++i) {
      squares += off(i) * off(i);
      if (i > 0) products += off(i) * off(i - 1);
    }
  }
  return squares > 0 ? std::clamp(products / squares, -0.4, 0.8) : 0;
}

// Of all ranks together. The median rank's lateness is 0 in its step, so a median of distances would say too little:
// this is the distance that 68 % of a normal sample keep.
double PooledDeviation(const std::vector<Series>& all) {
  std::vector<double> rest;
  for (const Series& one : all) {
    const double usual = Median(one.shares);
    for (const double share : one.shares) rest.push_back(std::fabs(share - usual));
  }
  return std::max(kLeastDeviation, Quantile(std::move(rest), 0.6827));
}

// The deviation that belongs to a trimmed mean (Yuen): of the values with the extremes drawn in, over the share left.
double WinsorizedDeviation(std::vector<double> values) {
  const double low = Quantile(values, kTrim), high = Quantile(values, 1 - kTrim);
  for (double& value : values) value = std::clamp(value, low, high);
  return std::sqrt(Variance(values)) / (1 - 2 * kTrim);
}

// P(at least k) of a Poisson count.
double ChanceOfAtLeast(size_t k, double expected) {
  double term = std::exp(-expected), below = 0;
  for (size_t i = 0; i < k; ++i) {
    below += term;
    term *= expected / static_cast<double>(i + 1);
  }
  return std::max(0.0, 1 - below);
}

class Summary {
 public:
  explicit Summary(const Pace& pace) : pace_(pace) {}

  PaceSummary Run() {
    out_.source = pace_.source;
    out_.steps = pace_.steps();
    out_.operations = pace_.operations;
    const TypicalStep typical = FindTypicalStep(pace_.step_ns);
    out_.step_ns = typical.ns;
    runs_ahead_ = typical.runs_ahead;
    if (out_.step_ns <= 0) return std::move(out_);
    for (size_t r = 0; r < pace_.ranks.size(); ++r) Take(r);
    deviation_ = PooledDeviation(all_);
    const double memory = Memory(all_, deviation_);
    size_t values = 0;
    for (const Series& one : all_) values += one.shares.size();
    for (const Series& one : all_) out_.ranks.push_back(Estimate(one, (1 + memory) / (1 - memory), values));
    CountStalls();
    return std::move(out_);
  }

 private:
  void Take(size_t r) {
    Series one{.row = r};
    for (size_t s = 0; s < pace_.steps(); ++s) {
      if (std::isnan(pace_.late(r, s))) continue;
      one.shares.push_back(pace_.late(r, s) / out_.step_ns);
      one.steps.push_back(s);
    }
    if (!one.shares.empty()) all_.push_back(std::move(one));
  }

  RankPace Estimate(const Series& series, double inflation, size_t values) const {
    RankPace one;
    one.rank = pace_.ranks[series.row];
    one.source = pace_.source;
    one.peers = pace_.peers[series.row];
    one.rounds = pace_.rounds[series.row];
    one.last = pace_.last[series.row];
    one.steps = series.shares.size();
    one.counted_again = pace_.counted_again.contains(one.rank);
    double length = 0;
    for (size_t i = 0; i < one.steps; ++i) {
      const double ns = series.shares[i] * out_.step_ns;
      one.mean_ns += ns;
      one.worst_ns = std::max(one.worst_ns, ns);
      one.late_steps += ns >= kLateStep * pace_.step_ns[series.steps[i]];
      length += pace_.step_ns[series.steps[i]];
    }
    one.share = length > 0 ? one.mean_ns / length : 0;
    const auto n = static_cast<double>(one.steps);
    one.mean_ns /= n;
    one.mean = TrimmedMean(series.shares, kTrim);
    one.median = one.least_third = Median(series.shares);
    if (one.steps >= kStepsToDivide) {
      std::vector<double> thirds[3];
      for (size_t i = 0; i < one.steps; ++i) thirds[ThirdOf(i, one.steps)].push_back(series.shares[i]);
      for (std::vector<double>& third : thirds) one.least_third = std::min(one.least_third, Median(std::move(third)));
    }
    const bool own = one.steps >= kOwnSpread;
    const double deviation = own ? std::max(deviation_, WinsorizedDeviation(series.shares)) : deviation_;
    const double unseen = Unseen(pace_.source);
    one.error = std::sqrt(deviation * deviation * inflation / n + unseen * unseen);
    SetSharedOf(series, one);
    one.freedom = own ? n - 1 : std::max(1.0, static_cast<double>(values - all_.size()));
    return one;
  }

  void SetSharedOf(const Series& series, RankPace& one) const {
    if (pace_.shared_ns.empty()) return;
    std::vector<double> shares;
    for (const size_t step : series.steps)
      if (const double ns = pace_.shared(series.row, step); !std::isnan(ns)) shares.push_back(ns / out_.step_ns);
    if (shares.size() < 2) return;
    one.shared = TrimmedMean(shares, kTrim);
    one.shared_error = WinsorizedDeviation(shares) / std::sqrt(static_cast<double>(shares.size()));
  }

  // A stall of a pipeline's rank is one only as far as its peers wait for it.
  double StallOf(const Series& series, size_t k) const {
    if (pace_.shared_ns.empty()) return series.shares[k];
    const double shared = pace_.shared(series.row, series.steps[k]) / out_.step_ns;
    return std::isnan(shared) ? series.shares[k] : std::min(series.shares[k], shared);
  }

  double Latest(size_t step) const {
    double latest = 0;
    for (size_t r = 0; r < pace_.ranks.size(); ++r) latest = std::fmax(latest, pace_.late(r, step));
    return latest;
  }

  // As far as a rank was late by itself: where the pause of one rank lies across the end of a step, those that share
  // operations with it have waited for it in one of the two steps, and are late by that in the other.
  double LateByItself(size_t row, size_t step) const {
    const double late = pace_.late(row, step);
    double waited = 0;
    for (const size_t beside : {step - 1, step + 1})
      if (beside < pace_.steps() && pace_.late(row, beside) < 0) waited = std::max(waited, -pace_.late(row, beside));
    return late > 0 ? std::max(0.0, late - waited) : late;
  }

  // The largest share of its peers in a step. Of two ranks one is as much too early as the other is late.
  double LatestPeer(size_t step, size_t row) const {
    double latest = -1e9;
    for (const Series& one : all_)
      if (one.row != row && pace_.peers[one.row] == pace_.peers[row] && !std::isnan(pace_.late(one.row, step)))
        latest = std::max(latest, LateByItself(one.row, step) / out_.step_ns);
    return latest > -1e9 ? latest : 0;
  }

  // How much longer than the other steps these and their neighbours are together: what holds up the end of one may show
  // as the length of the next.
  double LongerAround(const std::vector<size_t>& stalled) const {
    std::vector<bool> around(pace_.steps(), false);
    for (const size_t step : stalled)
      for (size_t s = step > 0 ? step - 1 : 0; s < std::min(step + 2, pace_.steps()); ++s) around[s] = true;
    std::vector<double> others;
    for (size_t s = 0; s < pace_.steps(); ++s)
      if (!std::binary_search(stalled.begin(), stalled.end(), s)) others.push_back(pace_.step_ns[s]);
    const double usual = others.empty() ? out_.step_ns : Median(std::move(others));
    double longer = 0;
    for (size_t s = 0; s < pace_.steps(); ++s)
      if (around[s]) longer += pace_.step_ns[s] - usual;
    return longer;
  }

  // The job paused here, and not for a rank that was late: to save, or for a profiler. Who takes longest says nothing.
  bool IsAroundPause(size_t step) const {
    for (size_t s = step > 0 ? step - 1 : 0; s < std::min(step + 2, pace_.steps()); ++s) {
      if (pace_.step_ns[s] < kPauseOfJob * out_.step_ns) continue;
      if (Latest(s) < (pace_.step_ns[s] - out_.step_ns) / 2) return true;
    }
    return false;
  }

  // How late each rank is now and then: what one step in twenty exceeds.
  std::vector<double> LateNowAndThen() const {
    constexpr double kNowAndThen = 0.95;
    std::vector<double> out;
    out.reserve(all_.size());
    for (const Series& one : all_) {
      std::vector<double> own;
      for (const size_t step : one.steps) own.push_back(LateByItself(one.row, step) / out_.step_ns);
      out.push_back(std::max(0.0, Quantile(std::move(own), kNowAndThen)));
    }
    return out;
  }

  // Of the peers of each rank the one that is most so.
  std::vector<double> LatestBeside() const {
    const std::vector<double> own = LateNowAndThen();
    std::map<uint32_t, std::pair<size_t, double>> first, second;  // by peers: whose, and how much
    for (size_t i = 0; i < own.size(); ++i) {
      std::pair<size_t, double> one{i, own[i]};
      auto& most = first.try_emplace(pace_.peers[all_[i].row], i, -1.0).first->second;
      if (one.second > most.second) std::swap(one, most);
      auto& next = second.try_emplace(pace_.peers[all_[i].row], i, 0.0).first->second;
      if (one.second > next.second) next = one;
    }
    std::vector<double> out;
    out.reserve(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const uint32_t peers = pace_.peers[all_[i].row];
      out.push_back(first[peers].first == i ? second[peers].second : first[peers].second);
    }
    return out;
  }

  // Stalls of one rank that have nothing to do with each other.
  size_t CountEvents(const std::vector<size_t>& steps, const std::vector<double>& sizes) const {
    size_t events = 0;
    for (size_t i = 0; i < steps.size(); ++i)
      events += i == 0 || steps[i] > steps[i - 1] + 1 ||
                ((sizes[i] >= kEachCounts || sizes[i] * out_.step_ns >= kEachCountsNs) && !IsAroundPause(steps[i]));
    return events;
  }

  bool KnowsLengthOfSteps() const {
    return std::any_of(pace_.step_ns.begin(), pace_.step_ns.end(),
                       [&](double ns) { return ns != pace_.step_ns.front(); });
  }

  void CountStalls() {
    const double least = std::max(kMinStall, kStallDeviations * deviation_);
    std::vector<std::vector<double>> sizes(all_.size());  // of each rank's stalls
    std::vector<std::vector<size_t>> stalled(all_.size());
    double all_steps = 0;
    const bool known_lengths = KnowsLengthOfSteps();
    const std::vector<double> beside = LatestBeside();
    for (size_t i = 0; i < all_.size(); ++i) {
      double gained = 0, greatest = 0, sum = 0, length = 0;
      size_t by_third[3] = {};
      for (size_t k = 0; k < all_[i].shares.size(); ++k) {
        const double share = StallOf(all_[i], k);
        const double step_ns = pace_.step_ns[all_[i].steps[k]];
        const double other = share < least ? 0 : LatestPeer(all_[i].steps[k], all_[i].row);
        const bool stalls = share >= least && share >= kAlone * other;
        if (stalls || step_ns < kPauseOfJob * out_.step_ns) length += step_ns;
        if (!stalls) continue;
        sizes[i].push_back(share);
        ++by_third[ThirdOf(k, all_[i].shares.size())];
        sum += share;
        stalled[i].push_back(all_[i].steps[k]);
        gained += (share - other) * out_.step_ns;
        greatest = std::max(greatest, (share - other) * out_.step_ns);
      }
      all_steps += static_cast<double>(all_[i].shares.size());
      if (sizes[i].empty()) continue;
      Stalls& stalls = out_.ranks[i].stalls;
      stalls.count = sizes[i].size();
      stalls.mean_ns = sum / static_cast<double>(stalls.count) * out_.step_ns;
      stalls.cost = length > 0 ? gained / length : 0;
      stalls.usual_cost = stalls.count < kSomeStalls ? stalls.cost : (gained - greatest) / length;
      stalls.z = Median(sizes[i]) / deviation_;
      if (known_lengths && gained > 0) stalls.lengthens = LongerAround(stalled[i]) / gained;
      // Where other waits hide a part of it.
      if (!runs_ahead_ && stalls.lengthens > 0 && stalls.lengthens < 1)
        stalls.cost *= stalls.lengthens, stalls.usual_cost *= stalls.lengthens;
      stalls.usual = Median(sizes[i]);
      stalls.beside = beside[i];
      stalls.smallest = *std::min_element(sizes[i].begin(), sizes[i].end());
      stalls.throughout = stalls.count < kManyStalls || *std::min_element(by_third, by_third + 3) > 0;
    }
    for (size_t i = 0; i < all_.size(); ++i)
      if (!sizes[i].empty()) SetChance(i, sizes, stalled, all_steps);
  }

  // As many stalls of about this size, by chance? The others of this job tell how often they come, and healthy machines
  // do where the record is short. What is far smaller is something else.
  void SetChance(size_t i, const std::vector<std::vector<double>>& sizes,
                 const std::vector<std::vector<size_t>>& stalled, double all_steps) {
    constexpr double kAlike = 0.5;
    const auto steps = static_cast<double>(all_[i].shares.size());
    const double others = all_steps - steps;
    const double smallest = *std::min_element(sizes[i].begin(), sizes[i].end());
    double alike = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (k == i) continue;
      std::vector<double> like_these;
      std::vector<size_t> at;
      for (size_t n = 0; n < sizes[k].size(); ++n)
        if (sizes[k][n] >= kAlike * smallest) like_these.push_back(sizes[k][n]), at.push_back(stalled[k][n]);
      alike += static_cast<double>(CountEvents(at, like_these));
    }
    const double usual = kHiccups * std::pow(kHiccupSize / std::max(kHiccupSize, smallest), 2);
    const double seen = alike > 0 && others > 0 ? (alike + 0.5) / others : 0;
    const double chance = ChanceOfAtLeast(CountEvents(stalled[i], sizes[i]), std::max(usual, seen) * steps);
    out_.ranks[i].stalls.chance = std::min(1.0, chance * static_cast<double>(all_.size()));
  }

  const Pace& pace_;
  PaceSummary out_;
  std::vector<Series> all_;
  double deviation_ = 0;
  bool runs_ahead_ = false;
};

}  // namespace

TypicalStep FindTypicalStep(const std::vector<double>& step_ns) {
  // Hosts that wait for their GPU in every tenth step issue the nine between too fast: the mean of so many is the step,
  // where it differs from the median by so much. Usually, so that a pause of the job now and then changes neither.
  constexpr size_t kCycle = 10;
  constexpr double kRunsAhead = 0.1;
  TypicalStep out{step_ns.empty() ? 0 : Median(step_ns)};
  if (out.ns <= 0 || step_ns.size() < 2 * kCycle) return out;
  std::vector<double> means, over_median;
  for (size_t s = kCycle; s <= step_ns.size(); ++s) {
    const std::vector<double> cycle(step_ns.begin() + static_cast<ptrdiff_t>(s - kCycle),
                                    step_ns.begin() + static_cast<ptrdiff_t>(s));
    means.push_back(Mean(cycle));
    if (const double median = Median(cycle); median > 0) over_median.push_back(means.back() / median);
  }
  out.runs_ahead = !over_median.empty() && Median(std::move(over_median)) > 1 + kRunsAhead;
  if (out.runs_ahead) out.ns = Median(std::move(means));
  return out;
}

PaceSummary SummarisePace(const Pace& pace) { return Summary(pace).Run(); }

double ShareOfStepsLater(const Pace& pace, Rank first, Rank second) {
  const auto row = [&](Rank rank) {
    return static_cast<size_t>(std::lower_bound(pace.ranks.begin(), pace.ranks.end(), rank) - pace.ranks.begin());
  };
  const size_t a = row(first), b = row(second);
  double later = 0, all = 0;
  if (a < pace.ranks.size() && pace.ranks[a] == first && b < pace.ranks.size() && pace.ranks[b] == second)
    for (size_t s = 0; s < pace.steps(); ++s) {
      const double first_late = pace.shared_ns.empty() ? pace.late(a, s) : pace.shared(a, s);
      const double second_late = pace.shared_ns.empty() ? pace.late(b, s) : pace.shared(b, s);
      if (std::isnan(first_late) || std::isnan(second_late)) continue;
      later += first_late > second_late;
      ++all;
    }
  return later / all;
}

}  // namespace tacet
