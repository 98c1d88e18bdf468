// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/standstill.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

struct Standing {
  explicit Standing(JobSketch& job)
      : incident(job.Finish()), analyses(Analyse(incident)), view(FindStandstills(incident, analyses)) {}
  StandstillKind KindOf(int32_t rank) const {
    for (const Standstill& still : view.ranks)
      if (still.rank == Rank{rank}) return still.kind;
    ADD_FAILURE() << "rank " << rank << " does not stand still";
    return StandstillKind::unclear;
  }
  std::vector<Rank> Named() const {
    std::vector<Rank> ranks;
    for (const Standstill& still : view.ranks) ranks.push_back(still.rank);
    return ranks;
  }
  Incident incident;
  Analyses analyses;
  StandstillView view;
};

JobSketch Missing(int32_t world, int32_t rank, std::vector<CallSource> sources = {CallSource::flight_recorder}) {
  JobSketch job(world, std::move(sources));
  job.Rounds(10);
  job.IssueOn(job.AllBut({rank}), kStarted);
  job.Wait(600 * kSecondNs);
  return job;
}

TEST(Standstill, NobodyStandsStillInAFinishedJob) {
  JobSketch job(8);
  job.Rounds(10);
  job.FinishAll();
  const Standing standing(job);
  EXPECT_TRUE(standing.view.ranks.empty());
  EXPECT_TRUE(standing.view.waiters.empty());
  EXPECT_EQ(standing.view.operation, nullptr);
}

TEST(Standstill, ARecordedRankThatDoesNotComeIsOnItsHost) {
  JobSketch job = Missing(8, 2);
  const Standing standing(job);
  EXPECT_EQ(standing.Named(), Ranks({2}));
  EXPECT_EQ(standing.KindOf(2), StandstillKind::host);
  EXPECT_TRUE(standing.view.ranks[0].alive);
  ASSERT_NE(standing.view.operation, nullptr);
  EXPECT_EQ(standing.view.operation->seq, 11u);
  EXPECT_EQ(standing.view.waiters, Ranks({0, 1, 3, 4, 5, 6, 7}));
}

// The members of one stage wait for rank 2; ranks 0 and 1, of other stages, are in a transfer that both have issued.
TEST(Standstill, WhoIsInAnOperationThatDoesNotEndWaitsToo) {
  for (const bool just_begun : {false, true}) {
    JobSketch job(8);
    const GroupIndex stage = job.AddGroup("tp", {2, 3, 4, 5, 6, 7});
    job.Rounds(10);
    for (int i = 0; i < 10; ++i) job.IssueAll({.group = stage});
    job.IssueOn({3, 4, 5, 6, 7}, {.group = stage, .state = CallState::started});
    if (just_begun) job.Wait(600 * kSecondNs);
    job.Issue(0, {.kind = OpKind::send, .peer = 1, .state = CallState::started});
    job.Issue(1, {.kind = OpKind::recv, .peer = 0, .state = CallState::started});
    job.Wait(just_begun ? 100 * kMillisecondNs : 600 * kSecondNs);
    const Standing standing(job);
    EXPECT_EQ(standing.Named(), Ranks({2}));
    EXPECT_EQ(standing.view.waiters, just_begun ? Ranks({3, 4, 5, 6, 7}) : Ranks({0, 1, 3, 4, 5, 6, 7}));
  }
}

TEST(Standstill, ALogAloneSaysWhoButNotWhy) {
  JobSketch job = Missing(8, 2, {CallSource::nccl_log});
  EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::unclear);
}

TEST(Standstill, AStackDecidesBetweenHostAndGpu) {
  JobSketch host = Missing(8, 2, {CallSource::nccl_log});
  host.Stack(2, InDataLoader());
  host.Say(0, EventKind::watchdog_timeout);
  EXPECT_EQ(Standing(host).KindOf(2), StandstillKind::host);
  JobSketch gpu = Missing(8, 2);
  gpu.Stack(2, InSynchronize());
  EXPECT_EQ(Standing(gpu).KindOf(2), StandstillKind::gpu);
}

TEST(Standstill, WhereNothingTellsOfTimeAStackOnTheHostIsAPictureOfOneMoment) {
  // A log without times and one stack: in a running job, too, somebody loads its batch.
  JobSketch job = Missing(8, 2, {CallSource::nccl_log});
  job.Stack(2, InDataLoader());
  EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::unclear);
}

TEST(Standstill, AStackOnTheHostCountsWhereAllOthersWaitAtThatMoment) {
  for (const bool another : {false, true}) {
    JobSketch job = Missing(8, 2, {CallSource::nccl_log});
    for (int32_t r = 0; r < 8; ++r) job.Stack(r, r == 2 || (another && r == 5) ? InDataLoader() : InSynchronize());
    EXPECT_EQ(Standing(job).KindOf(2), another ? StandstillKind::unclear : StandstillKind::host);
  }
}

TEST(Standstill, ManyCallsBehindIsMoreThanAMoment) {
  for (const int ahead : {4, 200}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(10);
    for (int i = 0; i < ahead; ++i) job.IssueOn(job.AllBut({2}), {});
    job.Stack(2, InDataLoader());
    const Standing standing(job);
    EXPECT_EQ(standing.view.lasts, ahead == 200);
    EXPECT_EQ(standing.KindOf(2), ahead == 200 ? StandstillKind::host : StandstillKind::unclear);
  }
}

TEST(Standstill, ARankThatWaitsForItsGpuForAMomentIsNotStalled) {
  for (const bool timeout : {false, true}) {
    JobSketch job = Missing(8, 2, {CallSource::nccl_log});
    job.Stack(2, InSynchronize());
    for (const int32_t r : job.AllBut({2})) job.Stack(r, InCollective());
    if (timeout) job.Say(0, EventKind::watchdog_timeout);
    EXPECT_EQ(Standing(job).KindOf(2), timeout ? StandstillKind::gpu : StandstillKind::unclear);
  }
}

// A log may have been cut where it ends; then the rank stands where the others do.
TEST(Standstill, WhoseLogEndsEarlyButStandsInTheLineOfTheWaitersIsUnclear) {
  for (const auto& frames : {InSynchronize(), InCollective()}) {
    JobSketch job = Missing(8, 2, {CallSource::nccl_log});
    for (int32_t r = 0; r < 8; ++r) job.Stack(r, frames);
    EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::unclear);
  }
  JobSketch apart = Missing(8, 2, {CallSource::nccl_log});
  for (const int32_t r : apart.AllBut({2})) apart.Stack(r, InCollective());
  apart.Stack(2, InSynchronize());
  apart.TimeOut(0, 11);
  EXPECT_EQ(Standing(apart).KindOf(2), StandstillKind::gpu);
}

TEST(Standstill, AUsersOwnFrameProvesNothingAgainstTheEndOfALog) {
  const std::vector<SketchedFrame> own = {{"train_step", "/srv/train.py", 40}, {"<module>", "/srv/train.py", 90}};
  JobSketch alone = Missing(2, 1, {CallSource::nccl_log});
  alone.Stack(1, own);
  EXPECT_EQ(Standing(alone).KindOf(1), StandstillKind::unclear);
  JobSketch recorded = Missing(2, 1);
  recorded.Stack(1, own);
  EXPECT_EQ(Standing(recorded).KindOf(1), StandstillKind::host);
}

TEST(Standstill, WhereARecordOfARankIsCutItsLogIsNotTrustedEither) {
  for (const bool cut : {false, true}) {
    JobSketch job = Missing(8, 2, {CallSource::flight_recorder, CallSource::nccl_log});
    job.Say(2, EventKind::dump_signal);
    job.StreamOf(2).cut = cut;
    EXPECT_EQ(Standing(job).KindOf(2), cut ? StandstillKind::unclear : StandstillKind::host);
  }
}

TEST(Standstill, WhereSomebodyFinishedAndNobodyHangsALogThatEndsEarlyIsNoStandstill) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, {});
  job.Stack(2, InDataLoader());  // a dump taken on the way
  job.Say(0, EventKind::process_finished);
  EXPECT_TRUE(Standing(job).view.ranks.empty());
  JobSketch hangs = Missing(4, 2, {CallSource::nccl_log});
  hangs.Stack(2, InDataLoader());
  hangs.Say(0, EventKind::process_finished);
  hangs.TimeOut(1, 11);
  EXPECT_EQ(Standing(hangs).KindOf(2), StandstillKind::host);
}

TEST(Standstill, WhereALogIsCutAClosedConnectionMayBeLostAndNobodyIsFrozen) {
  JobSketch job = Missing(8, 2, {CallSource::nccl_log});
  for (const int32_t r : job.AllBut({2})) job.Stack(r, InSynchronize());
  job.StreamOf(5, CallSource::nccl_log).cut = true;
  EXPECT_NE(Standing(job).KindOf(2), StandstillKind::frozen);
}

TEST(Standstill, TheOnlyRankWithoutAStackIsFrozen) {
  JobSketch job = Missing(8, 2, {CallSource::nccl_log});
  for (const int32_t r : job.AllBut({2})) job.Stack(r, InSynchronize());
  EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::frozen);
}

TEST(Standstill, ARankWithoutAStackThatLostAPeerIsNotFrozen) {
  JobSketch job = Missing(8, 2, {CallSource::nccl_log});
  for (const int32_t r : job.AllBut({2})) job.Stack(r, InSynchronize());
  job.Log(3, EventKind::connection_lost);
  EXPECT_NE(Standing(job).KindOf(2), StandstillKind::frozen);
}

TEST(Standstill, WhereEverybodyIssuedTheSameTheSilentRankIsFrozen) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  for (const int32_t r : {0, 1, 2}) {
    job.Stack(r, InSynchronize());
    job.Say(r, EventKind::watchdog_timeout);
  }
  const Standing standing(job);
  EXPECT_EQ(standing.Named(), Ranks({3}));
  EXPECT_EQ(standing.KindOf(3), StandstillKind::frozen);
}

TEST(Standstill, WhereTwoAreSilentNobodyIsNamedForIt) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  for (const int32_t r : {0, 1}) {
    job.Stack(r, InSynchronize());
    job.Say(r, EventKind::watchdog_timeout);
  }
  EXPECT_TRUE(Standing(job).view.ranks.empty());
}

TEST(Standstill, AnErrorOfItsOwnExplainsARank) {
  for (const EventKind kind : {EventKind::exception, EventKind::ddp_unused_parameters, EventKind::oom_kill}) {
    JobSketch job = Missing(8, 2);
    job.Say(2, kind);
    EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::explained);
  }
}

TEST(Standstill, ASnapshotIsUnclear) {
  JobSketch job(8);
  job.Rounds(10);
  job.IssueOn(job.AllBut({2}), kStarted);
  job.Wait(20 * kMillisecondNs);
  EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::unclear);
}

TEST(Standstill, ARankWithoutAnyFileIsAbsent) {
  JobSketch job = Missing(8, 2);
  job.LoseEverything(2);
  EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::absent);
}

TEST(Standstill, ManyAbsentRanksWereNotCollected) {
  JobSketch job(8);
  job.Rounds(10);
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  for (const int32_t r : {1, 2, 5}) job.LoseEverything(r);
  EXPECT_TRUE(Standing(job).view.ranks.empty());
}

TEST(Standstill, BesideAProvenOneAnAbsentRankIsNamedOnlyInANearlyCompleteCollection) {
  JobSketch small(4);
  small.Rounds(10);
  small.IssueOn({0, 1}, kStarted);
  small.Wait(600 * kSecondNs);
  small.LoseEverything(3);
  EXPECT_EQ(Standing(small).Named(), Ranks({2}));
  JobSketch large(16);
  large.Rounds(10);
  large.IssueOn(large.AllBut({2, 9}), kStarted);
  large.Wait(600 * kSecondNs);
  large.LoseEverything(9);
  EXPECT_EQ(Standing(large).Named(), Ranks({2, 9}));
}

TEST(Standstill, ARankThatKeptUpInAnotherKindOfRecordIsNoRoot) {
  JobSketch job = Missing(8, 2, {CallSource::flight_recorder, CallSource::nccl_log});
  job.LoseRecord(5);
  EXPECT_EQ(Standing(job).Named(), Ranks({2}));
}

TEST(Standstill, ARankThatABetterRecordShowsWaitingIsNoRootThoughItsLogStopsEarly) {
  // The log of rank 5 is one line short, since its last call was written to a full buffer.
  JobSketch job = Missing(8, 2, {CallSource::flight_recorder, CallSource::nccl_log});
  job.StreamOf(5, CallSource::nccl_log).calls.pop_back();
  EXPECT_EQ(Standing(job).Named(), Ranks({2}));
}

TEST(Standstill, ARankThatEndedInOrderWhileOthersHangIsGone) {
  JobSketch job = Missing(8, 2);
  job.Say(2, EventKind::process_finished);
  job.TimeOut(0, 11);
  EXPECT_EQ(Standing(job).KindOf(2), StandstillKind::dead);
}

TEST(Standstill, StacksAloneNeedAHangAndAMajorityThatWaits) {
  const auto with = [](bool timeout, int outside) {
    JobSketch job(6, {});
    if (timeout) job.TimeOut(0, 3);
    for (int32_t r = 0; r < 6; ++r) job.Stack(r, r < outside ? InDataLoader() : InCollective());
    return Standing(job).Named();
  };
  EXPECT_EQ(with(true, 1), Ranks({0}));
  EXPECT_EQ(with(true, 2), Ranks({0, 1}));
  EXPECT_EQ(with(false, 1), Ranks({}));
  EXPECT_EQ(with(true, 4), Ranks({}));
  EXPECT_EQ(with(true, 0), Ranks({}));
}

TEST(Standstill, AReportOfPyTorchNamesWhoLagsWhenNothingElseDoes) {
  JobSketch job(4, {});
  job.TimeOut(0, 3);
  Event& report = job.Say(0, EventKind::desync_report);
  report.ranks = Ranks({3});
  const Standing standing(job);
  EXPECT_EQ(standing.Named(), Ranks({3}));
  EXPECT_EQ(standing.KindOf(3), StandstillKind::unclear);
}

TEST(Standstill, ConnectionsThatCloseLongAfterTheWatchdogsAreThoseOfTheEnd) {
  for (const int64_t later_s : {30, -5}) {
    JobSketch job(4);
    job.Rounds(10);
    job.GiveOutputs();
    job.IssueOn({0, 1, 3}, kStarted);
    job.Wait(40 * kSecondNs);
    for (const int32_t r : {0, 1, 3}) job.TimeOut(r, 11);
    job.now_ns += later_s * kSecondNs;
    job.Log(3, EventKind::connection_lost);
    for (const int32_t r : {0, 1, 3}) job.Stack(r, InCollective());
    job.LoseRecord(2);
    EXPECT_EQ(Standing(job).KindOf(2), later_s > 0 ? StandstillKind::frozen : StandstillKind::dead) << later_s;
  }
}

TEST(Standstill, AStackOnTheHostOfARankThatWaitsByItsRecordIsOfAnotherMoment) {
  for (const bool waits : {true, false}) {
    JobSketch job(6);
    const GroupIndex pair = job.AddGroup("pair", {0, 5});
    job.Rounds(10);
    job.GiveOutputs();
    if (waits) job.IssueOn({0}, {.group = pair, .state = CallState::started});
    for (int32_t r = 1; r < 6; ++r) job.LoseRecord(r);
    job.Wait(600 * kSecondNs);
    job.TimeOut(1, 11);
    for (int32_t r = 0; r < 6; ++r) job.Stack(r, r == 0 ? InDataLoader() : InCollective());
    const auto named = Standing(job).Named();
    EXPECT_EQ(std::find(named.begin(), named.end(), Rank{0}) != named.end(), !waits);
  }
}

TEST(Standstill, AGpuThatNeverBeganIsNotMadeAVictimByARecordWithoutTimes) {
  JobSketch job(4, {CallSource::black_box, CallSource::flight_recorder});
  job.Rounds(10);
  for (const int32_t r : {0, 1, 3}) job.Issue(r, kStarted);
  job.Issue(2, {.state = CallState::enqueued});
  for (int32_t r = 0; r < 4; ++r) {
    job.LastCall(r).state = CallState::enqueued;
    job.StreamOf(r).knows_start = false;
  }
  job.LoseRecord(1);
  job.Wait(600 * kSecondNs);
  job.TimeOut(0, 11);
  EXPECT_EQ(Standing(job).Named(), Ranks({2}));
}

TEST(Standstill, TheRankThatAllNameAndThatWaitsForNobodyIsWaitedFor) {
  const auto named = [](std::vector<std::pair<int32_t, int32_t>> waits) {
    JobSketch job(4, {});
    for (const auto& [rank, peer] : waits) job.Say(rank, EventKind::watchdog_timeout).peer = Rank{peer};
    return Standing(job).Named();
  };
  EXPECT_EQ(named({{0, 3}, {1, 3}, {2, 3}}), Ranks({3}));
  EXPECT_EQ(named({{0, 3}, {1, 0}, {2, 1}}), Ranks({3})) << "a ring, in which each waits for its neighbour";
  EXPECT_EQ(named({{0, 3}, {1, 0}, {2, 1}, {3, 2}}), Ranks({})) << "all wait";
  EXPECT_EQ(named({{2, 3}}), Ranks({})) << "one rank alone says so";
  EXPECT_EQ(named({{0, 2}, {1, 3}}), Ranks({})) << "two are named";
}

// Ranks 0 and 2 are at `loss.item()`, which has no frame; rank 1 talks to a server. Then somebody ends the job.
TEST(Standstill, WhoIsElsewhereWhenAllAreLookedAtIsWaitedFor) {
  for (const bool looked_at : {true, false}) {
    JobSketch job(3, {});
    for (int32_t r = 0; r < 3; ++r)
      job.Stack(r, {{r == 1 ? "fetch_features" : "step", "train.py", r == 1 ? 41u : 17u}, {"<module>", "train.py", 90}});
    job.Tell(EventKind::scheduler_kill);
    Incident incident = job.Finish();
    for (ThreadStack& thread : incident.threads) thread.looked_at = looked_at;
    const Analyses analyses = Analyse(incident);
    const StandstillView view = FindStandstills(incident, analyses);
    ASSERT_EQ(view.ranks.size(), looked_at ? 1u : 0u);
    if (looked_at) {
      EXPECT_EQ(view.ranks[0].rank, Rank{1});
    }
  }
}

TEST(Standstill, WhereAllStandAtOnePlaceNobodyIsElsewhere) {
  JobSketch job(3, {});
  for (int32_t r = 0; r < 3; ++r) job.Stack(r, {{"pass_on", "ring.py", 17}, {"<module>", "ring.py", 90}});
  job.Tell(EventKind::scheduler_kill);
  Incident incident = job.Finish();
  for (ThreadStack& thread : incident.threads) thread.looked_at = true;
  EXPECT_TRUE(FindStandstills(incident, Analyse(incident)).ranks.empty());
}

}  // namespace
}  // namespace tacet
