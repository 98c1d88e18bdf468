// SPDX-License-Identifier: Apache-2.0
// The network, its limits and its settings.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

class StalledWorld : public testing::TestWithParam<int32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, StalledWorld, testing::Values(2, 4, 8, 64, 1024));

JobSketch Stalled(int32_t world, int rounds = 5) {
  JobSketch job(world);
  job.Rounds(rounds);
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  return job;
}

// transport-stalled

TEST_P(StalledWorld, ACollectiveThatAllBeganAndNobodyEndsIsATransportStall) {
  for (const int rounds : {0, 1, 33}) {
    JobSketch job = Stalled(GetParam(), rounds);
    const JudgedCase judged(job);
    const RuleAnswer answer = judged.Ask("transport-stalled");
    ASSERT_EQ(answer.findings.size(), 1u);
    const Finding& finding = answer.findings[0];
    EXPECT_TRUE(finding.ranks.empty());
    EXPECT_EQ(finding.affected_ranks, RankRange(0, GetParam()));
    EXPECT_EQ(finding.status, Status::hang);
    EXPECT_EQ(finding.operation->seq, rounds + 1);
    ASSERT_FALSE(answer.open.empty());
    EXPECT_NE(answer.open[0].missing.find("black boxes"), std::string::npos);
    EXPECT_EQ(judged.Verdict().cause, "transport-stalled");
  }
}

TEST(TransportStalled, StaysSilentWhileAMemberIsNotOnRecord) {
  JobSketch job = Stalled(8);
  job.LoseRecord(3);
  EXPECT_FALSE(JudgedCase(job).Fires("transport-stalled"));
}

TEST(TransportStalled, StaysSilentAfterAMismatch) {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1, 2}, {});
  job.IssueOn({3}, {.elements = 5});
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("transport-stalled"));
  EXPECT_EQ(judged.Verdict().cause, "collective-mismatch-size");
}

TEST(TransportStalled, StaysSilentOnASnapshotOfARunningJob) {
  JobSketch job(8);
  job.Rounds(30);
  job.IssueAll(kStarted);
  job.Wait(20 * kMillisecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("transport-stalled"));
}

TEST(TransportStalled, YieldsToARecordedNetworkFault) {
  JobSketch job = Stalled(8);
  Event& error = job.Log(2, EventKind::nccl_warning);
  error.Make<Warning>().id = "ib-completion-error";
  error.Make<Warning>().number = 12;
  EXPECT_EQ(JudgedCase(job).Verdict().cause, "network-fault");
}

// network-fault

TEST(NetworkFault, ACompletionErrorOfOneRankNamesItsEnd) {
  for (const auto& [world, rank] : {std::pair{2, 1}, std::pair{8, 0}, std::pair{64, 63}}) {
    JobSketch job = Stalled(world);
    Event& error = job.Log(rank, EventKind::nccl_warning);
    error.Make<Warning>().id = "ib-completion-error";
    error.Make<Warning>().number = 12;
    const Finding finding = JudgedCase(job).Only("network-fault");
    EXPECT_EQ(finding.ranks, Ranks({rank}));
    EXPECT_EQ(finding.status, Status::hang);
    EXPECT_EQ(finding.severity, Severity::critical);
    EXPECT_EQ(finding.operation.has_value(), false) << "nobody is missing, so no operation is waited in for a rank";
  }
}

TEST(NetworkFault, ErrorsOfManyRanksNameNobody) {
  JobSketch job = Stalled(8);
  for (const int r : {1, 4, 6}) {
    Event& error = job.Log(r, EventKind::nccl_warning);
    error.Make<Warning>().id = "ib-completion-error";
    error.Make<Warning>().number = 12;
  }
  const Finding finding = JudgedCase(job).Only("network-fault");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.affected_ranks, Ranks({1, 4, 6}));
  EXPECT_EQ(finding.confidence, Confidence::possible);
}

TEST(NetworkFault, AnErrorThatNcclGivesUpOnIsACrashAlsoWithoutTimeouts) {
  JobSketch job(16, {CallSource::nccl_log});
  job.Rounds(10);
  Event& error = job.Log(11, EventKind::nccl_warning);
  error.Make<Warning>().id = "ib-async-fatal";
  error.Make<Warning>().role = NcclWarningRole::cause;
  const Finding finding = JudgedCase(job).Only("network-fault");
  EXPECT_EQ(finding.ranks, Ranks({11}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(finding.severity, Severity::critical);
}

TEST(NetworkFault, AnEventThatIsNotFatalIsNothing) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  job.Log(2, EventKind::nccl_warning).Make<Warning>().id = "ib-async-event";
  EXPECT_FALSE(JudgedCase(job).Fires("network-fault"));
}

TEST(FabricManagerDown, ABrokenFabricNamesThoseWhoSitOnIt) {
  for (const int32_t last : {4, 8}) {
    JobSketch job(8, {CallSource::nccl_log});
    job.Rounds(2);
    for (int32_t r = 0; r < last; ++r) {
      Event& warning = job.Log(r, EventKind::nccl_warning);
      warning.Make<Warning>().id = "nvls-bind-failed";
      warning.Make<Warning>().role = NcclWarningRole::cause;
    }
    const Finding finding = JudgedCase(job).Only("fabric-manager-down");
    EXPECT_EQ(finding.ranks, last == 8 ? Ranks({}) : RankRange(0, last));
    EXPECT_EQ(finding.status, Status::crash);
  }
}

TEST(CollectiveMismatchSize, ATruncatedMessageIsAHintWithoutAName) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(2);
  job.Log(3, EventKind::nccl_warning).Make<Warning>().id = "message-truncated";
  const Finding finding = JudgedCase(job).Only("collective-mismatch-size");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.confidence, Confidence::possible);
}

TEST(NetworkFault, FlushedWorkAndClosedConnectionsAreSecondary) {
  JobSketch job = Stalled(8);
  Event& flushed = job.Log(2, EventKind::nccl_warning);
  flushed.Make<Warning>().id = "ib-completion-error";
  flushed.Make<Warning>().number = 5;
  job.Log(3, EventKind::nccl_warning).Make<Warning>().id = "connection-closed";
  job.Log(3, EventKind::connection_lost);
  EXPECT_FALSE(JudgedCase(job).Fires("network-fault"));
}

TEST(NetworkFault, ALinkThatWentDownUnderAHangIsNamed) {
  JobSketch job = Stalled(8);
  job.Tell(EventKind::link_down).Make<NetworkLink>().device = "ib0";
  const Finding finding = JudgedCase(job).Only("network-fault");
  EXPECT_NE(finding.headline.find("ib0"), std::string::npos);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.severity, Severity::critical);
}

TEST(NetworkFault, ALinkThatWentDownInAFinishedJobIsNoFailure) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  job.FinishAll();
  job.Tell(EventKind::link_down).Make<NetworkLink>().device = "ib0";
  const Finding finding = JudgedCase(job).Only("network-fault");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.status, Status::degraded);
}

TEST(NetworkFault, StaysSilentOnAHealthyLog) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  job.Log(0, EventKind::network).Make<NetworkName>().name = "IB";
  job.Log(0, EventKind::nccl_warning).Make<Warning>().id = "connect-retry";
  job.Tell(EventKind::link_up).Make<NetworkLink>().device = "ib0";
  EXPECT_FALSE(JudgedCase(job).Fires("network-fault"));
}

// timeout-too-short

TEST_P(StalledWorld, ARankThatCameAfterTheLimitShowsThatTheLimitIsShort) {
  const int32_t world = GetParam();
  for (const int32_t late : {0, world - 1}) {
    JobSketch job(world);
    job.timeout_ms = 60'000;
    job.Rounds(6);
    for (const int32_t r : job.AllBut({late})) job.Issue(r, kStarted);
    job.Wait(70 * kSecondNs);
    job.Issue(late, kStarted);
    for (const int32_t r : job.AllBut({late})) job.TimeOut(r, 7);
    const Finding finding = JudgedCase(job).Only("timeout-too-short");
    EXPECT_EQ(finding.ranks, Ranks({late}));
    EXPECT_EQ(finding.status, Status::hang);
    EXPECT_EQ(finding.operation->seq, 7);
    EXPECT_EQ(finding.confidence, Confidence::likely);
  }
}

TEST(TimeoutTooShort, AnOperationThatEndedOnSomeGpusDidNotStandStill) {
  // Rank 0 came after 52 of 60 seconds; two GPUs have ended the operation when the watchdogs of the other two fire.
  JobSketch job(4);
  job.timeout_ms = 60'000;
  job.Rounds(6);
  for (const int32_t r : {2, 3}) job.Issue(r, kStarted);
  job.Wait(52 * kSecondNs);
  for (const int32_t r : {0, 1}) job.Issue(r, {});
  job.Wait(8 * kSecondNs);
  for (const int32_t r : {2, 3}) job.TimeOut(r, 7);
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Verdict().cause, "timeout-too-short");
  EXPECT_FALSE(judged.Fires("transport-stalled"));
}

TEST(TimeoutTooShort, WhoIsWaitedForAgainButNotYetForLongIsLateAndNotStuck) {
  JobSketch job(4);
  job.timeout_ms = 60'000;
  job.Rounds(6);
  for (const int32_t r : {0, 1, 3}) job.Issue(r, {});
  job.Wait(70 * kSecondNs);
  job.Issue(2, {});
  job.IssueOn({0, 1, 3}, kStarted);
  job.Wait(20 * kSecondNs);
  job.TimeOut(0, 7);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "timeout-too-short");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

TEST(TimeoutTooShort, WhoCameLateOnceAndThenNotAtAllIsStuck) {
  JobSketch job(4);
  job.timeout_ms = 60'000;
  job.Rounds(6);
  for (const int32_t r : {0, 1, 3}) job.Issue(r, {});
  job.Wait(70 * kSecondNs);
  job.Issue(2, {});
  job.IssueOn({0, 1, 3}, kStarted);
  job.Wait(600 * kSecondNs);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "rank-stuck-on-host");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

TEST(TimeoutTooShort, OperationsThatEndCloseToTheLimitMakeItPossible) {
  JobSketch job(4);
  job.timeout_ms = 60'000;
  job.Rounds(6);
  job.IssueAll({.duration_ms = 45'000});
  job.IssueAll(kStarted);
  job.Wait(60 * kSecondNs);
  job.TimeOut(0, 8);
  const Finding finding = JudgedCase(job).Only("timeout-too-short");
  EXPECT_EQ(finding.confidence, Confidence::possible);
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(TimeoutTooShort, StaysSilentInAHang) {
  JobSketch job(4);
  job.Rounds(6);
  job.IssueOn({0, 1, 2}, kStarted);
  job.Wait(600 * kSecondNs);
  job.TimeOut(0, 7);
  EXPECT_FALSE(JudgedCase(job).Fires("timeout-too-short"));
}

TEST(TimeoutTooShort, StaysSilentInASlowJobThatEndedWell) {
  JobSketch job(4);
  job.timeout_ms = 60'000;
  for (int s = 0; s < 10; ++s) {
    job.IssueOn({0, 1, 2}, {.duration_ms = 50'000});
    job.Wait(50 * kSecondNs);
    job.IssueOn({3}, {.duration_ms = 1});
  }
  job.FinishAll();
  EXPECT_FALSE(JudgedCase(job).Fires("timeout-too-short"));
}

TEST(TimeoutTooShort, StaysSilentWhenAllCameTogether) {
  JobSketch job = Stalled(4);
  job.TimeOut(1, 6);
  EXPECT_FALSE(JudgedCase(job).Fires("timeout-too-short"));
}

// transport-fallback

// A sketched job is on one host, unless NCCL counts more.
void SpanTwoHosts(JobSketch& job) { job.Log(0, EventKind::node_count).Make<NodeCount>().nodes = 2; }

void Device(JobSketch& job, int32_t rank) {
  job.Log(rank, EventKind::device_found).Make<NetworkDevice>().name = "mlx5_0:1/IB";
}
void Uses(JobSketch& job, int32_t rank, const char* network) {
  job.Log(rank, EventKind::network).Make<NetworkName>().name = network;
}
void Connects(JobSketch& job, int32_t rank, const char* way) {
  job.Log(rank, EventKind::transport).Make<PairTransport>().via = way;
}

TEST(TransportFallback, SocketsBesideInfinibandDevicesAreAWarning) {
  JobSketch job(4, {CallSource::nccl_log});
  SpanTwoHosts(job);
  job.Rounds(5);
  for (int r = 0; r < 4; ++r) {
    Device(job, r);
    Uses(job, r, r == 2 ? "Socket" : "IB");
  }
  job.GiveOutputs();
  job.FinishAll();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("transport-fallback");
  EXPECT_EQ(finding.ranks, Ranks({2}));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_EQ(judged.Verdict().status, Status::degraded);
}

TEST(TransportFallback, SocketsOnHostsThatHaveNothingElseAreANote) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  for (int r = 0; r < 4; ++r) {
    job.Log(r, EventKind::no_device).Make<NetworkName>().name = "IB";
    Uses(job, r, "Socket");
  }
  job.GiveOutputs();
  job.FinishAll();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("transport-fallback");
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(judged.Verdict().status, Status::healthy) << judged.Verdict().headline;
}

// NCCL_HOSTID makes four nodes of one host; the same values on four hosts are hosts.
TEST(TransportFallback, SocketsInsideOneHostThatIsSplitSayNothingOfTheNetworkOfHosts) {
  for (const bool split : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    job.Log(0, EventKind::node_count).Make<NodeCount>().nodes = split ? 4 : 8;
    for (int r = 0; r < 4; ++r) {
      job.Log(r, EventKind::environment).Make<EnvironmentSetting>() = {"NCCL_HOSTID", "node" + std::to_string(r)};
      Uses(job, r, "Socket");
    }
    job.GiveOutputs();
    job.FinishAll();
    const Finding finding = JudgedCase(job).Only("transport-fallback");
    EXPECT_EQ(finding.severity, Severity::note);
    EXPECT_EQ(finding.headline.find("network device was found") == std::string::npos, split) << finding.headline;
    EXPECT_EQ(finding.headline.find("NCCL_HOSTID makes it treat as 4 hosts") != std::string::npos, split);
  }
}

// P2P is used inside a host: where NCCL_HOSTID makes a host of each process, switching it off costs nothing.
TEST(EnvironmentCripples, P2pThatIsOffCostsNothingOnAHostThatIsSplit) {
  for (const bool split : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    for (int r = 0; r < 4; ++r) {
      job.Log(r, EventKind::environment).Make<EnvironmentSetting>() = {"NCCL_HOSTID",
                                                                       split ? "node" + std::to_string(r) : "node"};
      job.Log(r, EventKind::environment).Make<EnvironmentSetting>() = {"NCCL_P2P_DISABLE", "1"};
    }
    job.GiveOutputs();
    job.FinishAll();
    const Finding finding = JudgedCase(job).Only("environment-cripples");
    EXPECT_EQ(finding.severity, split ? Severity::note : Severity::warning) << finding.headline;
    EXPECT_EQ(finding.headline.find("NCCL_P2P_DISABLE=1 has no effect here") != std::string::npos, split);
    EXPECT_EQ(finding.ranks.empty(), split);
  }
}

TEST(TransportFallback, OneHostWithoutTheFastNetworkSlowsAllDown) {
  JobSketch job(8, {CallSource::nccl_log});
  SpanTwoHosts(job);
  for (int r = 0; r < 8; ++r) {
    if (r < 7) Device(job, r);
    Uses(job, r, r < 7 ? "IB" : "Socket");
  }
  const Finding finding = JudgedCase(job).Only("transport-fallback");
  EXPECT_EQ(finding.ranks, Ranks({7}));
  EXPECT_EQ(finding.severity, Severity::warning);
}

TEST(TransportFallback, InfinibandWithoutDirectAccessIsAWarning) {
  JobSketch job(4, {CallSource::nccl_log});
  SpanTwoHosts(job);
  for (int r = 0; r < 4; ++r) {
    Device(job, r);
    Uses(job, r, "IB");
    Connects(job, r, r == 1 ? "NET/IB/0" : "NET/IB/0/GDRDMA");
  }
  EXPECT_EQ(JudgedCase(job).Only("transport-fallback").ranks, Ranks({1}));
}

TEST(TransportFallback, TheFastPathIsNothingToSpeakOf) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int r = 0; r < 4; ++r) {
    Device(job, r);
    Uses(job, r, "IB");
    Connects(job, r, "NET/IB/0/GDRDMA");
    Connects(job, r, "P2P/CUMEM");
  }
  EXPECT_FALSE(JudgedCase(job).Fires("transport-fallback"));
}

TEST(TransportFallback, GpuDirectThatIsOffIsDegradedFromTheSetUpLinesAlone) {
  JobSketch job(2, {CallSource::nccl_log});
  SpanTwoHosts(job);
  for (int r = 0; r < 2; ++r) {
    job.Log(r, EventKind::gpu_direct).Make<GpuDirect>() = {"mlx5_0", r == 1};
  }
  const Finding finding = JudgedCase(job).Only("transport-fallback");
  EXPECT_EQ(finding.ranks, Ranks({0}));
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_NE(finding.headline.find("mlx5_0"), std::string::npos) << finding.headline;
}

TEST(TransportFallback, NeedsNoRank) {
  Incident incident;
  incident.processes.push_back({Rank{}, Certainty::none, "gpu17", 4121});
  for (const EventKind kind : {EventKind::device_found, EventKind::network}) {
    Event event;
    event.kind = kind;
    if (kind == EventKind::network) event.detail = NetworkName{"Socket"};
    if (kind == EventKind::device_found) event.detail = NetworkDevice{"mlx5_0:1/IB"};
    incident.events.push_back(event);
  }
  const Finding finding = JudgedCase(std::move(incident)).Only("transport-fallback");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_NE(finding.headline.find("process 4121 on gpu17 uses TCP sockets"), std::string::npos) << finding.headline;
}

}  // namespace
}  // namespace tacet
