// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/job_end.h"

#include <gtest/gtest.h>

#include "model/job_times.h"

namespace tacet {
namespace {

constexpr int64_t kTick = 1'000'000'000;

Incident OneFile() {
  Incident incident;
  incident.files.push_back({"train.log", "torch_log", Rank{}, {}, kNoTime, false});
  return incident;
}

Event& AddEvent(Incident& incident, EventKind kind, uint32_t line, int64_t wall_ns = kNoTime) {
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source = {static_cast<FileId>(0), line, 0};
  event.wall_ns = wall_ns;
  return event;
}

JobEnd ReadEnd(const Incident& incident) {
  const SignsOfLife life = ReadSignsOfLife(incident);
  return ReadJobEnd(incident, life, ReadOutcome(incident, life));
}

TEST(JobEnd, AWatchdogThatNoRankOwnsTellsOfAHang) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::watchdog_timeout, 7);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
}

TEST(JobEnd, AnExitCodeThatNoRankOwnsTellsOfACrash) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::process_exited, 7).Make<ProcessEnd>().code = 1;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
}

TEST(JobEnd, AnErrorAfterWhichTheJobGoesOnIsNoEnd) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::exception, 7).Make<Raised>().type = "ValueError";
  AddEvent(incident, EventKind::progress, 8).Make<Progress>().step = 12;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed) << "a bar is drawn once more when its process dies";
  auto& progress = AddEvent(incident, EventKind::progress, 9).Make<Progress>();
  progress.step = 13;
  progress.line_before = 8;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::open);
}

TEST(JobEnd, AbortsAfterATimeoutAreItsConsequence) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::watchdog_timeout, 7);
  AddEvent(incident, EventKind::process_exited, 9).Make<ProcessEnd>().code = -6;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
}

// Progress every second, a minute of nothing, then SIGTERM: a standstill of known length.
TEST(JobEnd, OutputThatStopsBeforeAKillTellsOfAHang) {
  Incident incident = OneFile();
  for (uint32_t step = 0; step < 20; ++step) AddEvent(incident, EventKind::progress, step + 1, (100 + step) * kTick);
  AddEvent(incident, EventKind::process_killed, 30, 179 * kTick);
  const JobEnd end = ReadEnd(incident);
  EXPECT_EQ(end.kind, JobEnding::hung);
  EXPECT_EQ(end.quiet_ns, 60 * kTick);
}

// The program writes a year and the launcher does not: both clocks are one.
TEST(JobEnd, AKillWithoutAYearIsComparedWithLinesThatHaveOne) {
  const int64_t evening_s = DaysSince1970(2026, 11, 18) * 86400 + 20 * 3600;
  const auto end_after = [&](int32_t seconds) {
    Incident incident = OneFile();
    for (uint32_t step = 0; step < 20; ++step)
      AddEvent(incident, EventKind::progress, step + 1, (evening_s + step) * 1'000'000'000);
    Event& kill = AddEvent(incident, EventKind::process_killed, 30);
    kill.wall_ns = kNoTime;
    kill.clock_s = 1118 * 86400 + 20 * 3600 + 19 + seconds;
    return ReadEnd(incident).kind;
  };
  EXPECT_EQ(end_after(60), JobEnding::hung);
  EXPECT_EQ(end_after(2), JobEnding::crashed) << "in the middle of steady output";
  EXPECT_EQ(end_after(7200), JobEnding::crashed) << "two time zones, most likely";
}

TEST(JobEnd, AKillInTheMiddleOfSteadyOutputIsNoHang) {
  Incident incident = OneFile();
  for (uint32_t step = 0; step < 20; ++step) AddEvent(incident, EventKind::progress, step + 1, (100 + step) * kTick);
  AddEvent(incident, EventKind::process_killed, 30, 121 * kTick);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
}

// Steps that take half a minute each make a minute of nothing normal.
TEST(JobEnd, ASlowRhythmMakesALongPauseNormal) {
  Incident incident = OneFile();
  for (uint32_t step = 0; step < 6; ++step) AddEvent(incident, EventKind::progress, step + 1, step * 30 * kTick);
  AddEvent(incident, EventKind::process_killed, 30, 230 * kTick);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
}

TEST(JobEnd, AKernelLineBesideAJobThatItIsNotTiedToTellsNothing) {
  Incident incident = OneFile();
  incident.processes.push_back({Rank{0}, Certainty::stated, "gpu1", 4711, 0, {}});
  incident.process_of.emplace(Rank{0}, 0);
  AddEvent(incident, EventKind::oom_kill, 3).pid = 99;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::open);
}

// torchrun ends the other workers before it tells which one failed.
TEST(JobEnd, TheLaunchersCleanUpNeverStandsBeforeAFailure) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::process_killed, 3, 10 * kTick).Make<ProcessEnd>().how = "SIGTERM";
  AddEvent(incident, EventKind::process_exited, 5, 13 * kTick).Make<ProcessEnd>().code = 1;
  const JobEnd end = ReadEnd(incident);
  EXPECT_EQ(end.kind, JobEnding::crashed);
  ASSERT_NE(end.told, nullptr);
  EXPECT_EQ(end.told->kind, EventKind::process_exited);
}

TEST(JobEnd, WhoStillWaitsForOthersToJoinHasNotCrashed) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::rendezvous_incomplete, 3).Make<Rendezvous>().waiting = true;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::open);
  AddEvent(incident, EventKind::rendezvous_incomplete, 4);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
}

TEST(JobEnd, ALostDeviceEndsNoProcessAndTheReporterSawAHang) {
  Incident incident = OneFile();
  Event& lost = AddEvent(incident, EventKind::xid, 3);
  lost.Make<Xid>().number = 79;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
  AddEvent(incident, EventKind::told_hang, 1);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
  AddEvent(incident, EventKind::process_exited, 5).Make<ProcessEnd>().code = 1;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
}

TEST(JobEnd, ACodeThatNcclPassesOnEndsNobodyAndWhoStillConnectsHangs) {
  Incident incident = OneFile();
  AddEvent(incident, EventKind::nccl_error, 3).Make<NcclError>().code = 2;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
  AddEvent(incident, EventKind::told_hang, 1);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
  Incident other = OneFile();
  Event& waits = AddEvent(other, EventKind::connect_failed, 3);
  waits.library = Library::other;
  waits.Make<ConnectFailure>().address = "192.0.2.41:8477";
  EXPECT_EQ(ReadEnd(other).kind, JobEnding::hung);
  waits.Make<ConnectFailure>().words = "Connection refused";
  EXPECT_EQ(ReadEnd(other).kind, JobEnding::crashed);
}

TEST(JobEnd, AWaitOfXlaThatEndedIsNoHang) {
  Incident incident = OneFile();
  Event& wait = AddEvent(incident, EventKind::xla_wait, 3);
  wait.Make<XlaWait>().passed = true;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::open);
  wait.Make<XlaWait>().passed = false;
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
}

TEST(JobEnd, AToldHangOutranksAFaultThatEndsNobody) {
  for (const EventKind fault : {EventKind::xid, EventKind::nccl_warning, EventKind::fabric_down}) {
    Incident incident = OneFile();
    Event& event = AddEvent(incident, fault, 3);
    if (fault == EventKind::xid) event.Make<Xid>().number = 79;
    if (fault == EventKind::nccl_warning) event.Make<Warning>().role = NcclWarningRole::cause;
    EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
    AddEvent(incident, EventKind::told_hang, 1);
    EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
    EXPECT_EQ(ReadEnd(incident).told->kind, EventKind::told_hang);
    AddEvent(incident, EventKind::process_exited, 5).Make<ProcessEnd>().code = 1;
    EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed) << "the lines show that it ended";
  }
}

// Whoever saw the job stand still pressed Ctrl-C.
TEST(JobEnd, CtrlCEndsAJobThatHung) {
  Incident incident = OneFile();
  auto& kill = AddEvent(incident, EventKind::scheduler_kill, 5).Make<OutsideEnd>();
  kill.why = SchedulerKill::signal;
  kill.by = "SIGINT";
  AddEvent(incident, EventKind::exception, 6).Make<Raised>().type = "KeyboardInterrupt";
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed) << "nobody says that it hung";
  AddEvent(incident, EventKind::told_hang, 1);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::hung);
  AddEvent(incident, EventKind::exception, 3).Make<Raised>().type = "ValueError";
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed) << "a rank had failed";
}

// py-spy of every rank, then SIGTERM for the launcher.
TEST(JobEnd, AJobThatIsEndedAfterALookAtAllItsRanksHung) {
  for (const int looked_at : {0, 1, 2}) {
    Incident incident = OneFile();
    for (int32_t rank = 0; rank < 2; ++rank) {
      Process& process = incident.processes.emplace_back();
      process.rank = {rank};
      incident.process_of[{rank}] = static_cast<uint32_t>(rank);
      ThreadStack& thread = incident.threads.emplace_back();
      thread.speaker = static_cast<uint32_t>(rank);
      thread.rank = {rank};
      thread.looked_at = rank < looked_at;
      thread.source.line = 9;
    }
    AddEvent(incident, EventKind::scheduler_kill, 7);
    EXPECT_EQ(ReadEnd(incident).kind, looked_at == 2 ? JobEnding::hung : JobEnding::crashed) << looked_at;
  }
}

// SIGUSR1 for all, whose handler writes the stack (faulthandler.register), then SIGTERM for the launcher.
JobEnding EndBehindStacks(uint32_t last_stack, uint32_t line_between, int64_t timer_s, SchedulerKill why) {
  Incident incident = OneFile();
  for (const uint32_t rank : {0, 1}) {
    Process& process = incident.processes.emplace_back();
    process.rank = {static_cast<int32_t>(rank)};
    incident.process_of[process.rank] = rank;
    ThreadStack& thread = incident.threads.emplace_back();
    thread.speaker = rank;
    thread.rank = process.rank;
    thread.timer_s = timer_s;
    thread.source = {static_cast<FileId>(0), rank == 0 ? 3 : last_stack, 0};
  }
  OwnLine line;
  line.source = {static_cast<FileId>(0), line_between, 0};
  incident.outlines.emplace_back().own_lines.push_back(line);
  AddEvent(incident, EventKind::scheduler_kill, 9).Make<OutsideEnd>().why = why;
  return ReadEnd(incident).kind;
}

TEST(JobEnd, AJobThatIsEndedWhenAllWroteTheirStacksAndNothingElseHung) {
  EXPECT_EQ(EndBehindStacks(5, 2, -1, SchedulerKill::signal), JobEnding::hung);
  EXPECT_EQ(EndBehindStacks(5, 7, -1, SchedulerKill::signal), JobEnding::crashed) << "somebody printed since";
  EXPECT_EQ(EndBehindStacks(12, 2, -1, SchedulerKill::signal), JobEnding::crashed) << "the end itself made it write";
  EXPECT_EQ(EndBehindStacks(5, 2, 300, SchedulerKill::signal), JobEnding::crashed) << "a timer did";
  EXPECT_EQ(EndBehindStacks(5, 2, -1, SchedulerKill::time_limit), JobEnding::crashed) << "the scheduler sends both";
}

TEST(JobEnd, AJobThatFailedAfterALookDidNotHang) {
  Incident incident = OneFile();
  for (int32_t rank = 0; rank < 2; ++rank) {
    ThreadStack& thread = incident.threads.emplace_back();
    thread.rank = {rank};
    thread.looked_at = true;
  }
  AddEvent(incident, EventKind::exception, 6).Make<Raised>().type = "ValueError";
  AddEvent(incident, EventKind::scheduler_kill, 7);
  EXPECT_EQ(ReadEnd(incident).kind, JobEnding::crashed);
}

}  // namespace
}  // namespace tacet
