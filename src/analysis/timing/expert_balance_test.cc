// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/expert_balance.h"

#include <gtest/gtest.h>

#include <functional>

#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

// Two steps of 1 ms with two all-to-alls each; every rank sends 1000 elements and receives what `shares` says. The
// transfers last 100 us; rank 1 comes 20 us after the others.
std::vector<CollectiveRound> Exchange(int32_t ranks, const std::function<int64_t(int32_t rank, int call)>& shares,
                                      std::vector<Timeline>& timelines) {
  Group group;
  for (int32_t r = 0; r < ranks; ++r) {
    group.members.push_back({r});
    Timeline& timeline = timelines.emplace_back(MakeTimeline(r));
    for (int64_t step = 0; step < 2; ++step) {
      const int64_t t = step * 1'000'000;
      timeline.steps.push_back({step, t, t + 1'000'000});
      for (int call = 0; call < 2; ++call) {
        const int64_t begin = t + 200'000 + call * 300'000;
        AddCollective(timeline, OpKind::all_to_all, begin - 1000, begin + (r == 1 ? 20'000 : 0), begin + 120'000, 1000);
        timeline.collectives.back().out_elements = shares(r, call);
      }
    }
  }
  return MatchCollectives(timelines, std::vector<Group>{group});
}

TEST(ExpertBalance, IsOneWhereAllReceiveTheSame) {
  std::vector<Timeline> timelines;
  const auto rounds = Exchange(
      4, [](int32_t, int) { return 1000; }, timelines);
  const ExpertReport report = AnalyseExperts(rounds, timelines);
  ASSERT_TRUE(report.found);
  EXPECT_TRUE(report.sized);
  EXPECT_EQ(report.ranks, 4);
  EXPECT_DOUBLE_EQ(report.calls, 2);
  EXPECT_DOUBLE_EQ(report.imbalance, 1);
  EXPECT_DOUBLE_EQ(report.lasting_imbalance, 1);
  EXPECT_DOUBLE_EQ(report.balance_gain, 0);
  EXPECT_EQ(report.transfer_ns, 200'000);
  EXPECT_DOUBLE_EQ(report.transfer_share, 0.2);
  ASSERT_EQ(report.members.size(), 4u);
  EXPECT_EQ(report.members[0].received_bytes, 8000);
  EXPECT_EQ(report.members[0].wait_ns, 40'000);
  EXPECT_EQ(report.members[1].wait_ns, 0);
  EXPECT_EQ(report.members[1].kernel_ns, 200'000);
}

TEST(ExpertBalance, NamesTheRankWithTheBusyExperts) {
  std::vector<Timeline> timelines;
  const auto rounds = Exchange(
      4, [](int32_t r, int) { return r == 2 ? 2500 : 500; }, timelines);
  const ExpertReport report = AnalyseExperts(rounds, timelines);
  EXPECT_EQ(report.busiest, Rank{2});
  EXPECT_DOUBLE_EQ(report.imbalance, 2.5);
  EXPECT_DOUBLE_EQ(report.lasting_imbalance, 2.5);
  EXPECT_NEAR(report.balance_gain, 0.2 * 0.6, 1e-12);
}

TEST(ExpertBalance, SeesUnevenCallsThatEvenOutOverTheStep) {
  std::vector<Timeline> timelines;
  const auto rounds = Exchange(
      2, [](int32_t r, int call) { return r == call ? 1500 : 500; }, timelines);
  const ExpertReport report = AnalyseExperts(rounds, timelines);
  EXPECT_DOUBLE_EQ(report.imbalance, 1.5);
  EXPECT_DOUBLE_EQ(report.lasting_imbalance, 1);
}

TEST(ExpertBalance, TakesWhatIsSentWhereNothingTellsWhatIsReceived) {
  std::vector<Timeline> timelines;
  const auto rounds = Exchange(
      2, [](int32_t, int) { return -1; }, timelines);
  for (TraceCollective& operation : timelines[0].collectives) operation.in_elements = 3000;
  const ExpertReport report = AnalyseExperts(rounds, timelines);
  EXPECT_TRUE(report.sized);
  EXPECT_EQ(report.members[0].received_bytes, -1);
  EXPECT_EQ(report.busiest, Rank{0});
  EXPECT_DOUBLE_EQ(report.imbalance, 1.5);
}

TEST(ExpertBalance, SaysWhenSizesAreMissing) {
  std::vector<Timeline> timelines;
  const auto rounds = Exchange(
      2, [](int32_t, int) { return -1; }, timelines);
  for (Timeline& timeline : timelines)
    for (TraceCollective& operation : timeline.collectives) operation.in_elements = -1;
  const ExpertReport report = AnalyseExperts(rounds, timelines);
  ASSERT_TRUE(report.found);
  EXPECT_FALSE(report.sized);
  EXPECT_EQ(report.members[0].received_bytes, -1);
  EXPECT_DOUBLE_EQ(report.imbalance, 1);
}

TEST(ExpertBalance, FindsNoneWithoutAnAllToAll) { EXPECT_FALSE(AnalyseExperts({}, {}).found); }

}  // namespace
}  // namespace tacet
