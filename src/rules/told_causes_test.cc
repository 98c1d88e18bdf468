// SPDX-License-Identifier: Apache-2.0
// Causes that somebody tells in so many words: limits of the host, the scheduler, DDP's check of the model.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

// One process of a job of which nothing else is known.
Incident OneProcess(Event event, std::string host = "gpu17", int64_t pid = 4121) {
  Incident incident;
  incident.processes.push_back({Rank{}, Certainty::none, std::move(host), pid});
  event.speaker = 0;
  incident.events.push_back(std::move(event));
  return incident;
}

Event Told(EventKind kind) {
  Event event;
  event.kind = kind;
  return event;
}

Event WarnedOnce(std::string_view id, int64_t value = -1) {
  Event event = Told(EventKind::nccl_warning);
  event.Make<Warning>().id = id;
  event.Make<Warning>().number = value;
  event.Make<Warning>().role = NcclWarningRole::cause;
  return event;
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// shared-memory-full

TEST(SharedMemoryFull, NamesTheRankWhoseLoaderRanOut) {
  for (const auto& [world, rank] : {std::pair{2, 1}, std::pair{64, 40}}) {
    JobSketch job(world);
    job.Rounds(5);
    job.Say(rank, EventKind::shared_memory_full).Make<NoSpace>().path = "/dev/shm";
    const JudgedCase judged(job);
    const Finding finding = judged.Only("shared-memory-full");
    EXPECT_EQ(finding.ranks, Ranks({rank}));
    EXPECT_EQ(finding.status, Status::crash);
    EXPECT_EQ(judged.Verdict().cause, "shared-memory-full");
  }
}

TEST(SharedMemoryFull, NeedsNoRankWhereTheHostIsKnown) {
  const JudgedCase judged(OneProcess(WarnedOnce("shm-extend-failed", 28)));
  const RuleAnswer answer = judged.Ask("shared-memory-full");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_TRUE(
      Has(answer.findings[0].headline, "/dev/shm is full: process 4121 on gpu17 could not allocate shared memory"))
      << answer.findings[0].headline;
  EXPECT_FALSE(Has(answer.findings[0].headline, "does not say"));
  EXPECT_TRUE(answer.open.empty());
  EXPECT_EQ(judged.Verdict().status, Status::crash);
}

TEST(SharedMemoryFull, AFileThatMayNotBeCreatedIsNotAFullOne) {
  for (const int64_t error : {2, 17, 24})
    EXPECT_FALSE(JudgedCase(OneProcess(WarnedOnce("shm-extend-failed", error))).Fires("shared-memory-full")) << error;
  constexpr int64_t kDenied = 13;
  const RuleAnswer answer = JudgedCase(OneProcess(WarnedOnce("shm-extend-failed", kDenied))).Ask("shared-memory-full");
  ASSERT_EQ(answer.findings.size(), 1U);
  EXPECT_EQ(answer.findings[0].cause, "");
  EXPECT_NE(answer.findings[0].headline.find("permission denied"), std::string::npos);
}

TEST(SharedMemoryFull, ARetryIsNothing) {
  Event retry = WarnedOnce("shm-extend-retry");
  retry.Make<Warning>().role = NcclWarningRole::notice;
  EXPECT_FALSE(JudgedCase(OneProcess(std::move(retry))).Fires("shared-memory-full"));
}

// disk-full

TEST(DiskFull, NamesThePathAndTheRank) {
  JobSketch job(8);
  job.Rounds(5);
  Event& full = job.Say(0, EventKind::disk_full);
  full.Make<NoSpace>().path = "/scratch/ckpt/step_400.pt";
  full.Make<NoSpace>().limit = SpaceLimit::device;
  const Finding finding = JudgedCase(job).Only("disk-full");
  EXPECT_EQ(finding.ranks, Ranks({0}));
  EXPECT_TRUE(Has(finding.headline, "the disk is full at /scratch/ckpt/step_400.pt")) << finding.headline;
}

TEST(DiskFull, AQuotaIsCalledSo) {
  Event full = Told(EventKind::disk_full);
  full.Make<NoSpace>().limit = SpaceLimit::quota;
  const RuleAnswer answer = JudgedCase(OneProcess(std::move(full))).Ask("disk-full");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_TRUE(Has(answer.findings[0].headline, "quota")) << answer.findings[0].headline;
  EXPECT_EQ(answer.open.size(), 2u) << "which rank, and which file system";
}

TEST(DiskFull, AJobThatEndsInOrderHasOnlySomethingToNote) {
  JobSketch job(2, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  job.FinishAll();
  job.Say(1, EventKind::disk_full).Make<NoSpace>().limit = SpaceLimit::device;
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("disk-full").severity, Severity::note);
  EXPECT_EQ(judged.Verdict().status, Status::healthy);
}

// port-in-use

TEST(PortInUse, NeedsNoRank) {
  Event taken = Told(EventKind::port_in_use);
  taken.Make<PortTaken>().port = 29500;
  const Finding finding = JudgedCase(OneProcess(std::move(taken))).Only("port-in-use");
  EXPECT_TRUE(Has(finding.headline, "port 29500")) << finding.headline;
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(PortInUse, NobodyIsRefusedWhereNobodyListens) {
  JobSketch job(4, {});
  for (const int r : {1, 2, 3})
    job.Say(r, EventKind::store_unreachable).Make<StoreUnreachable>().address = "10.0.0.1:29500";
  EXPECT_FALSE(JudgedCase(job).Fires("port-in-use"));
}

// killed-by-scheduler

Event& Kill(JobSketch& job, SchedulerKill why, std::string object = "") {
  Event& kill = job.Tell(EventKind::scheduler_kill);
  kill.Make<OutsideEnd>().why = why;
  kill.Make<OutsideEnd>().by = std::move(object);
  return kill;
}

JobSketch Running(int32_t world) {
  JobSketch job(world, {CallSource::nccl_log});
  job.Rounds(10);
  job.GiveOutputs();
  return job;
}

TEST(KilledByScheduler, EachReasonEndsTheJobAndBlamesNobody) {
  for (const SchedulerKill why :
       {SchedulerKill::cancelled, SchedulerKill::time_limit, SchedulerKill::preempted, SchedulerKill::requeued,
        SchedulerKill::evicted, SchedulerKill::reclaimed, SchedulerKill::unkillable}) {
    JobSketch job = Running(4);
    Kill(job, why, "Slurm");
    const JudgedCase judged(job);
    const Finding finding = judged.Only("killed-by-scheduler");
    EXPECT_TRUE(finding.ranks.empty());
    EXPECT_EQ(finding.severity, Severity::critical) << static_cast<int>(why);
    EXPECT_EQ(judged.Verdict().status, Status::crash);
    EXPECT_EQ(judged.Verdict().cause, "killed-by-scheduler");
  }
}

TEST(KilledByScheduler, WhoDiesOfItIsAConsequence) {
  JobSketch job = Running(4);
  Kill(job, SchedulerKill::preempted);
  job.Wait(kSecondNs);
  for (int r = 0; r < 4; ++r) job.Tell(EventKind::process_exited).Make<ProcessEnd>().code = -15;
  EXPECT_EQ(JudgedCase(job).Verdict().cause, "killed-by-scheduler");
}

TEST(KilledByScheduler, AFailureBeforeItIsTheCause) {
  JobSketch job = Running(4);
  Event& raised = job.Say(2, EventKind::exception);
  raised.Make<Raised>().type = "ValueError";
  raised.wall_ns = job.now_ns;
  job.Wait(kSecondNs);
  Kill(job, SchedulerKill::cancelled, "step").wall_ns = job.now_ns;
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "application-exception");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

TEST(KilledByScheduler, AHungJobIsEndedByItsLimitInTheEnd) {
  JobSketch job(4);
  job.Rounds(10);
  SketchedCall started;
  started.state = CallState::started;
  job.IssueOn({0, 1, 3}, started);
  job.Wait(600 * kSecondNs);
  job.TimeOut(0, 11);
  Kill(job, SchedulerKill::time_limit);
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("killed-by-scheduler").severity, Severity::note);
  EXPECT_NE(judged.Verdict().cause, "killed-by-scheduler");
}

TEST(KilledByScheduler, ASignalAloneAsksWhoSentIt) {
  JobSketch job = Running(2);
  Kill(job, SchedulerKill::signal, "SIGTERM");
  const RuleAnswer answer = JudgedCase(job).Ask("killed-by-scheduler");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.findings[0].confidence, Confidence::likely);
  EXPECT_EQ(answer.open.size(), 1u);
}

TEST(KilledByScheduler, ATerminalThatWasClosedIsCalledSo) {
  JobSketch job = Running(2);
  Kill(job, SchedulerKill::signal, "SIGHUP");
  EXPECT_TRUE(Has(JudgedCase(job).Only("killed-by-scheduler").headline, "session that started the job was closed"));
}

TEST(KilledByScheduler, AJobThatEndedInOrderWasNotKilled) {
  JobSketch job = Running(2);
  job.FinishAll();
  Kill(job, SchedulerKill::cancelled, "step");
  EXPECT_FALSE(JudgedCase(job).Fires("killed-by-scheduler"));
}

// model-differs

void Differs(JobSketch& job, int32_t rank, int64_t parameter) {
  Event& told = job.Say(rank, EventKind::model_mismatch);
  told.Make<ModelMismatch>().parameter = parameter;
  told.group_rank = GroupRank{rank};
  told.peer_group_rank = GroupRank{0};
  told.Make<ModelMismatch>().aspect = "the shape";
  told.Make<ModelMismatch>().value = "[50304, 768]";
}

TEST(ModelDiffers, TheOneThatDiffersFromAllIsNamed) {
  JobSketch job(8, {});
  job.GiveOutputs();
  Differs(job, 5, 0);
  const Finding finding = JudgedCase(job).Only("model-differs");
  EXPECT_EQ(finding.ranks, Ranks({5}));
  EXPECT_TRUE(Has(finding.headline, "parameter 0 has shape [50304, 768] on rank 5")) << finding.headline;
}

TEST(ModelDiffers, WhereAllDifferFromTheFirstTheFirstIsTheOddOne) {
  JobSketch job(8, {});
  job.GiveOutputs();
  for (int r = 1; r < 8; ++r) Differs(job, r, 3);
  const Finding finding = JudgedCase(job).Only("model-differs");
  EXPECT_EQ(finding.ranks, Ranks({0}));
  EXPECT_EQ(finding.affected_ranks, RankRange(1, 8));
}

void HasParameters(JobSketch& job, int32_t rank, int64_t own, int32_t peer, int64_t other) {
  Event& told = job.Say(rank, EventKind::model_mismatch);
  told.group_rank = GroupRank{rank};
  told.peer_group_rank = GroupRank{peer};
  told.Make<ModelMismatch>() = {-1, "the number of parameters",
                                std::to_string(own) + " against " + std::to_string(other), own, other};
}

TEST(ModelDiffers, TheRankWithAnotherNumberOfParametersThanMostIsNamed) {
  JobSketch job(4, {});
  job.GiveOutputs();
  HasParameters(job, 2, 612, 0, 614);
  for (const int32_t rank : {0, 1, 3}) HasParameters(job, rank, 614, 2, 612);
  const Finding finding = JudgedCase(job).Only("model-differs");
  EXPECT_EQ(finding.ranks, Ranks({2}));
  EXPECT_TRUE(Has(finding.headline, "2 has 612 parameter tensors, the others 614")) << finding.headline;
}

TEST(ModelDiffers, OfTwoNumbersOnTwoRanksNeitherIsTheOddOne) {
  JobSketch job(2, {});
  job.GiveOutputs();
  HasParameters(job, 0, 614, 1, 612);
  HasParameters(job, 1, 612, 0, 614);
  EXPECT_TRUE(JudgedCase(job).Only("model-differs").ranks.empty());
}

TEST(ModelDiffers, OfTwoNobodyIsBlamedAndTheQuestionIsAsked) {
  JobSketch job(2, {});
  job.GiveOutputs();
  Differs(job, 1, 3);
  const RuleAnswer answer = JudgedCase(job).Ask("model-differs");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_TRUE(answer.findings[0].ranks.empty());
  EXPECT_EQ(answer.open.size(), 1u);
}

TEST(ModelDiffers, AParameterWithoutGradientIsAnotherCause) {
  JobSketch job(4, {});
  job.Say(2, EventKind::ddp_unused_parameters).Make<DdpParameters>().names = "head.weight";
  EXPECT_FALSE(JudgedCase(job).Fires("model-differs"));
}

}  // namespace
}  // namespace tacet
