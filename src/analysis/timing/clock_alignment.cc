// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/clock_alignment.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Drift is told from noise only over a while and with enough operations.
constexpr size_t kMinRoundsForDrift = 24;
constexpr int64_t kMinSpanForDriftNs = 2'000'000'000;
constexpr int kMaxPasses = 60;
// Ends of one operation differ by rank for other reasons as well: in a ring each finishes a step after its neighbour.
// An offset below this share of a transfer cannot be told from that.
constexpr double kShareOfTransfer = 0.3;

// Ends of one round: which rank, when (ns from the origin, as double: exact to far below a ns within days).
struct Ends {
  std::vector<std::pair<size_t, double>> members;  // index of rank, ns
  double shortest = 0;                             // duration: the transfer without waiting
};

class Aligner {
 public:
  explicit Aligner(const std::vector<CollectiveRound>& rounds) {
    for (const CollectiveRound& round : rounds) Take(round);
    offset_.assign(ranks_.size(), 0);
    drift_.assign(ranks_.size(), 0);
  }

  ClockAlignment Run() {
    ClockAlignment out;
    if (rounds_.empty()) return out;
    Chain();
    for (int pass = 0; pass < kMaxPasses; ++pass)
      if (!Refine()) break;
    FitDrift();
    return Conclude();
  }

 private:
  void Take(const CollectiveRound& round) {
    const bool pair = IsPointToPoint(round.kind) && !round.coalesced;
    if (!round.synchronises() && !pair) return;
    Ends ends;
    int64_t shortest = INT64_MAX;
    for (const RoundMember& m : round.members) {
      if (m.end_ns == kNoTime || !m.rank.known()) continue;
      if (m.start_ns != kNoTime) shortest = std::min(shortest, m.end_ns - m.start_ns);
      if (origin_ == kNoTime) origin_ = m.end_ns;
      const auto [found, added] = index_.try_emplace(m.rank, ranks_.size());
      if (added) ranks_.push_back(m.rank);
      ends.members.emplace_back(found->second, static_cast<double>(m.end_ns - origin_));
    }
    ends.shortest = shortest == INT64_MAX ? 0 : static_cast<double>(shortest);
    if (ends.members.size() >= 2) rounds_.push_back(std::move(ends));
  }

  // Offsets along a tree that prefers the pairs with most operations in common.
  void Chain() {
    std::map<std::pair<size_t, size_t>, std::vector<double>> pairs;
    for (const Ends& ends : rounds_) {
      // A round of n ranks has n^2 pairs; its neighbours in the list are enough to chain all of them.
      for (size_t i = 1; i < ends.members.size(); ++i)
        for (const size_t j : {size_t{0}, i - 1}) {
          const auto [a, ta] = ends.members[j];
          const auto [b, tb] = ends.members[i];
          pairs[{a, b}].push_back(tb - ta);
          pairs[{b, a}].push_back(ta - tb);
          if (i == 1) break;
        }
    }
    std::vector<std::vector<std::pair<size_t, const std::vector<double>*>>> neighbours(ranks_.size());
    for (const auto& [pair, differences] : pairs) neighbours[pair.first].emplace_back(pair.second, &differences);
    std::priority_queue<std::tuple<size_t, size_t, double>> open;  // operations in common, rank, offset
    reached_.assign(ranks_.size(), false);
    reference_ = BestConnected();
    open.emplace(SIZE_MAX, reference_, 0.0);
    while (!open.empty()) {
      const auto [common, rank, offset] = open.top();
      open.pop();
      if (reached_[rank]) continue;
      reached_[rank] = true;
      offset_[rank] = offset;
      for (const auto& [next, differences] : neighbours[rank])
        if (!reached_[next]) open.emplace(differences->size(), next, offset + Median(*differences));
    }
  }

  size_t BestConnected() const {
    std::vector<size_t> count(ranks_.size(), 0);
    for (const Ends& ends : rounds_)
      for (const auto& [rank, ns] : ends.members) ++count[rank];
    size_t best = 0;
    for (size_t i = 1; i < count.size(); ++i)
      if (count[i] > count[best] || (count[i] == count[best] && ranks_[i] < ranks_[best])) best = i;
    return best;
  }

  double Corrected(size_t rank, double ns) const { return ns - offset_[rank] - drift_[rank] * ns; }

  // Each round's end is the median of its members' corrected ends; each rank's residuals are its distances from those.
  std::vector<std::vector<std::pair<double, double>>> Residuals() const {
    std::vector<std::vector<std::pair<double, double>>> out(ranks_.size());
    for (const Ends& ends : rounds_) {
      std::vector<double> corrected;
      for (const auto& [rank, ns] : ends.members)
        if (reached_[rank]) corrected.push_back(Corrected(rank, ns));
      if (corrected.size() < 2) continue;
      const double center = Median(corrected);
      for (const auto& [rank, ns] : ends.members)
        if (reached_[rank]) out[rank].emplace_back(ns, Corrected(rank, ns) - center);
    }
    return out;
  }

  static std::vector<double> Values(const std::vector<std::pair<double, double>>& residuals) {
    std::vector<double> values;
    values.reserve(residuals.size());
    for (const auto& [ns, residual] : residuals) values.push_back(residual);
    return values;
  }

  // Moves every offset by the median residual; the reference stays at zero. False when nothing moves any more.
  bool Refine() {
    const auto residuals = Residuals();
    double moved = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (residuals[i].empty()) continue;
      const double step = Median(Values(residuals[i]));
      offset_[i] += step;
      moved = std::max(moved, std::fabs(step));
    }
    const double shift = offset_[reference_];
    for (size_t i = 0; i < ranks_.size(); ++i)
      if (reached_[i]) offset_[i] -= shift;
    return moved > 1;
  }

  void FitDrift() {
    for (int pass = 0; pass < 4; ++pass) {
      const auto residuals = Residuals();
      for (size_t i = 0; i < ranks_.size(); ++i) {
        if (residuals[i].size() < kMinRoundsForDrift) continue;
        std::vector<double> x, y;
        for (const auto& [ns, residual] : residuals[i]) {
          x.push_back(ns);
          y.push_back(residual);
        }
        const auto [low, high] = std::minmax_element(x.begin(), x.end());
        if (*high - *low < static_cast<double>(kMinSpanForDriftNs)) continue;
        const LinearFit fit = FitLineRobustly(x, y);
        drift_[i] += fit.slope;
        offset_[i] += fit.intercept;
      }
      // Only differences count: the reference neither drifts nor is off.
      const double drift = drift_[reference_], offset = offset_[reference_];
      for (size_t i = 0; i < ranks_.size(); ++i) {
        if (!reached_[i]) continue;
        drift_[i] -= drift;
        offset_[i] -= offset;
      }
    }
  }

  double TransferOf(size_t rank) const {
    std::vector<double> transfers;
    for (const Ends& ends : rounds_)
      if (std::any_of(ends.members.begin(), ends.members.end(), [&](const auto& m) { return m.first == rank; }))
        transfers.push_back(ends.shortest);
    return Median(std::move(transfers));
  }

  ClockAlignment Conclude() {
    ClockAlignment out;
    out.origin_ns = origin_;
    out.reference = ranks_[reference_];
    const auto residuals = Residuals();
    for (size_t i = 0; i < ranks_.size(); ++i) {
      RankClock clock;
      clock.rank = ranks_[i];
      clock.rounds = reached_[i] ? residuals[i].size() : 0;
      if (clock.rounds > 0) {
        clock.offset_ns = std::llround(offset_[i]);
        clock.drift = drift_[i];
        const double spread = RobustDeviation(Values(residuals[i]));
        clock.spread_ns = std::llround(spread);
        // Standard error of a median: 1.2533 sigma / sqrt(n); both ends of a difference have one.
        clock.error_ns = std::llround(1.2533 * std::sqrt(2.0) * spread / std::sqrt(static_cast<double>(clock.rounds)));
        // Ranks of one host share a clock: an offset within the noise is no offset.
        const double largest =
            std::max(std::fabs(offset_[i]), std::fabs(offset_[i] + drift_[i] * residuals[i].back().first));
        const double noise = 3.0 * static_cast<double>(clock.error_ns + clock.spread_ns);
        clock.applied = i != reference_ && largest > noise && largest > kShareOfTransfer * TransferOf(i);
        out.worst_error_ns = std::max(out.worst_error_ns, clock.error_ns);
      }
      out.clocks.push_back(clock);
    }
    std::sort(out.clocks.begin(), out.clocks.end(),
              [](const RankClock& a, const RankClock& b) { return a.rank < b.rank; });
    return out;
  }

  std::vector<Ends> rounds_;
  std::vector<Rank> ranks_;
  std::map<Rank, size_t> index_;
  std::vector<double> offset_, drift_;
  std::vector<bool> reached_;
  size_t reference_ = 0;
  int64_t origin_ = kNoTime;
};

}  // namespace

const RankClock* ClockAlignment::Find(Rank rank) const {
  const auto at =
      std::lower_bound(clocks.begin(), clocks.end(), rank, [](const RankClock& c, Rank r) { return c.rank < r; });
  return at != clocks.end() && at->rank == rank ? &*at : nullptr;
}

int64_t ClockAlignment::Align(Rank rank, int64_t ns) const {
  const RankClock* clock = Find(rank);
  if (ns == kNoTime || !clock || !clock->applied) return ns;
  return ns - clock->offset_ns - std::llround(clock->drift * static_cast<double>(ns - origin_ns));
}

ClockAlignment AlignClocks(const std::vector<CollectiveRound>& rounds) { return Aligner(rounds).Run(); }

void ApplyAlignment(const ClockAlignment& alignment, std::vector<CollectiveRound>& rounds) {
  for (CollectiveRound& round : rounds)
    for (RoundMember& m : round.members) {
      m.enter_ns = alignment.Align(m.rank, m.enter_ns);
      m.start_ns = alignment.Align(m.rank, m.start_ns);
      m.end_ns = alignment.Align(m.rank, m.end_ns);
    }
}

}  // namespace tacet
