// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/collective_match.h"

#include <gtest/gtest.h>

#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

std::vector<Group> OneGroup(int32_t size) {
  Group group;
  group.name = "0";
  for (int32_t r = 0; r < size; ++r) group.members.push_back({r});
  return {group};
}

TEST(CollectiveMatch, JoinsTheSameOperationOfAllRanks) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 3; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    timeline.steps = {{7, 0, 1'000'000}, {8, 1'000'000, 2'000'000}};
    AddCollective(timeline, OpKind::all_reduce, 100'000 + r * 1000, 200'000 + r * 1000, 400'000, 256);
    AddCollective(timeline, OpKind::all_reduce, 1'100'000, 1'200'000 + r * 5000, 1'300'000, 512);
  }
  const auto groups = OneGroup(3);
  const auto rounds = MatchCollectives(timelines, groups);
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].step, 7);
  EXPECT_EQ(rounds[0].bytes, 1024);
  EXPECT_TRUE(rounds[0].whole());
  const RoundTiming timing = TimeRound(rounds[0]);
  EXPECT_EQ(timing.last.value, 2);
  EXPECT_EQ(timing.excess_ns, 1000);
  EXPECT_EQ(timing.total_wait_ns, 2000 + 1000);
  EXPECT_EQ(timing.transfer_ns, 400'000 - 202'000);
}

TEST(CollectiveMatch, MatchesByStepWhenARankBeganToRecordLater) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 2; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    for (int64_t step = r == 0 ? 5 : 6; step <= 8; ++step) {
      timeline.steps.push_back({step, step * 1'000'000, (step + 1) * 1'000'000});
      AddCollective(timeline, OpKind::all_reduce, step * 1'000'000 + 10, step * 1'000'000 + 100, step * 1'000'000 + 900,
                    step);
    }
  }
  const auto rounds = MatchCollectives(timelines, OneGroup(2));
  ASSERT_EQ(rounds.size(), 3u);
  for (const CollectiveRound& round : rounds) EXPECT_EQ(round.bytes, round.step * 4);
}

TEST(CollectiveMatch, ShiftsTheListsWhenThereAreNoSteps) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 2; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    for (int64_t i = r == 0 ? 0 : 3; i < 20; ++i)  // rank 1 misses the first three; all have the same size
      AddCollective(timeline, OpKind::all_reduce, i * 1'000'000, i * 1'000'000 + 100, i * 1'000'000 + 500'000);
  }
  const auto rounds = MatchCollectives(timelines, OneGroup(2));
  ASSERT_EQ(rounds.size(), 17u);
  for (const CollectiveRound& round : rounds) EXPECT_EQ(round.members[0].end_ns, round.members[1].end_ns);
}

TEST(CollectiveMatch, UsesTheSequenceNumberWhereThereIsOne) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 2; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    for (int64_t i = r; i < 5; ++i) {
      AddCollective(timeline, OpKind::all_gather, i * 1000, i * 1000 + 100, i * 1000 + 900);
      timeline.collectives.back().seq = 40 + i;
    }
  }
  const auto rounds = MatchCollectives(timelines, OneGroup(2));
  ASSERT_EQ(rounds.size(), 4u);
  EXPECT_EQ(rounds[0].seq, 41);
}

TEST(CollectiveMatch, LeavesOutOperationsOnWhichRanksDisagree) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 2; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    timeline.steps = {{0, 0, 1000}};
    AddCollective(timeline, OpKind::all_reduce, 10, 100, 200, 64);
    AddCollective(timeline, OpKind::all_reduce, 300, 400, 500, r == 0 ? 64 : 128);
  }
  EXPECT_EQ(MatchCollectives(timelines, OneGroup(2)).size(), 1u);
}

TEST(CollectiveMatch, JoinsAnAllToAllOfUnequalShares) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 4; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    timeline.steps = {{0, 0, 1000}};
    AddCollective(timeline, OpKind::all_to_all, 10, 100, 200, 64 * (r + 1));
  }
  const auto rounds = MatchCollectives(timelines, OneGroup(4));
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_TRUE(rounds[0].whole());
  EXPECT_EQ(rounds[0].bytes, 4 * 64 * 4);  // of the busiest rank
}

TEST(CollectiveMatch, KeepsTheOperationsOfASingleTrace) {
  std::vector<Timeline> timelines;
  timelines.push_back(MakeTimeline(2));
  timelines[0].steps = {{0, 0, 1000}};
  AddCollective(timelines[0], OpKind::all_reduce, 10, 100, 200, 64);
  const auto rounds = MatchCollectives(timelines, OneGroup(4));
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_FALSE(rounds[0].whole());
  const RoundTiming timing = TimeRound(rounds[0]);
  EXPECT_EQ(timing.transfer_ns, 100);
  EXPECT_EQ(timing.total_wait_ns, 0);
  EXPECT_EQ(timing.excess_ns, 0);
}

TEST(CollectiveMatch, JoinsSendsWithReceives) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 2; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    timeline.steps = {{0, 0, 10'000}};
    for (int i = 0; i < 3; ++i) {
      AddCollective(timeline, r == 0 ? OpKind::send : OpKind::recv, 1000 * i + 10, 1000 * i + 100, 1000 * i + 900);
      timeline.collectives.back().peer = {1 - r};
    }
  }
  const auto rounds = MatchCollectives(timelines, OneGroup(2));
  ASSERT_EQ(rounds.size(), 3u);
  EXPECT_EQ(rounds[0].kind, OpKind::send);
  EXPECT_EQ(rounds[0].members[0].rank.value, 0);
  EXPECT_FALSE(rounds[0].synchronises());
}

TEST(CollectiveMatch, MarksAStartThatOnlyFollowsTheOperationBefore) {
  std::vector<Timeline> timelines;
  for (int32_t r = 0; r < 2; ++r) {
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    timeline.steps = {{0, 0, 10'000'000}};
    AddCollective(timeline, OpKind::all_reduce, 0, 1'000'000, 2'000'000);
    AddCollective(timeline, OpKind::all_reduce, 500'000, 2'010'000,
                  3'000'000);  // issued early, begins when the first ends
    AddCollective(timeline, OpKind::all_reduce, 600'000, 5'000'000,
                  6'000'000);  // issued early, begins when its own input is ready
  }
  const auto rounds = MatchCollectives(timelines, OneGroup(2));
  ASSERT_EQ(rounds.size(), 3u);
  EXPECT_FALSE(rounds[0].members[0].queued);
  EXPECT_TRUE(rounds[1].members[0].queued);
  EXPECT_FALSE(rounds[2].members[0].queued);
}

TEST(CollectiveMatch, CountsBytesAndFactorsAsNcclTests) {
  EXPECT_EQ(OperationBytes(OpKind::all_reduce, 10, 10, DataType::float32, 4), 40);
  EXPECT_EQ(OperationBytes(OpKind::all_gather, 10, 40, DataType::float32, 4), 160);
  EXPECT_EQ(OperationBytes(OpKind::all_gather, 10, -1, DataType::float32, 4), 160);
  EXPECT_EQ(OperationBytes(OpKind::reduce_scatter, 40, 10, DataType::bfloat16, 4), 80);
  EXPECT_EQ(OperationBytes(OpKind::all_reduce, 10, 10, DataType::unknown, 4), -1);
  EXPECT_EQ(OperationBytes(OpKind::all_reduce, INT64_MAX, 1, DataType::float64, 4), -1);
  EXPECT_DOUBLE_EQ(BusFactor(OpKind::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(OpKind::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(OpKind::broadcast, 4), 1);
}

}  // namespace
}  // namespace tacet
