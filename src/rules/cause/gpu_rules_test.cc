// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

class FaultyGpu : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, FaultyGpu,
                         testing::Values(FaultPlace{2, 0, 3}, FaultPlace{4, 3, 12}, FaultPlace{8, 2, 40},
                                         FaultPlace{64, 31, 8}, FaultPlace{1024, 700, 4}),
                         [](const auto& info) { return PlaceName(info.param); });

// gpu-stalled

TEST_P(FaultyGpu, AGpuThatNeverBeganWhatItsPeersBeganIsStalled) {
  const FaultPlace& place = GetParam();
  JobSketch job(place.world);
  job.Rounds(place.rounds);
  for (const int32_t r : job.AllBut({place.rank})) job.Issue(r, kStarted);
  job.Issue(place.rank, kEnqueued);
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("gpu-stalled");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  EXPECT_NE(finding.headline.find("never started"), std::string::npos);
  EXPECT_EQ(judged.Verdict().cause, "gpu-stalled");
  EXPECT_FALSE(judged.Fires("rank-stuck-on-host"));
  EXPECT_FALSE(judged.Fires("transport-stalled"));
}

TEST_P(FaultyGpu, AGpuThatHasNotFinishedWhatItsPeersFinishedStandsStill) {
  const FaultPlace& place = GetParam();
  JobSketch job(place.world);
  job.timed = false;
  job.Rounds(place.rounds);
  for (int i = 0; i < 3; ++i) {
    for (const int32_t r : job.AllBut({place.rank})) job.Issue(r, {});
    job.Issue(place.rank, kEnqueued);
    job.Wait(kSecondNs);
  }
  job.IssueAll(kEnqueued);
  job.Wait(600 * kSecondNs);
  const Finding finding = JudgedCase(job).Only("gpu-stalled");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  EXPECT_NE(finding.headline.find("is stalled"), std::string::npos);
}

TEST(GpuStalled, ARankThatWaitsForItsDeviceBeforeItCanIssueIsStalled) {
  JobSketch job(8);
  job.Rounds(20);
  job.IssueOn(job.AllBut({4}), kStarted);
  job.Wait(600 * kSecondNs);
  for (const int r : job.AllBut({4})) job.Stack(r, InCollective());
  job.Stack(4, InSynchronize());
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("gpu-stalled").ranks, Ranks({4}));
  EXPECT_FALSE(judged.Fires("rank-stuck-on-host"));
}

TEST(GpuStalled, WithoutTimingAScheduledKernelMayRun) {
  JobSketch job(4);
  job.timed = false;
  job.Rounds(10);
  job.IssueAll(kEnqueued);
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("gpu-stalled"));
  const RuleAnswer answer = judged.Ask("transport-stalled");
  EXPECT_TRUE(answer.findings.empty());
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_NE(answer.open[0].missing.find("TORCH_NCCL_ENABLE_TIMING"), std::string::npos);
}

TEST(GpuStalled, WhileSomebodyHasNotIssuedItALateStartIsNoCause) {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1}, kStarted);
  job.Issue(2, kEnqueued);
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("gpu-stalled"));
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({3}));
}

TEST(GpuStalled, OneNumberBehindIsTheNoticingOfEvents) {
  JobSketch job(4);
  job.Rounds(10);
  for (const int r : {0, 1, 2}) job.Issue(r, {});
  job.Issue(3, kStarted);
  job.Wait(50 * kMillisecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("gpu-stalled"));
}

TEST(GpuStalled, ABroadcastsRootMayRunAhead) {
  JobSketch job(4);
  job.Rounds(10);
  for (int i = 0; i < 4; ++i) {
    job.Issue(0, {.kind = OpKind::broadcast, .peer = 0});
    for (const int r : {1, 2, 3}) job.Issue(r, {.kind = OpKind::broadcast, .peer = 0, .state = CallState::started});
  }
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("gpu-stalled"));
}

// gpu-fault

Event& TellXid(JobSketch& job, int64_t code, int32_t rank) {
  Event& event = job.Tell(EventKind::xid);
  event.Make<Xid>().number = code;
  event.rank = Rank{rank};
  event.Make<Xid>().pci = "0000:3b:00";
  return event;
}

TEST_P(FaultyGpu, AnXidOfARanksGpuIsNamed) {
  const FaultPlace& place = GetParam();
  JobSketch job(place.world);
  job.Rounds(place.rounds);
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  TellXid(job, 79, place.rank);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("gpu-fault");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.severity, Severity::critical);
  EXPECT_NE(finding.headline.find("Xid 79"), std::string::npos);
  EXPECT_EQ(judged.Verdict().cause, "gpu-fault");
}

TEST(GpuFault, ACudaErrorIsACrash) {
  JobSketch job(8);
  job.Rounds(3);
  job.Say(5, EventKind::cuda_error).Make<CudaError>().words = "an illegal memory access was encountered";
  const Finding finding = JudgedCase(job).Only("gpu-fault");
  EXPECT_EQ(finding.ranks, Ranks({5}));
  EXPECT_EQ(finding.status, Status::crash);
}

TEST(GpuFault, AnXidThatProgramsSurviveCountsOnlyForTheRankThatIsWaitedFor) {
  for (const int32_t rank : {5, 2}) {
    JobSketch job(8, {CallSource::nccl_log});
    job.Rounds(20);
    job.IssueOn(job.AllBut({5}), {});
    for (const int32_t r : job.AllBut({5})) job.TimeOut(r, 21);
    TellXid(job, 63, rank);
    const JudgedCase judged(job);
    if (rank == 5) {
      EXPECT_EQ(judged.Only("gpu-fault").ranks, Ranks({5}));
      EXPECT_EQ(judged.Only("gpu-fault").confidence, Confidence::likely);
    } else {
      EXPECT_EQ(judged.Only("gpu-fault").severity, Severity::note);
      EXPECT_NE(judged.Verdict().cause, "gpu-fault");
    }
  }
}

TEST(GpuFault, ErrorsOfTheMachinesMemoryAreNotTheGpus) {
  for (const char* subject : {"MC0", "machine check", "memory"}) {
    JobSketch job(4);
    job.Rounds(20);
    job.IssueOn({0, 1, 2}, kStarted);
    job.Wait(600 * kSecondNs);
    Event& event = job.Tell(EventKind::ecc_error);
    event.Make<HardwareError>().device = subject;
    event.Make<HardwareError>().severity = ErrorSeverity::uncorrected;
    EXPECT_FALSE(JudgedCase(job).Fires("gpu-fault")) << subject;
  }
}

TEST(GpuFault, APcieDeviceThatIsLostCountsWhereItIsARanksGpu) {
  for (const int32_t rank : {3, -1}) {
    JobSketch job(4);
    job.Rounds(20);
    job.IssueOn({0, 1, 2}, kStarted);
    job.Wait(600 * kSecondNs);
    Event& event = job.Tell(EventKind::pcie_error);
    event.Make<HardwareError>().device = "0000:4b:00.0";
    event.Make<HardwareError>().severity = ErrorSeverity::fatal;
    event.rank = Rank{rank};
    EXPECT_EQ(JudgedCase(job).Fires("gpu-fault"), rank == 3);
  }
}

TEST(GpuFault, OtherDevicesThatReportErrorsAreNamed) {
  const auto judge = [](std::string other, int64_t number) {
    Incident incident;
    for (const auto& [pci, code] : {std::pair<std::string, int64_t>{"0000:cb:00", 94}, {std::move(other), number}}) {
      Event& event = incident.events.emplace_back();
      event.kind = EventKind::xid;
      event.speaker = kNobody;
      event.Make<Xid>().number = code;
      event.Make<Xid>().pci = pci;
    }
    return JudgedCase(std::move(incident)).Only("gpu-fault");
  };
  const Finding two = judge("0000:4c:00", 74);
  EXPECT_NE(two.headline.find("the GPU at PCI 0000:4c:00 reports errors as well"), std::string::npos) << two.headline;
  ASSERT_FALSE(two.fix.empty());
  EXPECT_NE(two.fix.front().find("NVLink"), std::string::npos) << two.fix.front();
  const Finding one = judge("0000:cb:00", 94);
  EXPECT_EQ(one.headline.find("as well"), std::string::npos) << one.headline;
}

TEST(GpuFault, XidsThatFollowAKillAreAftermath) {
  for (const int64_t code : {43, 45}) {
    JobSketch job(8);
    job.Rounds(3);
    job.Say(5, EventKind::process_exited).Make<ProcessEnd>().code = -9;
    TellXid(job, code, 5);
    TellXid(job, code, -1);
    const JudgedCase judged(job);
    EXPECT_FALSE(judged.Fires("gpu-fault")) << code;
    EXPECT_EQ(judged.Only("rank-dead").ranks, Ranks({5})) << "the aftermath must not hide the death";
  }
}

TEST(GpuFault, AnAftermathBeforeTheRealFaultDoesNotHideIt) {
  JobSketch job(8);
  job.Rounds(3);
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  TellXid(job, 45, 5);
  TellXid(job, 79, 5);
  const Finding finding = JudgedCase(job).Only("gpu-fault");
  EXPECT_EQ(finding.ranks, Ranks({5}));
  EXPECT_NE(finding.headline.find("Xid 79"), std::string::npos) << finding.headline;
}

TEST(GpuFault, AFaultOfAnUnknownGpuIsOnlyPossibleAndTheRankIsAskedFor) {
  JobSketch job(8);
  job.Rounds(3);
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  TellXid(job, 79, -1);
  const RuleAnswer answer = JudgedCase(job).Ask("gpu-fault");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_TRUE(answer.findings[0].ranks.empty());
  EXPECT_EQ(answer.findings[0].confidence, Confidence::possible);
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_NE(answer.open[0].missing.find("busId"), std::string::npos);
}

TEST(GpuFault, AnXidOfAForeignProcessIsNoFaultOfThisJob) {
  JobSketch job(8);
  job.Rounds(3);
  job.IssueOn(job.AllBut({2}), kStarted);
  job.Wait(600 * kSecondNs);
  TellXid(job, 31, -1).pid = 77777;  // every rank's pid is known, and it is none of them
  EXPECT_FALSE(JudgedCase(job).Fires("gpu-fault"));
}

TEST(GpuFault, AJobThatEndedInOrderIsNoCrash) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(3);
  job.GiveOutputs();
  job.FinishAll();
  TellXid(job, 63, -1);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_NE(verdict.status, Status::crash) << verdict.headline;
  EXPECT_TRUE(verdict.ranks.empty());
}

TEST(GpuFault, AnAccessOutOfBoundsAfterBuffersOfDifferentSizesIsTheirConsequence) {
  for (const bool different : {true, false}) {
    JobSketch job(5);
    job.Rounds(20);
    for (const int32_t r : job.AllBut({3})) job.Issue(r, {.elements = 1 << 18});
    job.Issue(3, {.elements = different ? 1 : 1 << 18});
    job.Say(2, EventKind::cuda_error).Make<CudaError>().words = "an illegal memory access was encountered";
    const JudgedCase judged(job);
    EXPECT_TRUE(judged.Fires("gpu-fault"));
    EXPECT_EQ(judged.Verdict().cause, different ? "collective-mismatch-size" : "gpu-fault");
    EXPECT_EQ(judged.Verdict().ranks, different ? Ranks({3}) : Ranks({2}));
  }
}

// gpu-fault

TEST(GpuFault, AnErrorOfHipGetsAmdsStepsAndOneOfCudaNvidias) {
  for (const GpuMaker maker : {GpuMaker::amd, GpuMaker::not_told}) {
    JobSketch job(2, {});
    Event& error = job.Say(1, EventKind::cuda_error);
    error.Make<CudaError>().words = "an illegal memory access was encountered";
    error.text = maker == GpuMaker::amd ? "RuntimeError: HIP error: an illegal memory access was encountered"
                                        : "RuntimeError: CUDA error: an illegal memory access was encountered";
    const Finding finding = JudgedCase(job).Only("gpu-fault");
    ASSERT_FALSE(finding.fix.empty());
    const bool amd = finding.fix.front().find("AMD_SERIALIZE_KERNEL") != std::string::npos;
    EXPECT_EQ(amd, maker == GpuMaker::amd) << finding.fix.front();
    for (const std::string& step : finding.fix)
      EXPECT_FALSE(maker == GpuMaker::amd && step.find("Xid") != std::string::npos) << step;
  }
}

TEST(DeviceAssertion, TheSettingsAreThoseOfTheGpusMaker) {
  for (const GpuMaker maker : {GpuMaker::amd, GpuMaker::not_told}) {
    JobSketch job(2, {});
    Event& error = job.Say(1, EventKind::cuda_error);
    error.Make<CudaError>().words = "device-side assert triggered";
    error.text = maker == GpuMaker::amd ? "RuntimeError: HIP error: device-side assert triggered"
                                        : "RuntimeError: CUDA error: device-side assert triggered";
    const Finding finding = JudgedCase(job).Only("application-exception");
    const std::string& step = finding.fix.at(1);
    EXPECT_EQ(step.find("AMD_SERIALIZE_KERNEL=3") != std::string::npos, maker == GpuMaker::amd) << step;
    EXPECT_EQ(step.find("CUDA_LAUNCH_BLOCKING") != std::string::npos, maker != GpuMaker::amd) << step;
  }
}

TEST(GpuFault, TheKernelsWordExplainsAnErrorOfCudaOnTheSameHost) {
  for (const bool hardware : {true, false}) {
    JobSketch job(2, {});
    job.Say(1, EventKind::cuda_error).Make<CudaError>().words = "unspecified launch failure";
    Event& fault = job.Tell(EventKind::xid);
    fault.Make<Xid>().number = hardware ? 79 : 31;
    fault.Make<Xid>().pci = "0000:2b:00";
    const Finding finding = JudgedCase(job).Only("gpu-fault");
    EXPECT_EQ(finding.ranks, Ranks({1}));
    EXPECT_EQ(finding.headline.find("Xid 79") != std::string::npos, hardware) << finding.headline;
    EXPECT_EQ(finding.evidence.size(), 2u);
    EXPECT_EQ(finding.fix.front().find("Reboot") != std::string::npos, hardware) << finding.fix.front();
  }
}

TEST(GpuFault, WhatOnlyAToolSawIsNoCrashAndTheToolNoRank) {
  for (const bool tool : {true, false}) {
    Incident incident;
    Event event;
    event.kind = EventKind::xid;
    event.speaker = kNobody;
    event.pid = 2024380;
    event.Make<Xid>().number = 119;
    event.Make<Xid>().pci = "0000:9b:00";
    event.Make<Xid>().process = tool ? "nvidia-smi" : "python3";
    event.Set(Meaning::of_service, tool);
    incident.events.push_back(event);
    const RuleAnswer answer = JudgedCase(std::move(incident)).Ask("gpu-fault");
    ASSERT_EQ(answer.findings.size(), 1u);
    EXPECT_EQ(answer.findings[0].status, tool ? Status::degraded : Status::crash);
    ASSERT_EQ(answer.open.size(), 1u);
    EXPECT_EQ(answer.open[0].question.find("2024380") == std::string::npos, tool) << answer.open[0].question;
  }
}

}  // namespace
}  // namespace tacet
