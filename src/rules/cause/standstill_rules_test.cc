// SPDX-License-Identifier: Apache-2.0
// A rank that does not come: stuck on its host, frozen, dead.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

// Everybody but `rank` is in the next all-reduce, for as long as the time limit.
JobSketch Missing(const FaultPlace& place, std::vector<CallSource> sources = {CallSource::flight_recorder}) {
  JobSketch job(place.world, std::move(sources));
  job.Rounds(place.rounds);
  job.IssueOn(job.AllBut({place.rank}), kStarted);
  job.Wait(600 * kSecondNs);
  return job;
}

class LostRank : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, LostRank,
                         testing::Values(FaultPlace{2, 0, 1}, FaultPlace{2, 1, 40}, FaultPlace{4, 2, 7},
                                         FaultPlace{8, 0, 0}, FaultPlace{8, 7, 33}, FaultPlace{64, 63, 100},
                                         FaultPlace{1024, 517, 5}),
                         [](const auto& info) { return PlaceName(info.param); });

// rank-stuck-on-host

TEST_P(LostRank, ARankInItsLoaderIsStuckOnTheHost) {
  const FaultPlace& place = GetParam();
  JobSketch job = Missing(place);
  job.Stack(place.rank, InDataLoader());
  const JudgedCase judged(job);
  const Finding finding = judged.Only("rank-stuck-on-host");
  EXPECT_EQ(finding.cause, "rank-stuck-on-host");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.severity, Severity::critical);
  EXPECT_EQ(finding.confidence, Confidence::certain);
  ASSERT_TRUE(finding.operation);
  EXPECT_EQ(finding.operation->kind, OpKind::all_reduce);
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  EXPECT_EQ(finding.operation->bytes, 4096);
  EXPECT_EQ(finding.group, kWorld);
  EXPECT_EQ(finding.affected_ranks.size(), static_cast<size_t>(place.world - 1));
  EXPECT_NE(finding.headline.find("load_next_batch"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "rank-stuck-on-host");
  EXPECT_EQ(judged.Verdict().ranks, Ranks({place.rank}));
}

TEST_P(LostRank, TheTimeoutReportedByAVictimDoesNotChangeWhoIsStuck) {
  const FaultPlace& place = GetParam();
  JobSketch job = Missing(place);
  for (const int32_t r : job.AllBut({place.rank})) job.TimeOut(r, place.rounds + 1);
  EXPECT_EQ(JudgedCase(job).Only("rank-stuck-on-host").ranks, Ranks({place.rank}));
}

TEST(RankStuckOnHost, WithoutAStackItIsOnlyLikelyAndTheStackIsAskedFor) {
  JobSketch job = Missing({8, 3, 20});
  const RuleAnswer answer = JudgedCase(job).Ask("rank-stuck-on-host");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.findings[0].confidence, Confidence::likely);
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_NE(answer.open[0].missing.find("stack"), std::string::npos);
}

TEST(RankStuckOnHost, AdviceNamesTheFrameOrTheProcessToLookAt) {
  JobSketch known = Missing({4, 2, 7});
  known.Stack(2, InDataLoader());
  const std::string frame = JudgedCase(known).Verdict().findings.front().fix.front();
  EXPECT_NE(frame.find("load_next_batch"), std::string::npos) << frame;
  for (const bool has_process : {true, false}) {
    JobSketch sketch = Missing({4, 2, 7});
    Incident incident = sketch.Finish();
    Process& process = incident.processes[incident.process_of.at(Rank{2})];
    process.host = "node-7", process.pid = 4711;
    if (!has_process) incident.process_of.erase(Rank{2});
    const std::string command = JudgedCase(std::move(incident)).Verdict().findings.front().fix.front();
    EXPECT_EQ(command, has_process
                           ? "Check what rank 2 does: py-spy dump --native --pid 4711 on node-7, or gdb -p 4711."
                           : "Check what rank 2 does: py-spy dump --native --pid PID on its host, or gdb -p PID.");
  }
}

TEST(RankStuckOnHost, NamesBothOfTwo) {
  JobSketch job(8);
  job.Rounds(12);
  job.IssueOn(job.AllBut({2, 6}), kStarted);
  job.Wait(600 * kSecondNs);
  EXPECT_EQ(JudgedCase(job).Only("rank-stuck-on-host").ranks, Ranks({2, 6}));
}

TEST(RankStuckOnHost, FollowsTheWaitsThroughSeveralGroups) {
  // Tensor pairs {0,1} {2,3} ..., data groups {0,2,4,6} {1,3,5,7}. Rank 5 is stuck before its tensor operation; rank 4
  // waits for it there, and everybody else for 4 in the data groups.
  JobSketch job(8);
  std::vector<GroupIndex> pairs;
  for (int32_t p = 0; p < 4; ++p) pairs.push_back(job.AddGroup("tp", {2 * p, 2 * p + 1}));
  const GroupIndex even = job.AddGroup("dp", {0, 2, 4, 6}), odd = job.AddGroup("dp", {1, 3, 5, 7});
  for (int s = 0; s < 10; ++s) {
    for (const GroupIndex pair : pairs) job.IssueAll({.group = pair});
    job.IssueAll({.group = even});
    job.IssueAll({.group = odd});
  }
  for (const int p : {0, 1, 3}) job.IssueAll({.group = pairs[static_cast<size_t>(p)]});
  job.Issue(4, {.group = pairs[2], .state = CallState::started});
  job.IssueOn({0, 2, 6}, {.group = even, .state = CallState::started});
  job.IssueOn({1, 3, 7}, {.group = odd, .state = CallState::started});
  job.Wait(600 * kSecondNs);
  const Finding finding = JudgedCase(job).Only("rank-stuck-on-host");
  EXPECT_EQ(finding.ranks, Ranks({5}));
  EXPECT_EQ(finding.group, pairs[2]);
  EXPECT_EQ(finding.operation->seq, 11);
  EXPECT_EQ(finding.affected_ranks, Ranks({0, 1, 2, 3, 4, 6, 7}));
}

TEST(RankStuckOnHost, IsToldByStacksAloneWhenTheRecorderWasOff) {
  JobSketch job(4, {});
  job.TimeOut(0, 12);
  for (const int r : {0, 1, 3}) job.Stack(r, InCollective());
  job.Stack(2, InDataLoader());
  const Finding finding = JudgedCase(job).Only("rank-stuck-on-host");
  EXPECT_EQ(finding.ranks, Ranks({2}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
  EXPECT_FALSE(finding.operation);
}

TEST(RankStuckOnHost, StaysSilentWhenTheJobEndedInOrder) {
  JobSketch job(8);
  job.Rounds(30);
  job.FinishAll();
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-stuck-on-host"));
  EXPECT_FALSE(judged.Fires("rank-frozen"));
  EXPECT_FALSE(judged.Fires("rank-dead"));
}

// A dump on demand from a running job: one rank is a moment behind, as always.
JobSketch Snapshot(bool timed) {
  JobSketch job(8);
  job.timed = timed;
  job.Rounds(30);
  job.IssueOn(job.AllBut({5}), kStarted);
  job.Wait(50 * kMillisecondNs);
  job.GiveOutputs();
  return job;
}

TEST(RankStuckOnHost, StaysSilentOnASnapshotOfARunningJob) {
  for (const bool timed : {true, false}) {
    JobSketch job = Snapshot(timed);
    const JudgedCase judged(job);
    EXPECT_FALSE(judged.Fires("rank-stuck-on-host"));
    const Diagnosis verdict = judged.Verdict();
    EXPECT_TRUE(verdict.ranks.empty()) << verdict.headline;
    for (const Finding& finding : verdict.findings) EXPECT_EQ(finding.severity, Severity::note) << finding.headline;
  }
}

TEST(RankStuckOnHost, StaysSilentOnASlowJobThatAdvances) {
  JobSketch job(8);
  for (int s = 0; s < 20; ++s) {
    for (const int r : job.AllBut({3})) job.Issue(r, {.duration_ms = 95'000});
    job.Wait(95 * kSecondNs);
    job.Issue(3, {.duration_ms = 2});
    job.Wait(kSecondNs);
  }
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-stuck-on-host"));
  EXPECT_TRUE(judged.standstill().ranks.empty());
}

TEST(RankStuckOnHost, DoesNotBlameARankThatLostItsDumpButKeptUpInItsLog) {
  JobSketch job = [] {
    JobSketch both(8, {CallSource::flight_recorder, CallSource::nccl_log});
    both.Rounds(20);
    both.IssueOn(both.AllBut({6}), kStarted);
    both.Wait(600 * kSecondNs);
    return both;
  }();
  job.LoseRecord(2);
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({6}));
  EXPECT_EQ(judged.Verdict().ranks, Ranks({6}));
}

TEST(RankStuckOnHost, LeavesARankThatRaisedToItsException) {
  JobSketch job = Missing({4, 1, 9});
  job.Say(1, EventKind::exception).Make<Raised>().type = "ValueError";
  EXPECT_FALSE(JudgedCase(job).Fires("rank-stuck-on-host"));
}

TEST(RankStuckOnHost, LeavesARankThatWaitsInALaterCallAlone) {
  // Rank 3 left out one call of a subgroup and waits in the next of the world: it is no host that is stuck.
  JobSketch job(4);
  const GroupIndex pair = job.AddGroup("tp", {2, 3});
  job.Rounds(10);
  job.Issue(2, {.group = pair, .state = CallState::started});
  job.IssueOn({0, 1, 3}, kStarted);
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("rank-stuck-on-host"));
}

TEST(RankStuckOnHost, IsKeptWhenTheDriverLogsTheKillOfTheStuckProcess) {
  // The launcher kills the stuck process after the timeout; the driver then writes Xid 45, an aftermath.
  JobSketch job = Missing({8, 3, 20});
  job.Stack(3, InDataLoader());
  job.Wait(kSecondNs);
  Event& xid = job.Tell(EventKind::xid);
  xid.Make<Xid>().number = 45;
  xid.rank = Rank{3};
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({3}));
  EXPECT_FALSE(judged.Fires("gpu-fault"));
}

TEST(RankStuckOnHost, ARankThatSawTheDumpSignalIsAlive) {
  JobSketch job = Missing({4, 1, 10}, {CallSource::flight_recorder, CallSource::nccl_log});
  job.LoseRecord(1);
  job.Say(1, EventKind::dump_signal);
  const Finding finding = JudgedCase(job).Only("rank-stuck-on-host");
  EXPECT_EQ(finding.ranks, Ranks({1}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

// rank-frozen

// The peers dumped and printed stacks; `rank` has nothing but the beginning of its output.
JobSketch Frozen(const FaultPlace& place) {
  JobSketch job = Missing(place);
  for (const int32_t r : job.AllBut({place.rank})) {
    job.Stack(r, InCollective());
    job.TimeOut(r, place.rounds + 1);
  }
  job.LoseRecord(place.rank);
  Event& last = job.Say(place.rank, EventKind::progress);
  last.wall_ns -= 601 * kSecondNs;
  last.Make<Progress>().step = place.rounds;
  return job;
}

class LostRankWithPeers : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, LostRankWithPeers,
                         testing::Values(FaultPlace{4, 2, 7}, FaultPlace{8, 0, 3}, FaultPlace{8, 7, 33},
                                         FaultPlace{64, 63, 100}, FaultPlace{1024, 517, 5}),
                         [](const auto& info) { return PlaceName(info.param); });

TEST_P(LostRankWithPeers, ARankWithoutDumpAndStackWhosePeersHaveBothIsFrozen) {
  const FaultPlace& place = GetParam();
  JobSketch job = Frozen(place);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("rank-frozen");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.confidence, Confidence::likely);
  ASSERT_TRUE(finding.operation);
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.cause, "rank-frozen");
  EXPECT_EQ(verdict.status, Status::hang);
}

TEST(RankFrozen, AProcessThatTheKernelReportsAsBlockedIsFrozen) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(20);
  job.IssueOn(job.AllBut({5}), {});
  for (const int32_t r : job.AllBut({5})) job.TimeOut(r, 21);
  Event& blocked = job.Tell(EventKind::hung_task);
  blocked.rank = Rank{5};
  blocked.Make<HungTask>().seconds = 122;
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("rank-frozen").ranks, Ranks({5}));
  EXPECT_EQ(judged.Only("rank-frozen").confidence, Confidence::certain);
}

TEST(RankFrozen, ABlockedTaskInAJobThatEndedWellIsNothing) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(20);
  job.Tell(EventKind::hung_task).rank = Rank{2};
  job.FinishAll();
  EXPECT_FALSE(JudgedCase(job).Fires("rank-frozen"));
}

TEST(RankFrozen, StaysSilentWhenConnectionsClosed) {
  JobSketch job = Frozen({8, 3, 10});
  job.Log(4, EventKind::connection_lost);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-frozen"));
  EXPECT_EQ(judged.Only("rank-dead").ranks, Ranks({3}));
}

TEST(RankFrozen, StaysSilentWhenTheRankSawTheDumpSignal) {
  JobSketch job = Frozen({8, 3, 10});
  job.Say(3, EventKind::dump_signal);
  EXPECT_FALSE(JudgedCase(job).Fires("rank-frozen"));
}

TEST(RankFrozen, StaysSilentWhenNobodyPrintedStacks) {
  JobSketch job = Missing({8, 3, 10});
  job.LoseRecord(3);
  job.Say(3, EventKind::progress);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-frozen"));
  // Then nothing tells frozen from dead: a suspect, and what to capture.
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_EQ(verdict.ranks, Ranks({3}));
  EXPECT_TRUE(verdict.cause.empty());
  ASSERT_FALSE(verdict.open.empty());
  EXPECT_NE(verdict.open.back().missing.find("py-spy"), std::string::npos);
}

TEST(RankFrozen, StaysSilentWhenNoFileOfTheRankWasCollected) {
  JobSketch job = Frozen({8, 3, 10});
  job.LoseEverything(3);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-frozen"));
  EXPECT_FALSE(judged.Fires("rank-dead"));
  EXPECT_EQ(judged.Verdict().status, Status::hang);
}

TEST(RankFrozen, AHalfCollectedJobSuspectsNobody) {
  JobSketch job = Missing({8, 3, 10});
  for (const int r : {1, 3, 5, 7}) job.LoseEverything(r);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_TRUE(verdict.ranks.empty()) << verdict.headline;
  EXPECT_FALSE(verdict.open.empty());
}

// rank-dead

class Signals : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(FirstHand, Signals, testing::Values(-11, -9, -7, -4, 3, 139));

TEST_P(Signals, AToldEndIsADeath) {
  for (const FaultPlace place : {FaultPlace{2, 1, 3}, FaultPlace{8, 5, 20}, FaultPlace{64, 0, 2}}) {
    JobSketch job = Missing(place);
    job.LoseRecord(place.rank);
    job.Say(place.rank, EventKind::process_exited).Make<ProcessEnd>().code = GetParam();
    const Finding finding = JudgedCase(job).Only("rank-dead");
    EXPECT_EQ(finding.ranks, Ranks({place.rank}));
    EXPECT_EQ(finding.status, Status::hang);
    EXPECT_EQ(finding.confidence, Confidence::certain);
    EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  }
}

class CleanUps : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(AfterTheFact, CleanUps, testing::Values(-15, -6, 1));

TEST_P(CleanUps, TheLaunchersAndTheWatchdogsSignalsAreConsequences) {
  JobSketch job = Missing({8, 3, 20});
  job.Stack(3, InDataLoader());
  for (int r = 0; r < 8; ++r) job.Say(r, EventKind::process_exited).Make<ProcessEnd>().code = GetParam();
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-dead"));
}

TEST(RankDead, ASegmentationFaultIsADeathAndACrashWhenNobodyHangs) {
  JobSketch job(8);
  job.Rounds(20);
  Event& fault = job.Tell(EventKind::segfault);
  fault.rank = Rank{6};
  fault.Make<Segfault>().process = "python";
  const Finding finding = JudgedCase(job).Only("rank-dead");
  EXPECT_EQ(finding.ranks, Ranks({6}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_NE(finding.headline.find("segmentation fault"), std::string::npos);
}

TEST(RankDead, OfSeveralEndsTheFirstIsTheCause) {
  JobSketch job(8);
  job.Rounds(20);
  job.Wait(kSecondNs);
  job.Say(6, EventKind::process_exited).Make<ProcessEnd>().code = -11;
  job.Wait(30 * kSecondNs);
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  EXPECT_EQ(JudgedCase(job).Only("rank-dead").ranks, Ranks({6}));
}

TEST(RankDead, AKillThatCameAfterAnotherRankFailedIsTheLaunchersCleanUp) {
  // torchrun sends SIGTERM to the rest and SIGKILL half a minute later to whoever has not gone.
  JobSketch job(8);
  job.Rounds(20);
  job.Wait(kSecondNs);
  job.Say(6, EventKind::process_exited).Make<ProcessEnd>().code = 1;
  job.Wait(30 * kSecondNs);
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-dead"));
  EXPECT_NE(judged.Verdict().ranks, Ranks({2}));
}

TEST(RankDead, AKillBesideAnErrorInUserCodeIsTheLaunchersCleanUp) {
  // srun kills the rest at once; its lines and tracebacks have no times.
  JobSketch job(8);
  job.Rounds(20);
  Event& raised = job.Say(6, EventKind::exception);
  raised.Make<Raised>().type = "ValueError";
  raised.wall_ns = kNoTime;
  Event& killed = job.Say(2, EventKind::process_exited);
  killed.Make<ProcessEnd>().code = -9;
  killed.wall_ns = kNoTime;
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "application-exception");
  EXPECT_EQ(verdict.ranks, Ranks({6}));
}

TEST(RankDead, ARankGoneWithoutAWordIsNamedAndNotThePeersWhoseGpusFail) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  job.Wait(kSecondNs);
  job.Log(1, EventKind::connection_lost);
  for (const int32_t r : {0, 1, 2})
    job.Say(r, EventKind::cuda_error).Make<CudaError>().words = "an illegal memory access was encountered";
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("gpu-fault"));
  const Finding finding = judged.Only("rank-dead");
  EXPECT_EQ(finding.ranks, Ranks({3}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

TEST(RankDead, ExitCodeOneLongBeforeTheTimeoutsIsADeath) {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, kStarted);
  job.LoseRecord(2);
  job.Wait(kSecondNs);
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = 1;
  job.Wait(600 * kSecondNs);
  for (const int32_t r : {0, 1, 3}) job.TimeOut(r, 11);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "rank-dead");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

TEST_P(LostRankWithPeers, AClosedConnectionAndNoDumpAreADeath) {
  const FaultPlace& place = GetParam();
  JobSketch job = Missing(place);
  job.LoseRecord(place.rank);
  job.Say(place.rank, EventKind::progress).wall_ns -= 601 * kSecondNs;
  job.Log((place.rank + 1) % place.world, EventKind::connection_lost);
  const JudgedCase judged(job);
  const RuleAnswer answer = judged.Ask("rank-dead");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.findings[0].ranks, Ranks({place.rank}));
  EXPECT_EQ(answer.findings[0].confidence, Confidence::likely);
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_NE(answer.open[0].missing.find("dmesg"), std::string::npos);
  EXPECT_FALSE(judged.Fires("rank-frozen"));
}

TEST(RankDead, AConnectionClosedAfterANormalEndIsNothing) {
  JobSketch job(8);
  job.Rounds(20);
  job.FinishAll();
  job.Wait(kSecondNs);
  job.Log(0, EventKind::connection_lost);
  job.Log(5, EventKind::connection_lost);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-dead"));
  EXPECT_TRUE(judged.Verdict().ranks.empty());
}

TEST(RankDead, WhoReportsTheClosedConnectionIsAVictim) {
  // Rank 4 saw the connection close and stopped there: it has issued as little as the dead rank 3.
  JobSketch job(8);
  job.Rounds(15);
  job.IssueOn(job.AllBut({3, 4}), kStarted);
  job.Wait(600 * kSecondNs);
  job.LoseRecord(3);
  job.Say(3, EventKind::progress).wall_ns -= 601 * kSecondNs;
  job.Log(4, EventKind::connection_lost);
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("rank-dead").ranks, Ranks({3}));
  EXPECT_FALSE(judged.Fires("rank-stuck-on-host"));
}

TEST(RankDead, LeavesAKilledRankToItsBetterCause) {
  JobSketch job = Missing({8, 3, 20});
  job.LoseRecord(3);
  job.Say(3, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  Event& kill = job.Tell(EventKind::oom_kill);
  kill.rank = Rank{3};
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-dead"));
  EXPECT_EQ(judged.Verdict().cause, "rank-out-of-memory");
}

// Two pipelines, each of whose second stages does not take what the first one sends.
TEST(RankStuckOnHost, OfSeveralRanksEachOneIsShownAndSpokenOf) {
  JobSketch job(4);
  const GroupIndex pipes[] = {job.AddGroup("pp", {0, 2}), job.AddGroup("pp", {1, 3})};
  job.Rounds(3);
  for (int32_t r : {0, 1})
    job.Issue(
        r, {.kind = OpKind::send, .group = pipes[r], .peer = 1, .state = CallState::enqueued, .flags = kPointToPoint});
  for (int32_t r : {0, 1}) job.TimeOut(r, 1);
  job.Wait(600 * kSecondNs);
  const RuleAnswer answer = JudgedCase(job).Ask("rank-stuck-on-host");
  ASSERT_EQ(answer.findings.size(), 1u);
  const Finding& finding = answer.findings[0];
  EXPECT_EQ(finding.ranks, Ranks({2, 3}));
  EXPECT_NE(finding.headline.find("have not received what ranks 0 and 1 send in send #1 on pp"), std::string::npos)
      << finding.headline;
  ASSERT_GE(finding.evidence.size(), 2u);
  EXPECT_EQ(finding.evidence[1].says, "rank 1 waits in this for rank 3");
  EXPECT_EQ(finding.fix[0].find("Check what ranks 2 and 3 do"), 0u) << finding.fix[0];
  ASSERT_FALSE(answer.open.empty());
  EXPECT_EQ(answer.open[0].question.find("What are ranks 2 and 3 doing on the host? They may"), 0u)
      << answer.open[0].question;
}

}  // namespace
}  // namespace tacet
