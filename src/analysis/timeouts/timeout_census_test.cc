// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/timeout_census.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

void TimesOut(JobSketch& job, int32_t rank, int64_t seq, std::string group = "", OpKind op = OpKind::all_reduce) {
  Event& event = job.Say(rank, EventKind::watchdog_timeout);
  event.seq = seq;
  event.op = op;
  event.group_name = std::move(group);
}

void Finds(JobSketch& job, int32_t rank, int64_t seq, std::string group) {
  Event& event = job.Say(rank, EventKind::watchdog_status);
  event.seq = seq;
  event.group_name = std::move(group);
}

TEST(TimeoutCensus, EveryRankCountsWhicheverLineItHas) {
  JobSketch job(5);
  TimesOut(job, 0, 1580, "1");
  TimesOut(job, 4, 1580);
  Finds(job, 0, 1580, "1");
  Finds(job, 3, 1580, "1");
  TimesOut(job, 2, 1580);
  const Incident incident = job.Finish();
  const TimeoutCensus census = CountTimeouts(incident);
  ASSERT_EQ(census.calls.size(), 1u);
  EXPECT_EQ(census.calls[0].ranks, Ranks({0, 2, 3, 4}));
  EXPECT_EQ(census.calls[0].op, OpKind::all_reduce);
  EXPECT_EQ(census.calls[0].first->kind, EventKind::watchdog_timeout);
}

TEST(TimeoutCensus, ARankAtAnotherNumberIsListedByItself) {
  JobSketch job(8);
  for (const int64_t seq : {96120, 96117, 96125}) TimesOut(job, 0, seq);
  TimesOut(job, 7, 64088);
  const Incident incident = job.Finish();
  const TimeoutCensus census = CountTimeouts(incident);
  ASSERT_EQ(census.calls.size(), 2u);
  EXPECT_EQ(census.calls[0].seq, 96117);
  EXPECT_EQ(census.calls[0].ranks, Ranks({0}));
  EXPECT_EQ(census.Of(Rank{7})->seq, 64088);
  EXPECT_EQ(census.Of(Rank{3}), nullptr);
}

TEST(TimeoutCensus, TheSameNumberOfTwoNamedGroupsIsTwoCalls) {
  JobSketch job(4);
  for (const int32_t r : {0, 1}) TimesOut(job, r, 5, "12");
  for (const int32_t r : {2, 3}) TimesOut(job, r, 5, "13");
  const Incident incident = job.Finish();
  EXPECT_EQ(CountTimeouts(incident).calls.size(), 2u);
}

TEST(TimeoutCensus, ALineThatIsCutBeforeTheNumberIsOfTheOnlyCall) {
  JobSketch job(3);
  for (const int32_t r : {0, 1}) TimesOut(job, r, 1580);
  TimesOut(job, 2, -1, "", OpKind::unknown);
  const Incident incident = job.Finish();
  const TimeoutCensus census = CountTimeouts(incident);
  ASSERT_EQ(census.calls.size(), 1u);
  EXPECT_EQ(census.calls[0].ranks, Ranks({0, 1, 2}));
}

TEST(TimeoutCensus, ALineThatEndsWithinTheNumberIsNotOfAnotherCall) {
  JobSketch job(3);
  for (const int32_t r : {0, 1}) TimesOut(job, r, 1580);
  TimesOut(job, 2, 15, "", OpKind::unknown);
  const Incident incident = job.Finish();
  EXPECT_EQ(CountTimeouts(incident).Of(Rank{0})->ranks, Ranks({0, 1}));
}

TEST(TimeoutCensus, WatchdogsThatFoundAnErrorAreNoTimeouts) {
  JobSketch job(2);
  for (const int32_t r : {0, 1}) Finds(job, r, 12, "0");
  const Incident incident = job.Finish();
  EXPECT_FALSE(CountTimeouts(incident));
}

Event TimeoutOf(OpKind op, int64_t in, int64_t out, int64_t limit_ms = 600'000, int64_t ran_ms = 600'050) {
  Event event;
  event.kind = EventKind::watchdog_timeout;
  event.op = op;
  auto& told = event.Make<WatchdogTimeout>();
  told.elements = in;
  told.elements_out = out;
  told.timeout_ms = limit_ms;
  told.elapsed_ms = ran_ms;
  return event;
}

TEST(TimeoutCensus, TheElementsOfAGatherTellHowManyTakePart) {
  EXPECT_EQ(GroupSizeOf(TimeoutOf(OpKind::all_gather, 1366, 4098)), 3);
  EXPECT_EQ(GroupSizeOf(TimeoutOf(OpKind::reduce_scatter, 4098, 1366)), 3);
  EXPECT_EQ(GroupSizeOf(TimeoutOf(OpKind::all_reduce, 1366, 1366)), -1);
  EXPECT_EQ(GroupSizeOf(TimeoutOf(OpKind::all_gather, 1366, 4099)), -1) << "parts of different sizes";
  EXPECT_EQ(GroupSizeOf(TimeoutOf(OpKind::all_gather, 0, 4096)), -1);
  EXPECT_EQ(GroupSizeOf(TimeoutOf(OpKind::all_gather, 4096, -1)), -1);
}

TEST(TimeoutCensus, AnAllReduceOfOneElementIsLikeABarrier) {
  EXPECT_TRUE(IsLikeABarrier(TimeoutOf(OpKind::all_reduce, 1, 1)));
  EXPECT_FALSE(IsLikeABarrier(TimeoutOf(OpKind::all_reduce, 2, 2)));
  EXPECT_FALSE(IsLikeABarrier(TimeoutOf(OpKind::broadcast, 1, 1)));
}

TEST(TimeoutCensus, AWatchdogThatReportsLongAfterTheLimitMadeNoProgressItself) {
  const auto late = [](int64_t limit_ms, int64_t ran_ms) {
    return IsFoundLate(TimeoutOf(OpKind::all_reduce, 8, 8, limit_ms, ran_ms));
  };
  EXPECT_TRUE(late(1'800'000, 24'411'902));
  EXPECT_TRUE(late(1'800'000, 2'711'840));
  EXPECT_FALSE(late(1'800'000, 1'803'000)) << "it looks every few seconds";
  EXPECT_FALSE(late(12'000, 40'000)) << "less than a minute";
  EXPECT_FALSE(late(1'800'000, 2'400'000)) << "a host under load";
  EXPECT_FALSE(late(-1, 2'400'000));
}

// Ranks 4 and 5 are the first two of their group; nobody below them can be a member of it.
TEST(TimeoutCensus, RanksBelowTheFirstMemberAreOutsideTheGroup) {
  const auto count = [](int32_t first_number, int32_t next_number) {
    JobSketch job(8);
    for (const auto& [rank, number] : {std::pair{4, first_number}, std::pair{6, next_number}}) {
      TimesOut(job, rank, 40, "21", OpKind::all_to_all);
      Event& status = job.Say(rank, EventKind::watchdog_status);
      status.seq = 40;
      status.group_name = "21";
      status.group_rank = GroupRank{number};
    }
    for (const int32_t silent : {0, 1, 2, 3, 5, 7}) job.LoseEverything(silent);
    return job.Finish();
  };
  const Incident next_to_each_other = count(0, 1);
  EXPECT_EQ(CountTimeouts(next_to_each_other).outside, Ranks({0, 1, 2, 3, 5}));
  EXPECT_EQ(CountTimeouts(next_to_each_other).unheard, Ranks({7}));
  const Incident one_between = count(0, 2);
  EXPECT_EQ(CountTimeouts(one_between).outside, Ranks({0, 1, 2, 3}));
  EXPECT_EQ(CountTimeouts(one_between).unheard, Ranks({5, 7}));
  const Incident one_below = count(1, 2);
  EXPECT_EQ(CountTimeouts(one_below).unheard, Ranks({0, 1, 2, 3, 7}));
  const Incident two_of_one_name = count(0, 0);
  EXPECT_TRUE(CountTimeouts(two_of_one_name).outside.empty());
}

TEST(TimeoutCensus, ALineWithoutAnOperationIsOfTheCallThatItsRankNames) {
  JobSketch job(3);
  TimesOut(job, 1, 29, "", OpKind::all_gather);
  TimesOut(job, 2, 29, "", OpKind::all_reduce);
  for (const int32_t r : {1, 2}) Finds(job, r, 29, "");
  const Incident incident = job.Finish();
  const TimeoutCensus census = CountTimeouts(incident);
  ASSERT_EQ(census.calls.size(), 2u);
  EXPECT_EQ(census.Of(Rank{1})->op, OpKind::all_gather);
  EXPECT_EQ(census.Of(Rank{2})->op, OpKind::all_reduce);
}

// The marks before the bars tell whose they are; who waits itself is not waited for.
TEST(TimeoutCensus, ABarIsOfWhoeverDrawsItAndDoesNotWait) {
  const auto owners = [](const std::vector<Rank>& drawn) {
    JobSketch job(4);
    for (const int32_t r : {2, 3}) {
      Event& event = job.Say(r, EventKind::watchdog_timeout);
      event.seq = 5;
      event.op = OpKind::all_reduce;
      event.ranks = drawn;
      event.Make<WatchdogTimeout>().bar = "Map: 8%";
    }
    const Incident incident = job.Finish();
    const TimeoutCensus census = CountTimeouts(incident);
    return std::pair(census.bar, census.bar_ranks);
  };
  EXPECT_EQ(owners(Ranks({0})), std::pair(std::string("Map: 8%"), Ranks({0})));
  EXPECT_EQ(owners(Ranks({0, 2})), std::pair(std::string("Map: 8%"), Ranks({0})));
  EXPECT_EQ(owners(Ranks({2})), std::pair(std::string(), Ranks({}))) << "its own bar is no other work";
  EXPECT_EQ(owners({}), std::pair(std::string("Map: 8%"), Ranks({}))) << "nobody is named";
}

}  // namespace
}  // namespace tacet
