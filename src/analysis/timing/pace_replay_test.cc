// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pace_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr int kHostRanks = 4, kHostSteps = 40, kHostOps = 6;
constexpr double kReplayMs = 1e6;

// Hosts that take 2 ms for each operation and wait for their GPU before each step; operations take 0.5 ms.
struct HostPlan {
  double host_delay = 0;   // of rank 1, before its first operation of a step, ms
  double gpu_delay = 0;    // the same on its GPU: the host goes on
  double jitter = 0.05;    // of every host gap, ms
  bool starts = true;      // recorded
  bool waits = true;       // hosts wait for their GPUs
  bool broadcast = false;  // each step begins with one, from rank 0 on from rank to rank
  bool reduce = false;     // in the second half of a step another group sums what an operation gives, on its own stream
  double gap = 2;          // of every host
  double common = 0;       // jitter that all hosts have together, of the third operation, ms
  unsigned seed = 3;
};

std::vector<CollectiveRound> SimulateHosts(const HostPlan& plan, double* step_ms = nullptr) {
  std::mt19937 random(plan.seed);
  std::uniform_real_distribution<double> jitter(0, plan.jitter);
  std::vector<CollectiveRound> rounds;
  double host[kHostRanks] = {}, end = 0, reduced = 0;
  for (int step = 0; step < kHostSteps; ++step) {
    double gpu_ready[kHostRanks] = {};
    double passed[kHostRanks] = {};  // the broadcast's end
    if (plan.broadcast) {
      CollectiveRound& round = rounds.emplace_back();
      round.group = static_cast<GroupIndex>(0);
      round.kind = OpKind::broadcast;
      round.step = step;
      round.bytes = 64;
      round.group_size = kHostRanks;
      double before = 0;
      for (int r = 0; r < kHostRanks; ++r) {
        host[r] = std::max(host[r], end) + (r == 1 ? plan.host_delay : 0);
        before = passed[r] = std::max(before, host[r]) + 0.1;
        RoundMember m{Rank{r}};
        m.enter_ns = static_cast<int64_t>(host[r] * kReplayMs);
        if (plan.starts) m.start_ns = m.enter_ns;
        m.duration_ns = static_cast<int64_t>((passed[r] - host[r]) * kReplayMs);
        round.members.push_back(m);
      }
    }
    for (int k = 0; k < kHostOps; ++k) {
      double enter[kHostRanks], start[kHostRanks], arrival = 0;
      const double together = k == 2 ? plan.common * std::uniform_real_distribution<double>(0, 1)(random) : 0;
      for (int r = 0; r < kHostRanks; ++r) {
        if ((k == 0 || plan.common > 0) && plan.waits) host[r] = std::max({host[r], end, reduced});
        host[r] += plan.gap + jitter(random) + together + (k == 0 && r == 1 && !plan.broadcast ? plan.host_delay : 0);
        enter[r] = host[r];
        if (k == 0) gpu_ready[r] = enter[r] + (r == 1 ? plan.gpu_delay : 0);
        start[r] = std::max({enter[r], end, gpu_ready[r], passed[r]});
        arrival = std::max(arrival, start[r]);
      }
      end = arrival + 0.5;
      CollectiveRound& round = rounds.emplace_back();
      round.group = static_cast<GroupIndex>(0);
      round.kind = k % 2 == 0 ? OpKind::all_gather : OpKind::reduce_scatter;
      round.step = step;
      round.bytes = 1024 * (k + 1);
      round.group_size = kHostRanks;
      for (int r = 0; r < kHostRanks; ++r) {
        RoundMember m{Rank{r}};
        m.enter_ns = static_cast<int64_t>(enter[r] * kReplayMs);
        if (plan.starts) m.start_ns = static_cast<int64_t>(start[r] * kReplayMs);
        m.duration_ns = static_cast<int64_t>((end - start[r]) * kReplayMs);
        round.members.push_back(m);
      }
      if (!plan.reduce || k * 2 < kHostOps) continue;
      reduced = std::max(end, reduced) + 0.5;
      CollectiveRound& behind = rounds.emplace_back(rounds.back());
      behind.group = static_cast<GroupIndex>(1);
      behind.kind = OpKind::all_reduce;
      for (RoundMember& m : behind.members) {
        m.enter_ns += static_cast<int64_t>(0.02 * kReplayMs);
        if (plan.starts) m.start_ns = static_cast<int64_t>((reduced - 0.5) * kReplayMs);
        m.duration_ns = static_cast<int64_t>(0.5 * kReplayMs);
      }
    }
  }
  if (step_ms) *step_ms = end / kHostSteps;
  return rounds;
}

double GainMs(const ReplayedGain& gain) { return TrimmedMean(gain.least, 0.15) / kReplayMs; }

TEST(PaceReplay, WhatAHostLosesEveryStepIsGained) {
  for (const bool starts : {true, false}) {
    const ReplayedGain gain = ReplayWithPeers(SimulateHosts({.host_delay = 5, .starts = starts}), Rank{1});
    ASSERT_TRUE(gain.known) << starts;
    EXPECT_NEAR(GainMs(gain), 5, 0.3) << starts;
    EXPECT_NEAR(TrimmedMean(gain.most, 0.15) / kReplayMs, 5, 0.3) << starts;
    EXPECT_NEAR(gain.step_ns / kReplayMs, 17.6, 0.5) << starts;
  }
}

TEST(PaceReplay, AGpuThatIsLateBehindSlowHostsCostsNothing) {
  for (const bool starts : {true, false}) {
    double with = 0, without = 0;
    const std::vector<CollectiveRound> rounds = SimulateHosts({.gpu_delay = 6, .starts = starts}, &with);
    SimulateHosts({}, &without);
    ASSERT_NEAR(with, without, 0.1) << "the hosts hide it";
    const ReplayedGain gain = ReplayWithPeers(rounds, Rank{1});
    ASSERT_TRUE(gain.known);
    EXPECT_NEAR(GainMs(gain), 0, 0.2);
  }
}

TEST(PaceReplay, AGpuThatIsLaterThanTheHostsCanHideCostsTheRest) {
  double with = 0, without = 0;
  const std::vector<CollectiveRound> rounds = SimulateHosts({.gpu_delay = 20}, &with);
  SimulateHosts({}, &without);
  const ReplayedGain gain = ReplayWithPeers(rounds, Rank{1});
  ASSERT_TRUE(gain.known);
  EXPECT_GT(with - without, 8);
  EXPECT_NEAR(GainMs(gain), with - without, 0.1 * (with - without));
}

TEST(PaceReplay, JitterOfTheOthersHidesPart) {
  const HostPlan noisy{.host_delay = 1, .jitter = 2};
  double with = 0, without = 0;
  const std::vector<CollectiveRound> rounds = SimulateHosts(noisy, &with);
  HostPlan healthy = noisy;
  healthy.host_delay = 0;
  SimulateHosts(healthy, &without);
  ASSERT_LT(with - without, 0.8) << "not all of the delay";
  const ReplayedGain gain = ReplayWithPeers(rounds, Rank{1});
  ASSERT_TRUE(gain.known);
  EXPECT_NEAR(Mean(gain.least) / kReplayMs, with - without, 0.25);
}

// Ranks behind the late one wait for it in the broadcast already, and so begin the operation behind it late.
// HSDP: gradients that are scattered in one group are summed in another. When that began is not known; it waits for
// what ended last before it, and so for the late rank.
TEST(PaceReplay, WhatWaitsForAnotherGroupIsGainedToo) {
  for (const bool starts : {true, false}) {
    const ReplayedGain gain =
        ReplayWithPeers(SimulateHosts({.host_delay = 5, .starts = starts, .reduce = true, .gap = 0.2}), Rank{1});
    ASSERT_TRUE(gain.known) << starts;
    EXPECT_EQ(gain.several_groups, !starts);
    EXPECT_NEAR(GainMs(gain), 5, 0.5) << starts;
  }
}

TEST(PaceReplay, WhoWaitsInABroadcastIsNotLateItself) {
  for (const bool starts : {true, false}) {
    const ReplayedGain gain =
        ReplayWithPeers(SimulateHosts({.host_delay = 12, .starts = starts, .broadcast = true}), Rank{1});
    ASSERT_TRUE(gain.known) << starts;
    EXPECT_NEAR(GainMs(gain), 12, 0.6) << starts;
  }
}

TEST(PaceReplay, StepsThatTakeAllHostsLongerTakeThePeerLongerToo) {
  const ReplayedGain gain = ReplayWithPeers(SimulateHosts({.host_delay = 3, .common = 8}), Rank{1});
  ASSERT_TRUE(gain.known);
  EXPECT_NEAR(GainMs(gain), 3, 0.5);
}

TEST(PaceReplay, APeerOfAHealthyJobGainsNothing) {
  const ReplayedGain gain = ReplayWithPeers(SimulateHosts({.jitter = 1}), Rank{2});
  ASSERT_TRUE(gain.known);
  EXPECT_NEAR(GainMs(gain), 0, 0.15);
}

TEST(PaceReplay, IsNotKnownWhereHostsNeverWait) {
  EXPECT_FALSE(ReplayWithPeers(SimulateHosts({.gpu_delay = 6, .waits = false}), Rank{1}).known);
}

TEST(PaceReplay, IsNotKnownWithoutTheMomentsOfIssueOrTheRank) {
  std::vector<CollectiveRound> rounds = SimulateHosts({.host_delay = 5});
  EXPECT_FALSE(ReplayWithPeers(rounds, Rank{9}).known);
  EXPECT_FALSE(ReplayWithPeers({}, Rank{0}).known);
  for (CollectiveRound& round : rounds)
    for (RoundMember& m : round.members) m.enter_is_estimate = true;
  EXPECT_FALSE(ReplayWithPeers(rounds, Rank{1}).known);
}

TEST(PaceReplay, RanksThatIssueInDifferentOrdersAreNotReplayed) {
  std::vector<CollectiveRound> rounds = SimulateHosts({.host_delay = 5});
  // Rank 3 issues the first two operations of every step the other way round.
  for (size_t i = 0; i + 1 < rounds.size(); i += kHostOps)
    std::swap(rounds[i].members[3].enter_ns, rounds[i + 1].members[3].enter_ns);
  EXPECT_FALSE(ReplayWithPeers(rounds, Rank{1}).known);
}

TEST(PaceReplay, StepsWithSomethingMoreAreLeftOut) {
  std::vector<CollectiveRound> rounds = SimulateHosts({.host_delay = 5});
  std::vector<CollectiveRound> more;
  for (CollectiveRound& round : rounds) {
    if (round.step % 10 == 4 && round.bytes == 1024) {  // saves: one more operation before the step's own
      CollectiveRound extra = round;
      extra.bytes = 8;
      for (RoundMember& m : extra.members) m.enter_ns -= 100'000, m.start_ns -= 90'000, m.duration_ns = 20'000;
      more.push_back(extra);
    }
    more.push_back(round);
  }
  const ReplayedGain gain = ReplayWithPeers(more, Rank{1});
  ASSERT_TRUE(gain.known);
  EXPECT_NEAR(GainMs(gain), 5, 0.4);
}

}  // namespace
}  // namespace tacet
