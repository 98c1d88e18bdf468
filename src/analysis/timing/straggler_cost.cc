// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler_cost.h"

#include <algorithm>
#include <cmath>

#include "analysis/timing/pace_replay.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr double kTrimmedGains = 0.15;
// A replay of ends that are known no better than to this share of the lateness tells nothing about it.
constexpr double kMostNoise = 1;
// Hosts differ by some time, and what comes of it is no fault. A rank that is later than this is worth a word even
// where other waits hide most of it, unless the replay shows that they do: it errs by a few percent of the step, so it
// cannot show this of a small lateness. Recorded: a delay of the GPU 31 % of the step, which cost little; hosts of a
// healthy job 12 %, of which 2 % cost something.
constexpr int64_t kLateAtAnyCostNs = 3'000'000;
constexpr double kLateAtAnyCost = 0.25, kSurelyHidden = 0.08;

// A lateness of less than this is hidden where the replay gains nothing, however noisy it is.
constexpr double kLittle = 0.1;
// Of what the others waited: a replay that gains no more than the first is believed, one that gains as much as the
// second does not contradict it.
constexpr double kHides = 0.6, kHidesNothing = 0.8;

double ShareOf(const std::vector<double>& gains, const ReplayedGain& replay) {
  return TrimmedMean(gains, kTrimmedGains) / replay.step_ns;
}

void Bound(const ReplayedGain& replay, Straggler& one) {
  const double least = std::max(0.0, ShareOf(replay.least, replay));
  double most = std::max(least, ShareOf(replay.most, replay));
  const double told = most / one.cost;
  // What operations of several groups wait for in each other is a guess where their starts are not known, and one that
  // hides too much: half of what it hides counts.
  if (replay.several_groups) most = std::max(most, (most + one.cost) / 2);
  // The replay errs by up to a quarter, mostly downwards: where it gains nearly as much as the others waited, nothing
  // shows that any of it was hidden. A wait that was counted again and cut to the host's lag is no measure of that.
  if (told < 1 && most < one.cost && !one.counted_again)
    most += std::clamp((told - kHides) / (kHidesNothing - kHides), 0.0, 1.0) * (one.cost - most);
  const double cost = std::clamp(one.cost, least, most);
  if (cost == one.cost) return;
  one.cost = std::min(1.0, cost);
  const auto n = static_cast<double>(replay.least.size());
  const double reach = TailPointOfT(0.05, n - 1) * RobustDeviation(replay.least) / replay.step_ns / std::sqrt(n);
  one.low = std::max(0.0, one.cost - reach);
  one.high = std::min(1.0, one.cost + reach);
}

}  // namespace

void StateShares(int64_t step_ns, StragglerReport& report) {
  const auto share = [&](int64_t ns) { return static_cast<double>(ns) / static_cast<double>(step_ns); };
  for (Straggler& one : report.stragglers) one.share = share(one.late_ns);
  for (RankLateness& one : report.ranks) one.share = share(one.mean_ns);
}

void LimitCosts(std::span<const std::vector<CollectiveRound>* const> records, StragglerReport& report) {
  for (Straggler& one : report.stragglers) {
    if (one.pattern == StragglerPattern::intermittent) continue;  // steps with and without a stall tell what it costs
    for (const std::vector<CollectiveRound>* rounds : records) {
      const ReplayedGain replay = ReplayWithPeers(*rounds, one.rank);
      if (!replay.known) continue;
      const double gain = ShareOf(replay.least, replay);
      if (replay.noise_ns > kMostNoise * std::max(gain * replay.step_ns, static_cast<double>(one.late_ns))) {
        if (gain < StragglerLimits::kMinCost && one.cost < kLittle) one.cost = std::max(0.0, gain);
        continue;
      }
      Bound(replay, one);
      break;
    }
  }
  AddCosts(report);
}

void BoundCosts(std::span<const std::vector<CollectiveRound>* const> records, StragglerReport& report) {
  LimitCosts(records, report);
  std::erase_if(report.stragglers, [&](const Straggler& one) {
    if (one.pattern == StragglerPattern::intermittent) return false;
    const double late = static_cast<double>(one.late_ns) / static_cast<double>(std::max<int64_t>(1, report.step_ns));
    const bool hidden = one.cost < StragglerLimits::kMinCost && late - one.cost > kSurelyHidden;
    if (one.late_ns >= kLateAtAnyCostNs && (late >= kLateAtAnyCost || !hidden)) return false;
    if (one.place.HoldsMostOf(static_cast<double>(one.late_ns))) return one.cost < StragglerLimits::kMinCost;
    const double ns = one.cost * static_cast<double>(report.step_ns);
    return hidden || IsWithinHostSpread(one.cost, ns, ns, false);
  });
  AddCosts(report);
}

}  // namespace tacet
