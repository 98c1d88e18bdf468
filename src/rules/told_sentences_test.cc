// SPDX-License-Identifier: Apache-2.0
// What is said where nobody knows the cause, and whom and what the sentences name.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

bool SaysSo(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

void TimeOutIn(JobSketch& job, int32_t rank, int64_t seq, std::string_view group = "") {
  Event& event = job.Say(rank, EventKind::watchdog_timeout);
  event.seq = seq;
  event.op = OpKind::all_reduce;
  event.group_name = group;
  event.Make<WatchdogTimeout>().elapsed_ms = 600'000;
}

TEST(TimeoutSentence, ListsAllWhoseTimeWasUpAndCitesALine) {
  JobSketch job(6, {});
  TimeOutIn(job, 0, 812, "3");
  for (const int32_t r : {2, 5}) TimeOutIn(job, r, 812);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_TRUE(SaysSo(verdict.headline, "ranks 0, 2 and 5 timed out in all_reduce #812 after 10 min"))
      << verdict.headline;
  ASSERT_EQ(verdict.findings.size(), 1u);
  const Finding& finding = verdict.findings[0];
  EXPECT_TRUE(finding.cause.empty());
  EXPECT_EQ(finding.headline, verdict.headline);
  EXPECT_EQ(finding.affected_ranks, Ranks({0, 2, 5}));
  EXPECT_EQ(finding.evidence.size(), 1u);
  EXPECT_FALSE(finding.fix.empty());
}

TEST(TimeoutSentence, TellsRanksAtAnotherNumber) {
  JobSketch unnamed(4, {}), named(4, {});
  for (const int32_t r : {0, 1, 3}) TimeOutIn(unnamed, r, 100);
  TimeOutIn(unnamed, 2, 90);
  for (const int32_t r : {0, 1, 3}) TimeOutIn(named, r, 100, "7");
  TimeOutIn(named, 2, 90, "8");
  const std::string open = JudgedCase(unnamed).Verdict().headline, apart = JudgedCase(named).Verdict().headline;
  EXPECT_TRUE(SaysSo(open, "rank 2 in all_reduce #90 (different groups, or rank 2 is behind)")) << open;
  EXPECT_TRUE(SaysSo(apart, "rank 2 in all_reduce #90 of another group")) << apart;
  EXPECT_FALSE(SaysSo(apart, "behind")) << apart;
}

TEST(TimeoutSentence, SaysOfWhomNothingIsHeardWhereTheyAreFew) {
  JobSketch few(8, {}), many(8, {});
  for (const int32_t r : few.AllBut({3})) TimeOutIn(few, r, 5, "4");
  for (const int32_t r : {0, 7}) TimeOutIn(many, r, 5, "4");
  EXPECT_TRUE(SaysSo(JudgedCase(few).Verdict().headline, "no line is from rank 3"));
  EXPECT_FALSE(SaysSo(JudgedCase(many).Verdict().headline, "no line"));
}

TEST(HeartbeatSentence, ListsAllWatchdogsThatStoodStill) {
  JobSketch job(4, {});
  for (const int32_t r : {0, 2}) job.Say(r, EventKind::heartbeat_stuck).Make<HeartbeatStuck>().seconds = 600;
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_TRUE(SaysSo(verdict.headline, "the watchdog threads of ranks 0 and 2 made no progress")) << verdict.headline;
  ASSERT_FALSE(verdict.findings.empty());
  // The monitor that tells it ends the process: no stack can be taken any more.
  EXPECT_TRUE(SaysSo(verdict.findings[0].fix[0], "The job is gone")) << verdict.findings[0].fix[0];
  EXPECT_TRUE(SaysSo(verdict.findings[0].fix.back(), "native")) << verdict.findings[0].fix.back();
}

TEST(DesyncSentence, AMajorityIsToldAndNotAccused) {
  JobSketch job(8, {});
  Event& report = job.Tell(EventKind::desync_report);
  report.ranks = Ranks({3, 4, 5, 6, 7});
  report.seq = 31117;
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_TRUE(SaysSo(verdict.headline, "ranks 0-2 wait in collective #31117, which ranks 3-7 have not joined"))
      << verdict.headline;
}

// Horovod, which reports by tensors, keeps no flight record.
TEST(DesyncSentence, AFlightRecordIsAskedForWhereThereMayBeOne) {
  for (const bool horovod : {false, true}) {
    JobSketch job(8, {});
    Event& report = job.Tell(EventKind::desync_report);
    report.ranks = Ranks({3});
    report.seq = 17;
    if (horovod) report.Make<DesyncReport>().tensor = "allreduce.stem.weight";
    const Diagnosis verdict = JudgedCase(job).Verdict();
    bool asked = false;
    for (const auto& question : verdict.open) asked |= SaysSo(question.missing, "flight record");
    EXPECT_FALSE(verdict.open.empty());
    EXPECT_EQ(asked, !horovod) << verdict.headline;
  }
}

TEST(OpenCrash, QuotesItsLineAndBlamesNobody) {
  JobSketch job(4, {});
  job.Say(1, EventKind::store_lost);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::crash);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_TRUE(verdict.findings[0].ranks.empty());
  EXPECT_EQ(verdict.findings[0].evidence.size(), 1u);
  EXPECT_FALSE(verdict.findings[0].fix.empty());
}

TEST(UnknownWarning, IsQuotedAsANote) {
  JobSketch job(2, {});
  Event& warning = job.Log(0, EventKind::nccl_warning);
  warning.Make<Warning>().id = "other";
  warning.text = "fi_getinfo() call failed: No data available";
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_TRUE(SaysSo(verdict.headline, "fi_getinfo() call failed")) << verdict.headline;
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].severity, Severity::note);
}

TEST(DuplicateGpu, AllRanksOfOneDeviceAreNamed) {
  JobSketch one(8, {}), two(8, {});
  const auto tell = [](JobSketch& job, int32_t a, int32_t b) {
    Event& warning = job.Log(a, EventKind::nccl_warning);
    warning.Make<Warning>().id = "duplicate-gpu";
    warning.ranks = Ranks({a, b});
  };
  for (const int32_t r : {2, 4, 1}) tell(one, r, 0);
  tell(two, 1, 0);
  tell(two, 3, 2);
  const Finding shared = JudgedCase(one).Only("init-mismatch"), pairs = JudgedCase(two).Only("init-mismatch");
  EXPECT_EQ(shared.ranks, Ranks({0, 1, 2, 4}));
  EXPECT_TRUE(SaysSo(shared.headline, "ranks 0-2 and 4 use the same GPU")) << shared.headline;
  EXPECT_TRUE(SaysSo(pairs.headline, "ranks 0 and 1, ranks 2 and 3")) << pairs.headline;
}

TEST(NetworkSentence, NamesTheProcessAndItsPeer) {
  JobSketch job(2, {});
  Event& error = job.Tell(EventKind::nccl_warning);
  error.pid = 3468;
  auto& warning = error.Make<Warning>();
  warning.id = "ib-completion-error";
  warning.role = NcclWarningRole::cause;
  warning.number = 12;
  warning.object = "10.2.3.4<54862>";
  const std::string headline = JudgedCase(job).Only("network-fault").headline;
  EXPECT_TRUE(SaysSo(headline, "process 3468 got no answer from peer 10.2.3.4:")) << headline;
}

TEST(NetworkSentence, AdviceFitsWhoReports) {
  for (const auto& [id, part] : {std::pair{"ib-modify-qp-failed", "GID"}, std::pair{"net-plugin-failed", "EFA"}}) {
    JobSketch job(2, {});
    auto& warning = job.Log(1, EventKind::nccl_warning).Make<Warning>();
    warning.id = id;
    warning.role = NcclWarningRole::cause;
    const Finding finding = JudgedCase(job).Only("network-fault");
    ASSERT_FALSE(finding.fix.empty()) << id;
    EXPECT_TRUE(SaysSo(finding.fix[0], part)) << finding.fix[0];
    for (const std::string& step : finding.fix) EXPECT_FALSE(SaysSo(step, "perfquery")) << step;
  }
}

TEST(NetworkSentence, ADeviceThatCannotBeSetUpIsNoFaultBetweenRanks) {
  JobSketch job(2, {});
  auto& warning = job.Tell(EventKind::nccl_warning).Make<Warning>();
  warning.id = "net-device-setup-failed";
  warning.role = NcclWarningRole::cause;
  const Finding finding = JudgedCase(job).Only("network-fault");
  EXPECT_TRUE(SaysSo(finding.headline, "cannot be set up")) << finding.headline;
  EXPECT_FALSE(SaysSo(finding.headline, "between ranks")) << finding.headline;
}

TEST(SharedMemorySentence, ASegmentThatCudaRefusesIsNotFull) {
  for (const bool refused : {true, false}) {
    JobSketch job(2, {});
    if (refused) {
      Event& cuda = job.Tell(EventKind::nccl_warning);
      cuda.source.line = 5;
      cuda.Make<Warning>().id = "cuda-failure";
      cuda.Make<Warning>().role = NcclWarningRole::cause;
      cuda.Make<Warning>().object = "invalid argument";
    }
    Event& shm = job.Tell(EventKind::nccl_warning);
    shm.source.line = 7;
    shm.Make<Warning>().id = "shm-extend-failed";
    shm.Make<Warning>().role = NcclWarningRole::cause;
    const Finding finding = JudgedCase(job).Only("shared-memory-full");
    EXPECT_EQ(finding.cause, refused ? "" : "shared-memory-full");
    EXPECT_EQ(SaysSo(finding.headline, "fails with 'invalid argument'"), refused) << finding.headline;
  }
}

TEST(GpuSentence, AGpuThatOnlyAToolMissesReportsNoXid) {
  JobSketch job(2, {});
  Event& lost = job.Tell(EventKind::xid);
  lost.Make<Xid>().number = 79;
  lost.Make<Xid>().pci = "0000:04:00";
  lost.Set(Meaning::reported);
  const std::string headline = JudgedCase(job).Only("gpu-fault").headline;
  EXPECT_TRUE(SaysSo(headline, "driver cannot reach the GPU at PCI 0000:04:00")) << headline;
  EXPECT_FALSE(SaysSo(headline, "reports Xid")) << headline;
}

TEST(SequenceReport, ADifferentNumberIsNoDifferentOperation) {
  JobSketch two(4, {}), odd(4, {});
  const auto tell = [](JobSketch& job, int32_t rank, int64_t seq, int32_t peer, int64_t other) {
    Event& event = job.Say(rank, EventKind::mismatch_report);
    event.Make<MismatchReport>() = {"seq", -1, other};
    event.peer = Rank{peer};
    event.ranks = Ranks({rank, peer});
    event.op = OpKind::barrier;
    event.seq = seq;
  };
  tell(two, 1, 7, 2, 6);
  for (const int32_t r : {0, 1, 3}) tell(odd, r, 7, 2, 6);
  const JudgedCase pair(two), alone(odd);
  EXPECT_FALSE(pair.Fires("collective-mismatch-operation"));
  EXPECT_FALSE(pair.Fires("collective-extra"));
  const Finding open = pair.Only("collective-skipped"), named = alone.Only("collective-skipped");
  EXPECT_TRUE(open.ranks.empty());
  EXPECT_TRUE(SaysSo(open.headline, "rank 1 is at barrier #7, rank 2 at barrier #6")) << open.headline;
  EXPECT_EQ(named.ranks, Ranks({2}));
}

TEST(EndAdvice, SpeaksOfItsOwnSignalOnly) {
  for (const auto& [code, part, never] : {std::tuple{-9, "SIGKILL", "SIGBUS"}, std::tuple{-7, "SIGBUS", "SIGKILL"},
                                          std::tuple{-11, "Segmentation", "SIGBUS"}}) {
    JobSketch job(4, {});
    job.GiveOutputs();
    job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = code;
    const Finding finding = JudgedCase(job).Only("rank-dead");
    std::string all;
    for (const std::string& step : finding.fix) all += step + "\n";
    EXPECT_TRUE(SaysSo(all, part)) << all;
    EXPECT_FALSE(SaysSo(all, never)) << all;
  }
}

TEST(EndAdvice, AMissedHeartbeatIsNoProofOfDeath) {
  JobSketch job(2, {});
  Event& end = job.Say(1, EventKind::process_exited);
  end.Make<ProcessEnd>().code = 255;
  end.Make<ProcessEnd>().how = "a heartbeat that stopped";
  end.Set(Meaning::timed_out);
  const Finding finding = JudgedCase(job).Only("rank-dead");
  EXPECT_EQ(finding.confidence, Confidence::likely);
  EXPECT_TRUE(SaysSo(finding.headline, "dead, preempted or blocked")) << finding.headline;
}

TEST(SharedMemory, IsOnlyProvenFullWhereTheSystemSaysSo) {
  for (const int64_t error : {-1, 28}) {
    JobSketch job(2, {});
    auto& warning = job.Log(1, EventKind::nccl_warning).Make<Warning>();
    warning.id = "shm-extend-failed";
    warning.role = NcclWarningRole::cause;
    warning.number = error;
    const Finding finding = JudgedCase(job).Only("shared-memory-full");
    EXPECT_EQ(finding.confidence, error > 0 ? Confidence::certain : Confidence::likely);
    EXPECT_EQ(SaysSo(finding.headline, "/dev/shm is full"), error > 0) << finding.headline;
  }
}

TEST(GpuFault, TakesTheDeviceFromTheNextLineOfTheSameIncident) {
  const auto fault = [](JobSketch& job, std::string pci) {
    Event& event = job.Tell(EventKind::xid);
    event.Make<Xid>().number = 0;
    event.Make<Xid>().pci = std::move(pci);
  };
  JobSketch one(0, {}), several(0, {});
  fault(one, "");
  fault(one, "0000:0a:00");
  fault(several, "");
  fault(several, "0000:0a:00");
  fault(several, "0000:0b:00");
  EXPECT_TRUE(SaysSo(JudgedCase(one).Only("gpu-fault").headline, "0000:0a:00"));
  EXPECT_FALSE(SaysSo(JudgedCase(several).Only("gpu-fault").headline, "0000:0"));
}

void TellAround(JobSketch& job, EventKind kind, std::string_view words) {
  Event& event = job.Say(0, kind);
  event.rank = {};
  event.speaker = kNobody;
  event.text = words;
}

TEST(ToldTrouble, AJobThatIsSaidToBeSlowIsNotHealthy) {
  JobSketch silent(2), job(2);
  const Diagnosis before = JudgedCase(silent).Verdict();
  TellAround(job, EventKind::told_slow, "twice as slow as it should be");
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_NE(before.status, Status::slow);
  EXPECT_EQ(verdict.status, Status::slow);
  EXPECT_EQ(verdict.confidence, Confidence::possible);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_TRUE(SaysSo(verdict.headline, "the text around the log says that the job is slow")) << verdict.headline;
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence[0].says, "said in the text around the log");
}

TEST(ToldTrouble, AnEndOrAHangOutranksSlowness) {
  JobSketch job(2, {});
  TimeOutIn(job, 0, 5);
  TellAround(job, EventKind::told_slow, "twice as slow as it should be");
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_FALSE(SaysSo(verdict.headline, "slow")) << verdict.headline;
}

TEST(ToldTrouble, AStopIsNeitherAHangNorAnEnd) {
  JobSketch job(2);
  TellAround(job, EventKind::told_stop, "it stops at the third save");
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_TRUE(SaysSo(verdict.headline, "says that the job stops")) << verdict.headline;
}

TEST(OpenCrash, AllClientsOfAnMpsServerAreNamedTogether) {
  JobSketch job(4, {});
  for (int32_t rank = 0; rank < 4; ++rank)
    job.Say(rank, EventKind::cuda_error).Make<CudaError>().words =
        "the remote procedural call between the MPS server and the MPS client failed";
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_TRUE(SaysSo(verdict.headline, "all 4 ranks lost their MPS server")) << verdict.headline;
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_TRUE(SaysSo(verdict.findings[0].fix[0], "server.log")) << verdict.findings[0].fix[0];
}

TEST(CrashSentence, WhatCouldNotBeStartedDidNotCrash) {
  Incident incident;
  Event end;
  end.kind = EventKind::process_exited;
  end.speaker = kNobody;
  end.Make<ProcessEnd>() = {.code = 127, .how = "the shell cannot find torchrun"};
  end.Set(Meaning::reported);
  incident.events.push_back(end);
  incident.files.emplace_back();
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_EQ(verdict.headline, "The job did not start: the shell cannot find torchrun");
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence.at(0).says, "what could not be started");
  EXPECT_TRUE(SaysSo(verdict.findings[0].fix.at(0), "python3 -m torch.distributed.run"));
}

TEST(OpenQuestion, FitsTheLauncherThatTheLineShows) {
  for (const bool ray : {true, false}) {
    Incident incident;
    Event error;
    error.kind = EventKind::exception;
    error.speaker = kNobody;
    if (ray) error.pid = 40211;
    error.Make<Raised>().of_job = true;
    error.Make<Raised>().type = "ValueError";
    error.text = "bad shard";
    incident.events.push_back(error);
    const RuleAnswer answer = JudgedCase(std::move(incident)).Ask("application-exception");
    ASSERT_EQ(answer.open.size(), 1u);
    EXPECT_EQ(SaysSo(answer.open[0].missing, "worker-*-40211"), ray) << answer.open[0].missing;
    EXPECT_EQ(SaysSo(answer.open[0].missing, "torchrun"), !ray) << answer.open[0].missing;
  }
}

TEST(PlainProgram, HasNoRankThatCouldBeAskedFor) {
  for (const bool of_job : {true, false}) {
    Incident incident;
    Event error;
    error.kind = EventKind::exception;
    error.speaker = kNobody;
    error.Make<Raised>().of_job = of_job;
    error.Make<Raised>().type = "KeyError";
    error.text = "'labels'";
    incident.events.push_back(error);
    const RuleAnswer answer = JudgedCase(std::move(incident)).Ask("application-exception");
    ASSERT_EQ(answer.findings.size(), 1u);
    EXPECT_EQ(SaysSo(answer.findings[0].headline, "the process raised KeyError"), !of_job);
    EXPECT_EQ(answer.open.empty(), !of_job);
  }
}

TEST(VanishedRank, OnlyWhatItsPeersReportIsSaid) {
  JobSketch job(3, {});
  for (const int r : {0, 1, 2}) job.Say(r, EventKind::progress).Make<Progress>().step = 15;
  job.Wait(kSecondNs);
  for (const int r : {1, 2}) {
    job.Say(r, EventKind::connection_lost);
    Event& error = job.Say(r, EventKind::exception);
    error.Make<Raised>().type = "RuntimeError";
    error.text = "gloo/transport/tcp/pair.cc: Connection reset by peer";
    error.Set(Meaning::consequence);
    error.Set(Meaning::gloo_loss);
  }
  const RuleAnswer answer = JudgedCase(job).Ask("rank-dead");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_FALSE(SaysSo(answer.findings[0].headline, "CUDA")) << answer.findings[0].headline;
  EXPECT_TRUE(SaysSo(answer.findings[0].headline, "and then ranks 1 and 2 report closed connections"))
      << answer.findings[0].headline;
}

}  // namespace
}  // namespace tacet
