// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/signs_of_life.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

struct Read {
  explicit Read(JobSketch& job)
      : incident(job.Finish()), life(ReadSignsOfLife(incident)), outcome(ReadOutcome(incident, life)) {}
  const RankLife& Of(int32_t rank) const { return *life.Of(Rank{rank}); }
  Incident incident;
  SignsOfLife life;
  Outcome outcome;
};

TEST(SignsOfLife, TellWhatEachRankLeftBehind) {
  JobSketch job(4, {CallSource::flight_recorder, CallSource::nccl_log});
  job.Rounds(2);
  job.Say(1, EventKind::progress);
  job.Stack(2, InCollective());
  job.StreamOf(2).stub = true;
  job.LoseEverything(3);
  const Read read(job);
  EXPECT_TRUE(read.Of(0).has_record);
  EXPECT_TRUE(read.Of(0).has_nccl_log);
  EXPECT_FALSE(read.Of(0).has_output);
  EXPECT_TRUE(read.Of(1).has_output);
  EXPECT_TRUE(read.Of(2).has_stack);
  EXPECT_TRUE(read.Of(2).has_stub_record);
  EXPECT_FALSE(read.Of(2).has_record);
  EXPECT_FALSE(read.Of(3).any());
  EXPECT_EQ(read.life.records, 2);
  EXPECT_EQ(read.life.stubs, 1);
  EXPECT_EQ(read.life.outputs, 1);
  EXPECT_EQ(read.life.stacks, 1);
  EXPECT_EQ(read.life.nccl_logs, 3);
  EXPECT_EQ(read.life.Of(Rank{77}), nullptr);
}

TEST(SignsOfLife, TheFirstErrorThatIsNoConsequenceCounts) {
  JobSketch job(2);
  job.Say(0, EventKind::exception).Make<Raised>().type = "torch.distributed.DistBackendError";
  job.Say(0, EventKind::exception).Make<Raised>().type = "KeyError";
  job.Say(0, EventKind::exception).Make<Raised>().type = "ValueError";
  const Read read(job);
  ASSERT_NE(read.Of(0).exception, nullptr);
  EXPECT_EQ(read.Of(0).exception->As<Raised>().type, "KeyError");
  ASSERT_NE(read.Of(0).consequence, nullptr);
}

constexpr char kIllegalAddress[] = "an illegal memory access was encountered";

// It learnt that the others had given up, and raised after that: they did not wait because of its exception.
TEST(SignsOfLife, AnExceptionAfterTheDumpSignalIsLate) {
  for (const bool late : {true, false}) {
    JobSketch job(2);
    job.Say(1, late ? EventKind::dump_started : EventKind::progress);
    job.Wait(1'000'000'000);
    job.Say(1, EventKind::exception).Make<Raised>().type = "ValueError";
    job.Wait(1'000'000'000);
    job.Say(1, EventKind::dump_started);
    const Read read(job);
    EXPECT_EQ(read.Of(1).late_exception != nullptr, late);
    EXPECT_EQ(read.Of(1).exception == nullptr, late);
    EXPECT_EQ(read.outcome.first_failure == nullptr, late);
  }
}

TEST(SignsOfLife, ErrorsOfAllRanksBesideASilentOneCameWithItsDeath) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  for (const int32_t r : {0, 1, 3}) job.Say(r, EventKind::cuda_error).Make<CudaError>().words = kIllegalAddress;
  const Read read(job);
  for (const int r : {0, 1, 3}) {
    EXPECT_EQ(read.Of(r).gpu_error, nullptr);
    EXPECT_NE(read.Of(r).shared_gpu_error, nullptr);
  }
}

TEST(SignsOfLife, AnErrorBesideRanksThatTimeOutIsItsOwn) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.Say(0, EventKind::cuda_error).Make<CudaError>().words = kIllegalAddress;
  for (const int32_t r : {1, 2, 3}) job.Say(r, EventKind::watchdog_timeout);
  EXPECT_NE(Read(job).Of(0).gpu_error, nullptr);
}

TEST(SignsOfLife, ErrorsOfSeveralRanksButNotOfAllHaveTheirReasonElsewhere) {
  JobSketch job(5, {CallSource::nccl_log});
  job.Rounds(5);
  for (const int32_t r : {0, 2, 4}) job.Say(r, EventKind::cuda_error).Make<CudaError>().words = kIllegalAddress;
  for (const int32_t r : {1, 3}) job.Say(r, EventKind::watchdog_timeout);
  const Read read(job);
  for (const int r : {0, 2, 4}) {
    EXPECT_EQ(read.Of(r).gpu_error, nullptr);
    EXPECT_NE(read.Of(r).shared_gpu_error, nullptr);
  }
}

TEST(SignsOfLife, AnErrorThatAllRanksReportIsTheirs) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  for (int32_t r = 0; r < 4; ++r) job.Say(r, EventKind::cuda_error).Make<CudaError>().words = kIllegalAddress;
  EXPECT_NE(Read(job).Of(2).gpu_error, nullptr);
}

TEST(SignsOfLife, AnExitWithZeroIsNoEnd) {
  JobSketch job(2);
  job.Say(0, EventKind::process_exited).Make<ProcessEnd>().code = 0;
  const Read read(job);
  EXPECT_EQ(read.Of(0).exited, nullptr);
  EXPECT_EQ(read.outcome.first_failure, nullptr);
}

TEST(SignsOfLife, TheLatestWordIsTheOneWithTheLatestTime) {
  JobSketch job(1);
  job.Say(0, EventKind::progress).Make<Progress>().step = 5;
  job.Say(0, EventKind::progress).wall_ns -= kSecondNs;
  const Read read(job);
  ASSERT_NE(read.Of(0).last_event, nullptr);
  EXPECT_EQ(read.Of(0).last_event->As<Progress>().step, 5);
}

TEST(SignsOfLife, CudaOutOfMemoryIsNoFaultOfTheDevice) {
  JobSketch job(2);
  job.Say(0, EventKind::cuda_error).Make<CudaError>().words = "CUDA out of memory";
  job.Say(1, EventKind::cuda_error).Make<CudaError>().words = "an illegal memory access was encountered";
  const Read read(job);
  EXPECT_NE(read.Of(0).cuda_oom, nullptr);
  EXPECT_EQ(read.Of(0).gpu_error, nullptr);
  EXPECT_NE(read.Of(1).gpu_error, nullptr);
}

TEST(SignsOfLife, XidsThatFollowAKillAreNoFaultOfTheDevice) {
  for (const int64_t code : {43, 45}) {
    JobSketch job(1);
    Event& xid = job.Tell(EventKind::xid);
    xid.Make<Xid>().number = code;
    xid.rank = Rank{0};
    EXPECT_EQ(Read(job).Of(0).gpu_error, nullptr) << code;
  }
}

TEST(Outcome, AHealthyJobNeitherHangsNorFails) {
  JobSketch job(4);
  job.Rounds(5);
  job.FinishAll();
  const Read read(job);
  EXPECT_FALSE(read.outcome.hangs());
  EXPECT_FALSE(read.outcome.may_hang());
  EXPECT_TRUE(read.outcome.ended_in_order);
  EXPECT_TRUE(read.outcome.somebody_finished);
}

TEST(Outcome, AMonitoredBarrierThatNamesWhoDidNotComeIsATimeout) {
  for (const bool named : {true, false}) {
    JobSketch job(3);
    Event& report = job.Say(0, EventKind::monitored_barrier_failed);
    if (named) report.ranks = {Rank{2}};
    EXPECT_EQ(Read(job).outcome.hangs(), named);
  }
}

TEST(Outcome, OneRankWithoutAnEndIsNotEndedInOrder) {
  JobSketch job(4);
  job.Rounds(5);
  job.GiveOutputs();
  for (const int32_t r : {0, 1, 2}) job.Say(r, EventKind::process_finished);
  const Read read(job);
  EXPECT_FALSE(read.outcome.ended_in_order);
  EXPECT_TRUE(read.outcome.somebody_finished);
}

TEST(Outcome, TheEarliestTimeoutIsTheFirst) {
  JobSketch job(4);
  job.Wait(kSecondNs);
  job.TimeOut(2, 9);
  job.now_ns -= kSecondNs / 2;
  job.TimeOut(1, 8);
  const Read read(job);
  ASSERT_NE(read.outcome.first_timeout, nullptr);
  EXPECT_EQ(read.outcome.first_timeout->rank, Rank{1});
  EXPECT_TRUE(read.outcome.hangs());
}

// How old an open operation was when the record was taken decides between a hang and a snapshot.
struct Age {
  const char* name;
  bool timed;
  int64_t wait_ns;
  CallState state;
  bool hangs;
};
class Ages : public testing::TestWithParam<Age> {};
INSTANTIATE_TEST_SUITE_P(Records, Ages,
                         testing::Values(Age{"JustNowTimed", true, 50 * kMillisecondNs, CallState::started, false},
                                         Age{"JustNowUntimed", false, 50 * kMillisecondNs, CallState::enqueued, false},
                                         Age{"LongAgoUntimed", false, 600 * kSecondNs, CallState::enqueued, true},
                                         Age{"AMinuteAgoUntimed", false, 60 * kSecondNs, CallState::enqueued, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Ages, TellAHangFromASnapshot) {
  JobSketch job(4);
  job.timed = GetParam().timed;
  job.Rounds(5);
  job.IssueAll({.state = GetParam().state});
  job.Wait(GetParam().wait_ns);
  const Read read(job);
  EXPECT_TRUE(read.outcome.unfinished_calls);
  EXPECT_EQ(read.outcome.hangs(), GetParam().hangs);
}

TEST(Outcome, ATimedRecordKnowsTheAgeByItsLaterEntries) {
  // Another group went on for ten minutes after the operation was issued.
  JobSketch job(4);
  const GroupIndex other = job.AddGroup("other", {0, 1, 2, 3});
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  job.IssueAll({.group = other});
  EXPECT_TRUE(Read(job).outcome.hangs());
}

TEST(Outcome, ACoalescedMemberThatStaysScheduledIsNotUnfinished) {
  JobSketch job(2);
  job.IssueAll({.kind = OpKind::all_gather, .state = CallState::enqueued, .flags = kCoalescedMember});
  job.IssueAll({.kind = OpKind::coalesced, .flags = kCoalescedEnd});
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(Read(job).outcome.unfinished_calls);
}

TEST(Outcome, ACallThatOnlyTheAbortEndedIsUnfinished) {
  JobSketch job(2);
  job.IssueAll({.flags = kEndedByAbort});
  job.Wait(600 * kSecondNs);
  EXPECT_TRUE(Read(job).outcome.unfinished_calls);
}

TEST(Outcome, ALogRecordsNoEndAndSoNothingUnfinished) {
  JobSketch job(2, {CallSource::nccl_log});
  job.Rounds(5);
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(Read(job).outcome.unfinished_calls);
}

}  // namespace
}  // namespace tacet
