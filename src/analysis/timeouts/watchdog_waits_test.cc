// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/watchdog_waits.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

void WaitIn(JobSketch& job, int32_t rank, int64_t seq, OpKind op = OpKind::all_reduce, int64_t elements = 1000,
            std::string group = "0") {
  Event& event = job.Say(rank, EventKind::watchdog_timeout);
  event.seq = seq;
  event.op = op;
  event.Make<WatchdogTimeout>().elements = elements;
  event.group_name = std::move(group);
}

std::vector<Rank> LaggardRanks(JobSketch& job) {
  std::vector<Rank> ranks;
  for (const ToldLaggard& laggard : FindWatchdogLaggards(job.Finish())) ranks.push_back(laggard.rank);
  return ranks;
}

TEST(WatchdogWaits, TheRankWithoutATimeoutIsWaitedFor) {
  JobSketch job(8);
  job.GiveOutputs();
  for (const int32_t r : job.AllBut({5})) WaitIn(job, r, 51);
  EXPECT_EQ(LaggardRanks(job), Ranks({5}));
}

TEST(WatchdogWaits, ARankWhoseOutputWasNotCollectedIsNot) {
  JobSketch job(8);
  for (const int32_t r : job.AllBut({5})) WaitIn(job, r, 51);
  EXPECT_TRUE(LaggardRanks(job).empty());
}

TEST(WatchdogWaits, WhenSeveralSayNothingNobodyIsSuspected) {
  JobSketch job(8);
  job.GiveOutputs();
  for (const int32_t r : {0, 1, 2, 3, 4, 5}) WaitIn(job, r, 51);
  EXPECT_TRUE(LaggardRanks(job).empty());
}

TEST(WatchdogWaits, RanksInDifferentCallsTellNothingOfASilentOne) {
  JobSketch job(4);
  job.GiveOutputs();
  WaitIn(job, 0, 51);
  WaitIn(job, 1, 51);
  WaitIn(job, 2, 52);
  EXPECT_TRUE(LaggardRanks(job).empty());
}

TEST(WatchdogWaits, TheRankThatHasEnqueuedLessIsWaitedFor) {
  JobSketch job(4);
  job.GiveOutputs();
  for (const int32_t r : {0, 2}) WaitIn(job, r, 51);
  for (const int32_t r : {0, 1, 2, 3})
    job.Say(r, EventKind::dump_signal).Make<WorkCounters>().last_enqueued = r == 3 ? 50 : 51;
  EXPECT_EQ(LaggardRanks(job), Ranks({3}));
}

void Signal(JobSketch& job, int32_t rank, int64_t enqueued, int64_t completed) {
  job.Say(rank, EventKind::dump_signal).Make<WorkCounters>() = {enqueued, completed};
}

// What it enqueued when the time of the others was up it enqueued too late, also where it times out itself after that.
TEST(WatchdogWaits, TheRankThatHadEnqueuedLessWhenTheOthersTimedOutCameLate) {
  JobSketch job(3);
  job.GiveOutputs();
  for (const int32_t r : {0, 2}) WaitIn(job, r, 7, OpKind::all_reduce, 1);
  Signal(job, 1, 6, 6);
  WaitIn(job, 1, 9);
  Event& status = job.Say(1, EventKind::watchdog_status);
  status.group_name = "0";
  status.Make<WorkCounters>() = {9, 8};
  const Incident incident = job.Finish();
  const auto laggards = FindWatchdogLaggards(incident);
  ASSERT_EQ(laggards.size(), 1u);
  EXPECT_EQ(laggards[0].rank, Rank{1});
  EXPECT_NE(laggards[0].arrived, nullptr);
  EXPECT_EQ(laggards[0].waiters, Ranks({0, 2}));
}

TEST(WatchdogWaits, TellsInWhichCallsTheOthersWait) {
  const auto says = [](int64_t seq_of_rank_0) {
    JobSketch job(4);
    job.GiveOutputs();
    WaitIn(job, 0, seq_of_rank_0);
    for (const int32_t r : {2, 3}) WaitIn(job, r, 33);
    Signal(job, 1, 32, 32);
    const Incident incident = job.Finish();
    const auto laggards = FindWatchdogLaggards(incident);
    return laggards.size() == 1 ? laggards[0].words : std::string();
  };
  EXPECT_NE(says(33).find("while its peers waited in all_reduce #33"), std::string::npos) << says(33);
  EXPECT_NE(says(35).find("while ranks 2-3 waited in all_reduce #33 and rank 0 in all_reduce #35"), std::string::npos)
      << says(35);
}

TEST(WatchdogWaits, ARankThatTimesOutInALaterCallIsNotLateByThatAlone) {
  JobSketch job(3);
  job.GiveOutputs();
  for (const int32_t r : {0, 2}) WaitIn(job, r, 7, OpKind::all_reduce, 1);
  WaitIn(job, 1, 9);
  EXPECT_TRUE(LaggardRanks(job).empty());
}

TEST(WatchdogWaits, WhoCompletedWhatAllOthersWaitInIssuedAnotherCall) {
  for (const int64_t completed : {412, 411}) {
    JobSketch job(4);
    job.GiveOutputs();
    for (const int32_t r : {0, 1, 2}) WaitIn(job, r, 412);
    Signal(job, 3, 412, completed);
    const Incident incident = job.Finish();
    const WatchdogStranger stranger = FindWatchdogStranger(incident);
    EXPECT_EQ(static_cast<bool>(stranger), completed == 412);
    EXPECT_EQ(stranger.rank, completed == 412 ? Rank{3} : Rank{});
  }
}

TEST(WatchdogWaits, ABroadcastMayEndOnOneRankBeforeTheOthers) {
  JobSketch job(4);
  job.GiveOutputs();
  for (const int32_t r : {0, 1, 2}) WaitIn(job, r, 412, OpKind::broadcast);
  Signal(job, 3, 412, 412);
  EXPECT_FALSE(FindWatchdogStranger(job.Finish()));
}

// Ranks 0 to 2 wait in the 12th collective of the job, and have sent and received 24 times besides.
TEST(WatchdogWaits, WorkThatCountsTransfersTooShowsNoStranger) {
  for (const int64_t completed : {11, 36}) {
    JobSketch job(4);
    job.GiveOutputs();
    for (const int32_t r : {0, 1, 2}) WaitIn(job, r, 12);
    for (const int32_t r : {0, 1, 2}) Signal(job, r, 376, completed);
    Signal(job, 3, 376, 35);
    EXPECT_EQ(static_cast<bool>(FindWatchdogStranger(job.Finish())), completed == 11);
  }
}

TEST(WatchdogWaits, AMessageThatDoesNotFitShowsThatTheLastRankIssuedAnotherCall) {
  for (const bool misfit : {true, false}) {
    JobSketch job(3);
    job.GiveOutputs();
    for (const int32_t r : {0, 1}) WaitIn(job, r, 34);
    Signal(job, 2, 34, 32);
    if (misfit) job.Say(2, EventKind::nccl_warning).Make<Warning>().id = "message-truncated";
    const Incident incident = job.Finish();
    EXPECT_EQ(static_cast<bool>(FindWatchdogStranger(incident)), misfit);
  }
}

TEST(WatchdogWaits, AnErrorTellsTheCallOfItsRankAsATimeoutDoes) {
  JobSketch job(3);
  job.GiveOutputs();
  WaitIn(job, 1, 71, OpKind::broadcast);
  WaitIn(job, 2, 71, OpKind::all_reduce);
  Event& error = job.Say(0, EventKind::nccl_error);
  error.seq = 71;
  error.op = OpKind::broadcast;
  error.Make<NcclError>().elements = 1000;
  Event& status = job.Say(0, EventKind::watchdog_status);
  status.seq = 71;
  status.group_name = "0";
  const Incident incident = job.Finish();
  const auto differences = FindWatchdogDifferences(incident);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_FALSE(differences[0].tied);
  EXPECT_EQ(differences[0].odd_ranks, Ranks({2}));
  EXPECT_EQ(differences[0].usual_ranks, Ranks({0, 1}));
}

// [rank7]: ... [PG ID 1 PG GUID 1 Rank 7]: members are sorted, so ranks 0 to 6 are in it, too.
TEST(WatchdogWaits, AGroupInWhichTheLastRankHasItsOwnNumberIsTheWholeJob) {
  for (const int32_t number : {7, 3}) {
    JobSketch job(8);
    job.GiveOutputs();
    for (const int32_t r : job.AllBut({5})) {
      WaitIn(job, r, 51, OpKind::all_reduce, 1000, "1");
      job.Say(r, EventKind::watchdog_status).group_name = "1";
    }
    Incident incident = job.Finish();
    for (Process& process : incident.processes) process.rank_certainty = Certainty::stated;
    for (Event& event : incident.events)
      if (event.rank == Rank{7}) event.group_rank = GroupRank{number};
    const auto laggards = FindWatchdogLaggards(incident);
    EXPECT_EQ(laggards.size(), number == 7 ? 1u : 0u);
    if (!laggards.empty()) {
      EXPECT_EQ(laggards[0].rank, Rank{5});
    }
  }
}

TEST(WatchdogWaits, ARankThatWaitsInAnotherGroupIsAVictim) {
  JobSketch job(4);
  job.GiveOutputs();
  for (const int32_t r : {0, 1, 2}) WaitIn(job, r, 51);
  WaitIn(job, 3, 7, OpKind::all_gather, 10, "5");
  job.Say(3, EventKind::dump_signal).Make<WorkCounters>().last_enqueued = 50;
  EXPECT_TRUE(LaggardRanks(job).empty());
}

TEST(WatchdogWaits, FindsTheOddOperationAndTheOddSize) {
  JobSketch operation(4), size(4);
  for (const int32_t r : {0, 1, 2}) WaitIn(operation, r, 51);
  WaitIn(operation, 3, 51, OpKind::all_gather);
  for (const int32_t r : {0, 2, 3}) WaitIn(size, r, 51);
  WaitIn(size, 1, 51, OpKind::all_reduce, 999);
  const Incident a = operation.Finish(), b = size.Finish();
  const auto first = FindWatchdogDifferences(a), second = FindWatchdogDifferences(b);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].size);
  EXPECT_EQ(first[0].odd_ranks, Ranks({3}));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_TRUE(second[0].size);
  EXPECT_EQ(second[0].odd_ranks, Ranks({1}));
}

TEST(WatchdogWaits, UnevenGathersAndOtherNumbersAreNoDifference) {
  JobSketch job(4);
  for (const int32_t r : {0, 1, 2}) WaitIn(job, r, 51, OpKind::all_gather, 100 + r);
  WaitIn(job, 3, 52);
  EXPECT_TRUE(FindWatchdogDifferences(job.Finish()).empty());
}

TEST(WatchdogWaits, GroupsOfOneNameAreNotCompared) {
  JobSketch job(4);
  for (const int32_t r : {0, 1, 2, 3}) {
    WaitIn(job, r, 51, OpKind::all_reduce, r == 3 ? 7 : 1000, "tp");
    Event& event = job.Say(r, EventKind::watchdog_timeout);
    event.seq = 51;
    event.op = OpKind::all_reduce;
    event.group_name = "dp";
    event.group_rank = GroupRank{r % 2};
    event.Make<WatchdogTimeout>().elements = r == 3 ? 7 : 1000;
  }
  const Incident incident = job.Finish();
  const auto found = FindWatchdogDifferences(incident);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].odd->group_name, "tp");
}

TEST(WatchdogWaits, AWaitWhoseGroupWasLostIsComparedWithTheOnlyGroup) {
  JobSketch job(8);
  WaitIn(job, 7, 71044, OpKind::broadcast);
  WaitIn(job, 3, 71044, OpKind::all_reduce, 1000, "");
  EXPECT_EQ(FindWatchdogDifferences(job.Finish()).size(), 1u);
}

// Small numbers are alike in many groups.
TEST(WatchdogWaits, ASmallNumberDoesNotTellTheGroup) {
  JobSketch job(8);
  WaitIn(job, 7, 5, OpKind::broadcast);
  WaitIn(job, 3, 5, OpKind::all_reduce, 1000, "");
  EXPECT_TRUE(FindWatchdogDifferences(job.Finish()).empty());
}

Event& Refuse(JobSketch& job, int32_t rank, int64_t seq, OpKind op, int64_t code = 5) {
  Event& error = job.Say(rank, EventKind::nccl_error);
  error.seq = seq;
  error.op = op;
  error.Make<NcclError>().code = code;
  return error;
}

TEST(WatchdogWaits, ACallThatNcclRefusedWasIssuedAsWell) {
  JobSketch job(3);
  WaitIn(job, 1, 29, OpKind::all_gather, 1, "");
  WaitIn(job, 2, 29, OpKind::all_reduce, 524544, "");
  Refuse(job, 0, 29, OpKind::all_gather);
  const Incident incident = job.Finish();
  const auto differences = FindWatchdogDifferences(incident);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].odd_ranks, Ranks({2}));
  EXPECT_EQ(differences[0].usual_ranks, Ranks({0, 1}));
  EXPECT_FALSE(differences[0].tied);
  ASSERT_EQ(differences[0].failed.size(), 1u);
  EXPECT_EQ(differences[0].usual->kind, EventKind::watchdog_timeout);
}

TEST(WatchdogWaits, ACallThatEndedWithAPeerIsNotComparedWithOthers) {
  JobSketch job(3);
  WaitIn(job, 1, 29, OpKind::all_gather, 1, "");
  WaitIn(job, 2, 29, OpKind::all_reduce, 524544, "");
  Refuse(job, 0, 29, OpKind::all_gather, 6);
  const Incident incident = job.Finish();
  const auto differences = FindWatchdogDifferences(incident);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_TRUE(differences[0].tied);
}

}  // namespace
}  // namespace tacet
