// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/one_by_one.h"

#include <gtest/gtest.h>

#include "analysis/timing/straggler.h"

namespace tacet {
namespace {

constexpr int64_t kTick = 1'000'000;

CollectiveRound RoundOf(OpKind kind, int64_t step, int64_t bytes, int64_t enter,
                        const std::vector<int64_t>& durations) {
  CollectiveRound round{.kind = kind, .group_size = 4};
  round.group = GroupIndex{0};
  round.step = step;
  round.bytes = bytes;
  for (int32_t r = 0; r < 4; ++r) {
    RoundMember member;
    member.rank = {r};
    member.enter_ns = enter;
    member.duration_ns = durations[static_cast<size_t>(r)];
    round.members.push_back(member);
  }
  return round;
}

// A reduction that rank 3 comes to `late` after the others, and an exchange issued at once on another stream, whose
// length holds the wait for the reduction.
std::vector<CollectiveRound> Reductions(int64_t late) {
  std::vector<CollectiveRound> rounds;
  for (int64_t step = 0; step < 30; ++step) {
    const int64_t at = 1'700'000'000'000'000'000 + step * (14 * kTick + late) + step % 3 * 20'000;
    const int64_t whole = 8 * kTick + late;
    rounds.push_back(RoundOf(OpKind::all_reduce, step, 4 << 20, at, {whole, whole, whole, 8 * kTick}));
    rounds.push_back(RoundOf(OpKind::all_to_all, step, 1 << 20, at + kTick / 10,
                             {whole + 2 * kTick, whole + 2 * kTick, whole + 2 * kTick, 10 * kTick}));
  }
  return rounds;
}

TEST(OneByOne, WhatAnOperationWaitedForTheOneBeforeIsNoPartOfIt) {
  const std::vector<CollectiveRound> rounds = Reductions(4 * kTick);
  EXPECT_FALSE(FitOneByOne(rounds));
  const std::vector<CollectiveRound> fitting = RunOneByOne(rounds);
  EXPECT_TRUE(FitOneByOne(fitting));
  for (const RoundMember& m : fitting[2].members) EXPECT_EQ(m.duration_ns, rounds[2].members[m.rank.value].duration_ns);
  for (const RoundMember& m : fitting[3].members) EXPECT_NEAR(static_cast<double>(m.duration_ns), 2.1e6, 1e3);
  const Pace pace = MeasurePace(fitting, PaceSource::flight_records);
  const StragglerReport report = DecideStragglers({&pace, 1});
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 3);
  EXPECT_NEAR(report.stragglers[0].cost, 4 / 18.0, 0.02);
}

TEST(OneByOne, NobodyIsLateWithoutADelay) {
  const Pace pace = MeasurePace(RunOneByOne(Reductions(0)), PaceSource::flight_records);
  EXPECT_TRUE(DecideStragglers({&pace, 1}).stragglers.empty());
}

// One behind the other on one stream: nothing is left out.
TEST(OneByOne, OperationsThatFitStayAsTheyAre) {
  std::vector<CollectiveRound> rounds;
  for (int64_t step = 0; step < 5; ++step)
    for (int64_t k = 0; k < 3; ++k)
      rounds.push_back(RoundOf(OpKind::all_reduce, step, 1 << 20, step * 20 * kTick + k * kTick / 10,
                               {5 * kTick, 5 * kTick, 5 * kTick, 2 * kTick}));
  EXPECT_TRUE(FitOneByOne(rounds));
  const std::vector<CollectiveRound> after = RunOneByOne(rounds);
  for (size_t i = 0; i < rounds.size(); ++i)
    for (size_t r = 0; r < 4; ++r) EXPECT_EQ(after[i].members[r].duration_ns, rounds[i].members[r].duration_ns) << i;
}

TEST(OneByOne, TimesBeyondAllBoundsDoNoHarm) {
  std::vector<CollectiveRound> rounds = {RoundOf(OpKind::all_reduce, 0, 1, INT64_MAX - 5, {INT64_MAX, INT64_MAX, 5, 5}),
                                         RoundOf(OpKind::all_reduce, 0, 1, -INT64_MAX, {INT64_MAX, 0, 5, 5})};
  for (const CollectiveRound& round : RunOneByOne(rounds))
    for (const RoundMember& m : round.members) EXPECT_GE(m.duration_ns, 0);
}

}  // namespace
}  // namespace tacet
