// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/call_difference.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

// Differences point into the incident, so both travel together.
struct Compared {
  explicit Compared(JobSketch& job, CallSource source = CallSource::flight_recorder)
      : incident(job.Finish()), groups(CollectGroupCalls(incident, source)), all(FindDifferences(incident, groups)) {}
  Incident incident;
  std::vector<GroupCalls> groups;
  std::vector<CallDifference> all;
};

TEST(CallDifference, EqualRanksDoNotDiffer) {
  JobSketch job(8);
  job.Rounds(30);
  EXPECT_TRUE(Compared(job).all.empty());
}

TEST(CallDifference, TheFirstPlaceIsFoundAlthoughEverythingAfterItDiffersToo) {
  JobSketch job(4);
  job.Rounds(11);
  for (int i = 0; i < 20; ++i) {
    job.IssueOn({0, 1, 2}, {.elements = 100});
    job.IssueOn({3}, {.elements = 200});
  }
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].seq, 12u);
  EXPECT_EQ(compared.all[0].odd, Ranks({3}));
  EXPECT_EQ(compared.all[0].sides[0].ranks, Ranks({0, 1, 2}));
  EXPECT_EQ(compared.all[0].sides[0].call->in_elements, 100);
  EXPECT_EQ(compared.all[0].sides[1].call->in_elements, 200);
}

TEST(CallDifference, TheGrossestAspectIsNamed) {
  JobSketch job(4);
  job.IssueOn({0, 1, 2}, {});
  job.IssueOn({3}, {.kind = OpKind::broadcast, .elements = 5, .type = DataType::int8, .peer = 0});
  EXPECT_EQ(Compared(job).all[0].aspect, CallAspect::operation);
  JobSketch finer(4);
  finer.IssueOn({0, 1, 2}, {});
  finer.IssueOn({3}, {.elements = 5, .type = DataType::int8});
  EXPECT_EQ(Compared(finer).all[0].aspect, CallAspect::size);
}

TEST(CallDifference, EachGroupHasItsOwn) {
  JobSketch job(4);
  const GroupIndex pair = job.AddGroup("tp", {0, 1});
  job.Rounds(3);
  for (int i = 0; i < 6; ++i) job.IssueAll({.group = pair});
  job.Issue(0, {.group = pair});
  job.Issue(1, {.group = pair, .elements = 7});
  job.IssueOn({0, 1, 2}, {});
  job.IssueOn({3}, {.type = DataType::int8});
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 2u);
  EXPECT_EQ(compared.all[0].group, kWorld);
  EXPECT_EQ(compared.all[0].aspect, CallAspect::type);
  EXPECT_EQ(compared.all[1].group, pair);
  EXPECT_TRUE(compared.all[1].decided_by_habit);
  EXPECT_EQ(compared.all[1].odd, Ranks({1}));
  EXPECT_LE(compared.all[1].enter_wall_ns, compared.all[0].enter_wall_ns);
}

TEST(CallDifference, AnUndecidedTieNamesNobody) {
  JobSketch job(2);
  job.Rounds(9);
  job.Issue(0, {.elements = 3});
  job.Issue(1, {.elements = 4});
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_TRUE(compared.all[0].odd.empty());
  EXPECT_FALSE(compared.all[0].decided_by_habit);
}

TEST(CallDifference, MembersOfACoalescedGroupAreNotCompared) {
  JobSketch job(2);
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i <= r; ++i) job.Issue(r, {.kind = OpKind::broadcast, .flags = kCoalescedMember});
    job.Issue(r, {.kind = OpKind::coalesced, .flags = kCoalescedEnd});
    job.Issue(r, {});
  }
  EXPECT_TRUE(Compared(job).all.empty());
}

TEST(CallDifference, ARankThatIsBehindDoesNotDiffer) {
  JobSketch job(4);
  job.Rounds(8);
  job.IssueOn({0, 1}, {.kind = OpKind::broadcast, .peer = 0});
  EXPECT_TRUE(Compared(job).all.empty());
}

TEST(CallDifference, RecordsWithDifferentFirstNumbersMeetByNumber) {
  JobSketch job(3);
  for (int s = 0; s < 40; ++s) job.IssueAll({.elements = s});
  for (int r = 0; r < 3; ++r) {
    CallStream& stream = job.StreamOf(r);
    stream.from_start = false;
    stream.calls.erase(stream.calls.begin(), stream.calls.begin() + 9 * r);
  }
  job.StreamOf(1).calls[20].in_elements = 999;  // number 9 + 20 + 1
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].seq, 30u);
  EXPECT_EQ(compared.all[0].odd, Ranks({1}));
}

TEST(CallDifference, ThreeSidesAreOrderedByHowManyTookThem) {
  for (const int32_t ranks : {6, 7}) {
    JobSketch job(ranks);
    job.IssueOn(ranks == 7 ? std::vector<int32_t>{0, 2, 5, 6} : std::vector<int32_t>{0, 2, 5}, {.elements = 1});
    job.IssueOn({1, 4}, {.elements = 2});
    job.IssueOn({3}, {.elements = 3});
    const Compared compared(job);
    ASSERT_EQ(compared.all[0].sides.size(), 3u);
    EXPECT_EQ(compared.all[0].sides[0].ranks.size(), static_cast<size_t>(ranks - 3));
    EXPECT_EQ(compared.all[0].sides[2].ranks, Ranks({3}));
    EXPECT_EQ(compared.all[0].odd, ranks == 7 ? Ranks({1, 3, 4}) : Ranks({})) << "half of the ranks are no majority";
  }
}

// At a random place of a random order one rank leaves a call out, issues one more, or issues another one, and all go
// on. The place is where the orders first look different, which is not always where the hand was laid on.
TEST(CallDifference, IsReadRightAtRandomPlacesOfRandomOrders) {
  std::mt19937 random(20240611);
  using Reading = CallDifference::Reading;
  for (int trial = 0; trial < 300; ++trial) {
    const int world = 3 + static_cast<int>(random() % 6),
              odd = static_cast<int>(random() % static_cast<uint32_t>(world));
    std::vector<int64_t> usual;
    for (int i = 0; i < 60; ++i) usual.push_back(100 + static_cast<int64_t>(random() % 5));
    std::vector<int64_t> deviating = usual;
    const auto at = static_cast<ptrdiff_t>(random() % 40);
    const auto kind = static_cast<int>(random() % 3);
    if (kind == 0) deviating.erase(deviating.begin() + at);
    if (kind == 1) deviating.insert(deviating.begin() + at, 777);
    if (kind == 2) deviating[static_cast<size_t>(at)] = 777;
    size_t first = 0;
    while (deviating[first] == usual[first]) ++first;
    JobSketch job(world);
    for (int r = 0; r < world; ++r)
      for (const int64_t elements : r == odd ? deviating : usual) job.Issue(r, {.elements = elements});
    const Compared compared(job);
    ASSERT_EQ(compared.all.size(), 1u);
    EXPECT_EQ(compared.all[0].seq, first + 1) << "trial " << trial;
    EXPECT_EQ(compared.all[0].odd, Ranks({odd}));
    const Reading expected = kind == 0 ? Reading::skipped : kind == 1 ? Reading::extra : Reading::substituted;
    EXPECT_EQ(compared.all[0].reading, expected) << "trial " << trial << " at " << at;
  }
}

// A step of three reductions; after every fifth a metric.
void TrainUntil(JobSketch& job, const std::vector<int32_t>& ranks, int from, int to) {
  for (int step = from; step < to; ++step) {
    for (const int64_t elements : {4096, 8192, 16384}) job.IssueOn(ranks, {.elements = elements});
    if (step % 5 == 0) job.IssueOn(ranks, {.elements = 16});
    job.IssueOn(ranks, {.kind = OpKind::broadcast, .elements = 512, .peer = 0});
  }
}

TEST(CallDifference, AWholeRoundLeftOutIsNoExtraCall) {
  // The others are seen to go on to the metric, or stand still before it.
  for (const int others_go_to : {17, 15}) {
    JobSketch job(4);
    TrainUntil(job, {0, 1, 2, 3}, 0, 12);
    TrainUntil(job, {0, 1, 3}, 12, others_go_to);
    TrainUntil(job, {2}, 13, 17);
    const Compared compared(job);
    ASSERT_EQ(compared.all.size(), 1u);
    EXPECT_EQ(compared.all[0].odd, Ranks({2}));
    EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::skipped) << others_go_to;
    EXPECT_EQ(compared.all[0].round, 4u);
  }
}

TEST(CallDifference, AnExtraMetricIsNoRoundLeftOut) {
  JobSketch job(4);
  TrainUntil(job, {0, 1, 2, 3}, 0, 12);
  job.IssueOn({2}, {.elements = 16});
  TrainUntil(job, {0, 1, 2, 3}, 12, 20);
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].odd, Ranks({2}));
  EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::extra);
}

// Each rank goes through the same tensors in an order of its own.
TEST(CallDifference, TheSameCallsInAnotherOrderAreToldAsSuch) {
  JobSketch job(4);
  job.Rounds(3);
  const int64_t orders[4][3] = {{64, 16, 4}, {4, 16, 64}, {16, 4, 64}, {4, 64, 16}};
  for (int32_t r = 0; r < 4; ++r)
    for (const int64_t elements : orders[r]) job.Issue(r, {.kind = OpKind::broadcast, .elements = elements});
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].reordered, 3u);
  EXPECT_TRUE(compared.all[0].odd.empty()) << "of three ways none has most ranks";
}

TEST(CallDifference, OneOtherSizeIsNoOtherOrder) {
  JobSketch job(4);
  job.Rounds(3);
  for (int32_t r = 0; r < 4; ++r)
    for (const int64_t elements : {int64_t{64}, int64_t{r == 2 ? 17 : 16}, int64_t{4}})
      job.Issue(r, {.kind = OpKind::broadcast, .elements = elements});
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].reordered, 0u);
  EXPECT_EQ(compared.all[0].odd, Ranks({2}));
}

// A pattern that repeats holds the same calls from any place on; what follows shows that nobody is in step again.
TEST(CallDifference, SeveralCallsMoreInAPatternAreNoOtherOrder) {
  JobSketch job(4);
  const auto issue = [&](std::vector<int32_t> ranks, int i) {
    job.IssueOn(ranks, {.kind = i % 5 < 3 ? OpKind::all_gather : OpKind::reduce_scatter, .elements = 64});
  };
  for (int i = 0; i < 10; ++i) issue({0, 1, 2, 3}, i);
  for (int i = 0; i < 2; ++i) issue({0}, 0);
  for (int i = 10; i < 50; ++i) issue({0, 1, 2, 3}, i);
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].reordered, 0u);
}

TEST(CallDifference, ACallLeftOutOfAPatternIsNoOtherOrder) {
  JobSketch job(4);
  for (int i = 0; i < 12; ++i) {
    job.IssueOn({0, 1, 3}, {.elements = i % 2 == 0 ? 64 : 16});
    if (i != 6) job.IssueOn({2}, {.elements = i % 2 == 0 ? 64 : 16});
  }
  const Compared compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].reordered, 0u);
}

// Steps of three reductions. From step 6 on rank 2 does `odd_step` instead, `times` times, and the job goes on.
Compared Drifting(const std::vector<SketchedCall>& odd_step, int times, int32_t world = 4) {
  const std::vector<SketchedCall> step = {
      {.elements = 4096}, {.elements = 8192}, {.kind = OpKind::broadcast, .peer = 0}};
  JobSketch job(world);
  for (int i = 0; i < 6; ++i)
    for (const SketchedCall& call : step) job.IssueAll(call);
  for (int i = 0; i < times + 5; ++i) {
    for (const SketchedCall& call : step) job.IssueOn(job.AllBut({2}), call);
    for (const SketchedCall& call : i < times ? odd_step : step) job.Issue(2, call);
  }
  return Compared(job);
}

const SketchedCall kMetric{.elements = 1, .site = "log_metrics"};

TEST(CallDifference, AnExtraCallInEveryStepIsExtraHoweverOften) {
  for (const int times : {1, 2, 5, 40}) {
    const Compared compared =
        Drifting({{.elements = 4096}, {.elements = 8192}, kMetric, {.kind = OpKind::broadcast, .peer = 0}}, times);
    ASSERT_EQ(compared.all.size(), 1u);
    const CallDifference& found = compared.all[0];
    EXPECT_EQ(found.odd, Ranks({2}));
    EXPECT_EQ(found.seq, 21u);
    EXPECT_EQ(found.reading, CallDifference::Reading::extra) << times;
    EXPECT_EQ(found.count, static_cast<uint32_t>(times));
    EXPECT_EQ(found.every, times > 1 ? 4u : 0u);
    EXPECT_TRUE(found.alike);
    EXPECT_EQ(found.sides[1].call->in_elements, 1);
  }
}

TEST(CallDifference, AnExtraCallThatLooksLikeAnotherIsExtraHoweverOften) {
  const Compared compared =
      Drifting({{.elements = 4096}, {.elements = 4096}, {.elements = 8192}, {.kind = OpKind::broadcast, .peer = 0}}, 5);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::extra);
  EXPECT_EQ(compared.all[0].count, 5u);
}

TEST(CallDifference, TwoExtraCallsInEveryStepAreExtra) {
  const Compared compared = Drifting(
      {{.elements = 4096}, kMetric, {.elements = 8192}, {.elements = 2}, {.kind = OpKind::broadcast, .peer = 0}}, 6);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::extra);
  EXPECT_EQ(compared.all[0].count, 12u);
  EXPECT_FALSE(compared.all[0].alike);
}

TEST(CallDifference, ACallLeftOutOfEveryStepIsSkippedHoweverOften) {
  for (const int times : {1, 2, 5}) {
    const Compared compared = Drifting({{.elements = 4096}, {.kind = OpKind::broadcast, .peer = 0}}, times);
    ASSERT_EQ(compared.all.size(), 1u);
    EXPECT_EQ(compared.all[0].odd, Ranks({2}));
    EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::skipped) << times;
    EXPECT_EQ(compared.all[0].count, static_cast<uint32_t>(times));
  }
}

TEST(CallDifference, AnotherOrderOrSizeInEveryStepIsNeitherExtraNorSkipped) {
  const SketchedCall a{.elements = 4096}, b{.elements = 8192}, c{.kind = OpKind::broadcast, .peer = 0};
  // Not c, a, b: that is one more c, and a rank that is one place behind.
  for (const std::vector<SketchedCall>& step :
       {std::vector{b, a, c}, std::vector{c, b, a}, std::vector{a, SketchedCall{.elements = 8191}, c}})
    for (const int times : {2, 5, 40}) {
      const Compared compared = Drifting(step, times);
      ASSERT_EQ(compared.all.size(), 1u);
      EXPECT_EQ(compared.all[0].odd, Ranks({2}));
      EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::substituted) << step[0].elements << " " << times;
    }
}

TEST(CallDifference, ARankThatIsAheadDoesNotDiffer) {
  JobSketch job(4);
  TrainUntil(job, {0, 1, 2, 3}, 0, 12);
  TrainUntil(job, {2}, 12, 20);
  EXPECT_TRUE(Compared(job).all.empty());
}

// Nothing but one reduction in a step: a second one after it could be every second one replaced, but for its site.
TEST(CallDifference, OfOneCallAStepTheSiteTellsAnExtraOneFromAnotherOne) {
  for (const bool other_site : {true, false}) {
    JobSketch job(4);
    job.Rounds(10);
    for (int i = 0; i < 12; ++i) {
      job.IssueOn({0, 1, 3}, {});
      job.Issue(2, {.elements = 1, .site = other_site ? "log_metrics" : "train_step"});
      if (other_site || i % 2 == 1) job.Issue(2, {});
    }
    const Compared compared(job);
    ASSERT_EQ(compared.all.size(), 1u);
    EXPECT_EQ(compared.all[0].reading == CallDifference::Reading::extra, other_site);
  }
}

// A forward pass more, of a rank that evaluates by itself, looks like the next one of all until the backward pass.
TEST(CallDifference, CallsThatAreTooManyBeginAtALineThatTheOthersNeverPass) {
  for (const bool own_site : {true, false}) {
    JobSketch job(4);
    const auto step = [&](const std::vector<int32_t>& ranks, std::string_view site, bool backward) {
      for (int i = 0; i < 3; ++i) job.IssueOn(ranks, {.kind = OpKind::all_gather, .elements = 64, .site = site});
      for (int i = 0; backward && i < 3; ++i) job.IssueOn(ranks, {.kind = OpKind::reduce_scatter, .elements = 64});
    };
    for (int i = 0; i < 4; ++i) step({0, 1, 2, 3}, "train_step", true);
    step({2}, own_site ? "evaluate" : "train_step", false);
    for (int i = 0; i < 3; ++i) step({0, 1, 2, 3}, "train_step", true);
    const Compared compared(job);
    ASSERT_EQ(compared.all.size(), 1u);
    EXPECT_EQ(compared.all[0].odd, Ranks({2}));
    EXPECT_EQ(compared.all[0].reading, CallDifference::Reading::extra);
    EXPECT_EQ(compared.all[0].count, 3u);
    EXPECT_EQ(compared.all[0].seq, own_site ? 25u : 28u);
  }
}

TEST(CallDifference, ADriftInLongRecordsOfManyRanksIsFoundInTime) {
  const Compared compared =
      Drifting({{.elements = 4096}, {.elements = 8192}, kMetric, {.kind = OpKind::broadcast, .peer = 0}}, 300, 200);
  EXPECT_EQ(compared.all[0].count, 300u);
}

}  // namespace
}  // namespace tacet
