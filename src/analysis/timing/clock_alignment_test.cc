// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/clock_alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tacet {
namespace {

struct Skew {
  double offset_ns, drift;
};

// All-reduces over all ranks, every 100 ms, with skewed clocks, ragged ends and some operations whose ends are far off.
std::vector<CollectiveRound> MakeRounds(const std::vector<Skew>& skews, int count, double noise_ns, double outliers,
                                        unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, noise_ns);
  std::vector<CollectiveRound> rounds;
  for (int k = 0; k < count; ++k) {
    CollectiveRound round;
    round.kind = OpKind::all_reduce;
    round.group_size = static_cast<int32_t>(skews.size());
    const double end = 1e8 * k;
    for (size_t r = 0; r < skews.size(); ++r) {
      double truth = end + normal(random);
      if (std::uniform_real_distribution<double>(0, 1)(random) < outliers) truth += 5e6;
      const double own = truth + skews[r].offset_ns + skews[r].drift * truth;
      RoundMember m;
      m.rank = {static_cast<int32_t>(r)};
      m.end_ns = 1'700'000'000'000'000'000 + std::llround(own);
      m.start_ns = m.end_ns - 1'000'000;
      round.members.push_back(m);
    }
    rounds.push_back(round);
  }
  return rounds;
}

TEST(ClockAlignment, FindsOffsetsUnderNoiseAndOutliers) {
  const std::vector<Skew> skews = {{0, 0}, {3e6, 0}, {-45e6, 0}, {1.2e9, 0}, {250e3, 0}};
  const ClockAlignment alignment = AlignClocks(MakeRounds(skews, 60, 2e3, 0.15, 1));
  ASSERT_EQ(alignment.clocks.size(), skews.size());
  const double reference = skews[static_cast<size_t>(alignment.reference.value)].offset_ns;
  for (size_t r = 0; r < skews.size(); ++r) {
    EXPECT_NEAR(static_cast<double>(alignment.clocks[r].offset_ns), skews[r].offset_ns - reference, 4e3) << r;
    EXPECT_LT(alignment.clocks[r].error_ns, 3e3);
  }
}

TEST(ClockAlignment, FindsDriftOverALongRecording) {
  const std::vector<Skew> skews = {{0, 0}, {1e6, 20e-6}, {-2e6, -5e-6}};
  const auto rounds = MakeRounds(skews, 600, 1e3, 0.1, 2);  // a minute
  const ClockAlignment alignment = AlignClocks(rounds);
  for (size_t r = 0; r < skews.size(); ++r) {
    const double reference = skews[static_cast<size_t>(alignment.reference.value)].drift;
    EXPECT_NEAR(alignment.clocks[r].drift, skews[r].drift - reference, 3e-7) << r;
  }
  // What counts: after the correction the ends of an operation agree, at the end of the minute as well.
  auto aligned = rounds;
  ApplyAlignment(alignment, aligned);
  std::vector<int64_t> ends;
  for (const RoundMember& m : aligned[599].members) ends.push_back(m.end_ns);
  std::sort(ends.begin(), ends.end());
  EXPECT_LT(ends[1] - ends[0], 20'000);
}

TEST(ClockAlignment, LeavesClocksOfOneHostAlone) {
  const std::vector<Skew> skews(4, Skew{0, 0});
  auto rounds = MakeRounds(skews, 8, 3e6, 0, 3);  // a shared GPU: ends are ragged by milliseconds
  const auto before = rounds;
  const ClockAlignment alignment = AlignClocks(rounds);
  ApplyAlignment(alignment, rounds);
  for (size_t k = 0; k < rounds.size(); ++k)
    for (size_t r = 0; r < 4; ++r) EXPECT_EQ(rounds[k].members[r].end_ns, before[k].members[r].end_ns);
}

TEST(ClockAlignment, ChainsThroughGroupsThatShareARank) {
  // Pairs (0,1), (1,2), (2,3): rank 3 never meets rank 0.
  const std::vector<double> offset = {0, 7e6, -3e6, 90e6};
  std::vector<CollectiveRound> rounds;
  for (int k = 0; k < 30; ++k)
    for (int a = 0; a < 3; ++a) {
      CollectiveRound round;
      round.kind = OpKind::all_reduce;
      for (int r = a; r <= a + 1; ++r) {
        RoundMember m;
        m.rank = {r};
        m.end_ns = std::llround(1e9 + 1e7 * k + 1e5 * a + offset[static_cast<size_t>(r)]);
        round.members.push_back(m);
      }
      rounds.push_back(round);
    }
  const ClockAlignment alignment = AlignClocks(rounds);
  const double reference = offset[static_cast<size_t>(alignment.reference.value)];
  for (size_t r = 0; r < 4; ++r)
    EXPECT_NEAR(static_cast<double>(alignment.clocks[r].offset_ns), offset[r] - reference, 2);
}

// Independent version: every observed difference to rank 0 is tried as the offset; the one with the least sum of
// distances wins.
double SearchOffset(const std::vector<CollectiveRound>& rounds, size_t rank) {
  std::vector<double> differences;
  for (const CollectiveRound& round : rounds)
    differences.push_back(static_cast<double>(round.members[rank].end_ns - round.members[0].end_ns));
  double best = -1, chosen = 0;
  for (const double candidate : differences) {
    double cost = 0;
    for (const double difference : differences) cost += std::fabs(difference - candidate);
    if (best >= 0 && cost >= best) continue;
    best = cost;
    chosen = candidate;
  }
  return chosen;
}

TEST(ClockAlignment, AgreesWithASearchForTheLeastDistances) {
  std::mt19937 random(8);
  for (unsigned round = 0; round < 10; ++round) {
    std::vector<Skew> skews(3 + random() % 3);
    for (size_t r = 1; r < skews.size(); ++r) skews[r].offset_ns = static_cast<double>(random() % 100'000'000) - 5e7;
    const auto rounds = MakeRounds(skews, 40, 5e3, 0.1, round);
    const ClockAlignment alignment = AlignClocks(rounds);
    const double shift = SearchOffset(rounds, static_cast<size_t>(alignment.reference.value));
    for (size_t r = 0; r < skews.size(); ++r)
      EXPECT_NEAR(static_cast<double>(alignment.clocks[r].offset_ns), SearchOffset(rounds, r) - shift, 6e3) << r;
  }
}

TEST(ClockAlignment, SaysWhenARankCannotBeCompared) {
  auto rounds = MakeRounds({{0, 0}, {1e6, 0}}, 10, 1e3, 0, 4);
  CollectiveRound apart;
  apart.kind = OpKind::all_reduce;
  for (int r = 5; r < 7; ++r) {
    RoundMember m;
    m.rank = {r};
    m.end_ns = 1'700'000'000'000'000'000;
    apart.members.push_back(m);
  }
  rounds.push_back(apart);
  const ClockAlignment alignment = AlignClocks(rounds);
  ASSERT_NE(alignment.Find({5}), nullptr);
  EXPECT_EQ(alignment.Find({5})->rounds, 0u);
  EXPECT_FALSE(alignment.Find({5})->applied);
  EXPECT_TRUE(AlignClocks({}).clocks.empty());
}

}  // namespace
}  // namespace tacet
