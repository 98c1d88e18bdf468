// SPDX-License-Identifier: Apache-2.0
// What Slurm, LSF, PBS, mpirun and Kubernetes say of a job they ended.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

JobSketch Talking(int32_t world) {
  JobSketch job(world);
  for (int32_t rank = 0; rank < world; ++rank) job.Say(rank, EventKind::progress).Make<Progress>().step = 7;
  return job;
}

TEST(SchedulerWords, AKillInTheJobsCgroupIsOutOfMemoryOfSomebody) {
  JobSketch job = Talking(4);
  job.Tell(EventKind::oom_kill).Make<OomKill>().limit = MemoryLimit::cgroup;
  const Finding finding = JudgedCase(job).Only("rank-out-of-memory");
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(SchedulerWords, TheOnlyRankThatWasKilledIsMeant) {
  JobSketch job = Talking(4);
  job.Tell(EventKind::oom_kill).Make<OomKill>().limit = MemoryLimit::cgroup;
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  EXPECT_EQ(JudgedCase(job).Only("rank-out-of-memory").ranks, std::vector<Rank>{Rank{2}});
}

TEST(SchedulerWords, OfSeveralKilledRanksNoneIsNamed) {
  JobSketch job = Talking(4);
  job.Tell(EventKind::oom_kill).Make<OomKill>().limit = MemoryLimit::cgroup;
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  job.Say(3, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  EXPECT_TRUE(JudgedCase(job).Only("rank-out-of-memory").ranks.empty());
}

TEST(SchedulerWords, AKillOfAForeignPidIsNobodys) {
  JobSketch job = Talking(4);
  Event& kill = job.Tell(EventKind::oom_kill);
  kill.pid = 4711;
  kill.Make<OomKill>().process = "chrome";
  EXPECT_FALSE(JudgedCase(job).Fires("rank-out-of-memory"));
}

TEST(SchedulerWords, AJobThatEndedInOrderLostNobody) {
  JobSketch job = Talking(2);
  for (int32_t rank = 0; rank < 2; ++rank) job.Say(rank, EventKind::process_finished);
  job.Tell(EventKind::oom_kill).Make<OomKill>().limit = MemoryLimit::cgroup;
  job.Tell(EventKind::node_failed).Make<NodeFailure>().node = "node7";
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("rank-out-of-memory"));
  EXPECT_FALSE(judged.Fires("rank-dead"));
}

// The launcher's word of a Ctrl-C, and a rank whose wait in the store reached its limit, at these seconds of the day.
Severity InterruptedAt(int32_t kill_s, int32_t failure_s) {
  JobSketch job = Talking(2);
  Event& wait = job.Say(1, EventKind::store_wait_timeout);
  wait.Make<StoreWait>().keys = "0";
  wait.wall_ns = kNoTime;
  wait.clock_s = failure_s;
  const FileId file = wait.source.file;
  Event& kill = job.Tell(EventKind::scheduler_kill);
  kill.Make<OutsideEnd>().why = SchedulerKill::signal;
  kill.Make<OutsideEnd>().by = "SIGINT";
  kill.wall_ns = kNoTime;
  kill.clock_s = kill_s;
  kill.source.file = file;
  return JudgedCase(job).Only("killed-by-scheduler").severity;
}

TEST(SchedulerWords, ACtrlCIsTheEndUnlessARankHadFailedBefore) {
  EXPECT_EQ(InterruptedAt(100, 101), Severity::critical);
  EXPECT_EQ(InterruptedAt(100, 100), Severity::critical) << "nobody reacts within a second";
  EXPECT_EQ(InterruptedAt(100, 60), Severity::note);
}

TEST(SchedulerWords, ANodeThatFailedTakesItsRanksWithIt) {
  JobSketch job = Talking(4);
  Event& failed = job.Tell(EventKind::node_failed);
  failed.Make<NodeFailure>().node = "node7";
  failed.ranks = {Rank{2}, Rank{3}};
  EXPECT_EQ(JudgedCase(job).Only("rank-dead").ranks, (std::vector<Rank>{Rank{2}, Rank{3}}));
}

TEST(SchedulerWords, ATimeLimitLongAfterTheLastStepIsAnOpenQuestion) {
  JobSketch job = Talking(4);
  job.Tell(EventKind::job_time_limit).wall_ns += int64_t{3600} * 1'000'000'000;
  const RuleAnswer answer = JudgedCase(job).Ask("timeout-too-short");
  EXPECT_TRUE(answer.findings.empty());
  EXPECT_EQ(answer.open.size(), 1u);
}

TEST(SchedulerWords, AJobThatPrintedAStepJustBeforeItsLimitWasRunning) {
  JobSketch job = Talking(4);
  job.Tell(EventKind::job_time_limit);
  EXPECT_TRUE(JudgedCase(job).Ask("timeout-too-short").open.empty());
}

}  // namespace
}  // namespace tacet
