// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/silence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/process/standstill.h"
#include "analysis/process/stopped_heartbeat.h"
#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

constexpr int64_t kIntervalNs = 500 * kMillisecondNs;

// A job with boxes, in which rank 2 never comes to the eleventh collective. All heartbeats go on to the end until told
// otherwise.
struct Hospital {
  explicit Hospital(int64_t wait_ns = 60 * kSecondNs) {
    JobSketch job(8, {CallSource::black_box});
    job.Rounds(10);
    fault_ns = job.now_ns;
    job.IssueOn(job.AllBut({2}), {.state = CallState::started});
    job.Wait(wait_ns);
    end_ns = job.now_ns;
    job.Wait(60 * kSecondNs);  // the files are copied later
    incident = job.Finish();
    for (CallStream& stream : incident.streams) stream.captured_wall_ns = end_ns;
    for (int32_t r = 0; r < 8; ++r) {
      Pulse pulse;
      pulse.speaker = static_cast<uint32_t>(r);
      pulse.rank = {r};
      pulse.last_beat_wall_ns = end_ns;
      pulse.interval_ns = kIntervalNs;
      pulse.source.file = incident.StreamOf({r}, CallSource::black_box)->file;
      incident.pulses.push_back(pulse);
    }
  }
  Pulse& PulseOf(size_t rank) { return incident.pulses[rank]; }
  CallStream& StreamOf(int32_t rank) {
    return *std::find_if(incident.streams.begin(), incident.streams.end(),
                         [&](const CallStream& stream) { return stream.rank == Rank{rank}; });
  }
  void See(uint32_t witness, int32_t rank, TaskState state, int64_t since_ns) {
    Sight sight;
    sight.speaker = witness;
    sight.rank = {rank};
    sight.state = state;
    sight.since_wall_ns = sight.seen_wall_ns = since_ns;
    incident.sights.push_back(sight);
  }
  std::vector<Silence> Silences() const { return FindSilences(incident); }
  // What the whole analysis makes of it.
  std::vector<std::pair<int32_t, StandstillKind>> Named() const {
    const Analyses analyses = Analyse(incident);
    std::vector<std::pair<int32_t, StandstillKind>> named;
    for (const Standstill& still : FindStandstills(incident, analyses).ranks)
      named.emplace_back(still.rank.value, still.kind);
    return named;
  }
  using Names = std::vector<std::pair<int32_t, StandstillKind>>;

  Incident incident;
  int64_t fault_ns = 0, end_ns = 0;
};

TEST(Silence, AHeartThatBeatsOnIsAlive) {
  Hospital job;
  EXPECT_TRUE(job.Silences().empty());
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::host}}));
}

TEST(Silence, BeatsOfABusyMachineMayBeLate) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.end_ns - 2900 * kMillisecondNs;
  EXPECT_TRUE(job.Silences().empty());
  job.PulseOf(2).interval_ns = 5 * kSecondNs;
  job.PulseOf(2).last_beat_wall_ns = job.end_ns - 14 * kSecondNs;
  EXPECT_TRUE(job.Silences().empty());
}

TEST(Silence, WithoutAHeartbeatNothingIsSaid) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.PulseOf(2).interval_ns = -1;
  EXPECT_TRUE(job.Silences().empty());
}

TEST(Silence, GoneAndZombieAreDead) {
  for (const TaskState state : {TaskState::gone, TaskState::zombie}) {
    Hospital job;
    job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
    job.See(0, 2, state, job.fault_ns + 4 * kSecondNs);
    ASSERT_EQ(job.Silences().size(), 1u);
    EXPECT_TRUE(job.Silences()[0].dead());
    EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::dead}}));
  }
}

TEST(Silence, StoppedAndUninterruptibleAreFrozen) {
  for (const TaskState state : {TaskState::stopped, TaskState::uninterruptible}) {
    Hospital job;
    job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
    job.See(0, 2, state, job.fault_ns + 4 * kSecondNs);
    EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::frozen}}));
  }
}

TEST(Silence, AStoppedProcessThatIsKilledAtTheEndWasStopped) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.See(0, 2, TaskState::stopped, job.fault_ns + 4 * kSecondNs);
  job.See(0, 2, TaskState::gone, job.fault_ns + 50 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::frozen}}));
}

TEST(Silence, AKilledProcessMayLingerInTheKernel) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.See(0, 2, TaskState::uninterruptible, job.fault_ns + 4 * kSecondNs);
  job.See(0, 2, TaskState::gone, job.fault_ns + 9 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::dead}}));
}

TEST(Silence, AProcessThatWasContinuedIsAlive) {
  Hospital job;
  job.See(0, 2, TaskState::stopped, job.fault_ns + 4 * kSecondNs);
  job.See(0, 2, TaskState::running, job.fault_ns + 20 * kSecondNs);
  EXPECT_TRUE(job.Silences().empty());  // it beat to the end
}

TEST(Silence, AYoungWaitForADeadProcessIsAHang) {
  Hospital job(5 * kSecondNs);
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.See(0, 2, TaskState::gone, job.fault_ns + 4 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::dead}}));
}

TEST(Silence, WhereAllWereSeenToGoNobodyWaitsAndNothingHangs) {
  Hospital job(kSecondNs);  // killed in the middle of an operation
  for (uint32_t rank = 0; rank < 8; ++rank)
    job.See(rank, static_cast<int32_t>(rank), TaskState::gone, job.end_ns + 4 * kSecondNs);
  const Analyses analyses = Analyse(job.incident);
  EXPECT_TRUE(analyses.outcome.unfinished_calls);
  EXPECT_FALSE(analyses.outcome.hangs());
  const std::optional<Collapse> collapse = FindCollapse(job.incident, analyses);
  ASSERT_TRUE(collapse);
  EXPECT_EQ(collapse->lost.size(), 8u);
  // One that lives on waits for ever.
  job.incident.sights.pop_back();
  EXPECT_TRUE(Analyse(job.incident).outcome.hangs());
}

TEST(Silence, WhoWasKilledFirstOfAHungJobIsNotToBlame) {
  Hospital job(600 * kSecondNs);
  job.PulseOf(5).last_beat_wall_ns = job.end_ns - 20 * kSecondNs;
  job.See(0, 5, TaskState::gone, job.end_ns - 16 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::host}}));
  // Nor is the one that held it up a dead rank, if it lived on for long while they waited.
  job.PulseOf(2).last_beat_wall_ns = job.end_ns - 20 * kSecondNs;
  job.See(0, 2, TaskState::gone, job.end_ns - 16 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::host}}));
}

TEST(Silence, ADeadRankThatHadIssuedTheOperationIsFound) {
  Hospital job;
  job.PulseOf(5).last_beat_wall_ns = job.fault_ns;
  job.See(0, 5, TaskState::gone, job.fault_ns + 4 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{5, StandstillKind::dead}}));
}

TEST(Silence, OfSeveralDeadTheFirstCount) {
  Hospital job;
  for (const size_t rank : {3, 4, 6}) job.PulseOf(rank).last_beat_wall_ns = job.fault_ns;
  job.PulseOf(6).last_beat_wall_ns += 8 * kSecondNs;
  for (const int32_t rank : {3, 4, 6}) job.See(0, rank, TaskState::gone, job.fault_ns + 20 * kSecondNs);
  EXPECT_EQ(job.Named(), (Hospital::Names{{3, StandstillKind::dead}, {4, StandstillKind::dead}}));
}

TEST(Silence, WithoutAWitnessTheRankIsNamedAndTheCauseIsNot) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::unclear}}));
}

TEST(Silence, ACopyOfALivingBoxIsNoSilence) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.incident.files[static_cast<uint32_t>(job.PulseOf(2).source.file)].modified_wall_ns = job.fault_ns + kSecondNs;
  EXPECT_TRUE(job.Silences().empty());
}

TEST(Silence, ClocksOfOtherHostsNeedMoreRoom) {
  Hospital job;
  job.incident.processes[2].host = "elsewhere";
  job.PulseOf(2).last_beat_wall_ns = job.end_ns - 9 * kSecondNs;
  EXPECT_TRUE(job.Silences().empty());
  job.PulseOf(2).last_beat_wall_ns = job.end_ns - 11 * kSecondNs;
  EXPECT_EQ(job.Silences().size(), 1u);
}

TEST(Silence, OneThatOutlivesAllOthersMakesNoneOfThemSilent) {
  Hospital job;
  for (size_t rank = 0; rank < 7; ++rank) job.PulseOf(rank).last_beat_wall_ns = job.end_ns - 8 * kSecondNs;
  EXPECT_TRUE(job.Silences().empty());
}

TEST(Silence, AnOrderlyEndIsNoFaultWhenNobodyWaits) {
  JobSketch sketch(8, {CallSource::black_box});
  sketch.Rounds(10);
  sketch.Wait(60 * kSecondNs);
  Hospital job;
  const std::vector<Pulse> pulses = job.incident.pulses;
  job.incident = sketch.Finish();
  job.incident.pulses = pulses;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.PulseOf(2).ended = true;
  EXPECT_TRUE(job.Named().empty());
}

TEST(Silence, WhoEndsByItselfWhileOthersWaitIsGone) {
  Hospital job;
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns;
  job.PulseOf(2).ended = true;
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::dead}}));
}

TEST(Silence, AYoungWaitForOneThatEndedIsAHang) {
  Hospital job(2 * kSecondNs);
  job.PulseOf(2).last_beat_wall_ns = job.fault_ns + kSecondNs;
  EXPECT_TRUE(job.Named().empty() || job.Named() == (Hospital::Names{{2, StandstillKind::unclear}}));
  job.PulseOf(2).ended = true;
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::dead}}));
}

// It ended in the same operation, as one does whose own patience was over.
TEST(Silence, WhoEndsInTheWaitIsAVictim) {
  Hospital job;
  job.PulseOf(4).last_beat_wall_ns = job.fault_ns + 5 * kSecondNs;
  job.PulseOf(4).ended = true;
  EXPECT_EQ(job.Named(), (Hospital::Names{{2, StandstillKind::host}}));
}

TEST(Silence, AJobThatBreaksDownAsAWholeBlamesNobody) {
  Hospital job(6 * kSecondNs);
  const Call open = job.StreamOf(1).calls.back();
  job.StreamOf(2).calls.push_back(open);  // all are in it
  for (size_t rank = 0; rank < 8; ++rank) {
    job.PulseOf(rank).last_beat_wall_ns = job.fault_ns + static_cast<int64_t>(rank) * kSecondNs / 2;
    job.PulseOf(rank).ended = rank != 3 && rank != 5;
  }
  job.See(7, 3, TaskState::gone, job.fault_ns + 5 * kSecondNs);
  for (const auto& [rank, kind] : job.Named()) EXPECT_EQ(kind, StandstillKind::unclear) << rank;
}

// Ranks 3 and 6 die together; both had issued what the others wait in.
struct TwoDeaths : Hospital {
  TwoDeaths() {
    for (const size_t rank : {3, 6}) PulseOf(rank).last_beat_wall_ns = fault_ns;
    for (const int32_t rank : {3, 6}) See(0, rank, TaskState::gone, fault_ns + 4 * kSecondNs);
    for (const int32_t rank : {3, 6}) StreamOf(rank).captured_wall_ns = fault_ns;
  }
};

TEST(Silence, DeathsThatCannotBeToldApartAreBothNamed) {
  EXPECT_EQ(TwoDeaths().Named(), (Hospital::Names{{3, StandstillKind::dead}, {6, StandstillKind::dead}}));
}

TEST(Silence, TheOneThatHadNotBegunPulledTheOtherAlong) {
  TwoDeaths job;
  job.StreamOf(6).calls.back().state = CallState::enqueued;
  job.StreamOf(6).calls.back().start_wall_ns = kNoTime;
  EXPECT_EQ(job.Named(), (Hospital::Names{{6, StandstillKind::dead}}));
}

TEST(Silence, TheOneThatMissedABeatPulledTheOtherAlong) {
  TwoDeaths job;
  job.PulseOf(3).last_beat_wall_ns += kIntervalNs;
  EXPECT_EQ(job.Named(), (Hospital::Names{{6, StandstillKind::dead}}));
  // Half a beat proves nothing.
  job.PulseOf(3).last_beat_wall_ns -= kIntervalNs / 2;
  EXPECT_EQ(job.Named().size(), 2u);
}

}  // namespace
}  // namespace tacet
