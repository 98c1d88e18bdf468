// SPDX-License-Identifier: Apache-2.0
// Setting communication up: who never came, which interface, which address, which disagreement.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

class SetUpOf : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, SetUpOf,
                         testing::Values(FaultPlace{4, 0, 0}, FaultPlace{4, 3, 0}, FaultPlace{8, 5, 0},
                                         FaultPlace{64, 63, 0}, FaultPlace{1024, 700, 0}),
                         [](const auto& info) { return PlaceName(info.param); });

// init-rank-missing

void CountWhoCame(JobSketch& job, int32_t reporter, int64_t came, int64_t expected) {
  Event& event = job.Say(reporter, EventKind::rendezvous_incomplete);
  event.Make<Rendezvous>().joined = came;
  event.Make<Rendezvous>().expected = expected;
}

TEST_P(SetUpOf, TheRankThatDoesNotComplainOfTheRendezvousIsMissing) {
  const auto [world, rank, rounds] = GetParam();
  JobSketch job(world, {});
  for (const int32_t r : job.AllBut({rank})) CountWhoCame(job, r, world - 1, world);
  job.Say(rank, EventKind::progress);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("init-rank-missing");
  EXPECT_EQ(finding.ranks, Ranks({rank}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(finding.confidence, Confidence::certain);
  EXPECT_EQ(finding.affected_ranks.size(), static_cast<size_t>(world - 1));
  EXPECT_EQ(judged.Verdict().cause, "init-rank-missing");
}

TEST_P(SetUpOf, TheRankWhoseLogShowsNoSetUpIsMissing) {
  const auto [world, rank, rounds] = GetParam();
  JobSketch job(world, {});
  for (const int32_t r : job.AllBut({rank})) job.Log(r, EventKind::init_started);
  job.Say(rank, EventKind::progress);
  job.Stack(rank, InDataLoader());
  const Finding finding = JudgedCase(job).Only("init-rank-missing");
  EXPECT_EQ(finding.ranks, Ranks({rank}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

TEST(InitRankMissing, ARankWhoseNcclLogHasBegunMayHaveCome) {
  // Its log ends before "Init START": it was cut there, or stands still inside. A stack elsewhere tells.
  for (const bool elsewhere : {false, true}) {
    JobSketch job(4, {});
    for (const int r : {0, 1, 2}) job.Log(r, EventKind::init_started);
    job.Log(3, EventKind::nccl_version);
    if (elsewhere) job.Stack(3, InDataLoader());
    EXPECT_EQ(JudgedCase(job).Fires("init-rank-missing"), elsewhere);
  }
}

TEST(InitRankMissing, ATimeoutMakesItAHang) {
  JobSketch job(4, {});
  for (const int r : {0, 1, 2}) job.Log(r, EventKind::init_started);
  job.Say(3, EventKind::progress);
  job.TimeOut(0, 1);
  EXPECT_EQ(JudgedCase(job).Only("init-rank-missing").status, Status::hang);
}

TEST(InitRankMissing, SeveralAreSpokenOfAsSeveral) {
  JobSketch half(16, {}), listed(16, {});
  CountWhoCame(half, 0, 8, 16);
  const std::string counted = JudgedCase(half).Ask("init-rank-missing").findings.at(0).headline;
  EXPECT_TRUE(counted.starts_with("8 ranks never joined process-group setup; rank 0 waited for them")) << counted;
  for (int32_t r = 0; r < 8; ++r) CountWhoCame(listed, r, 8, 16);
  for (int32_t r = 8; r < 16; ++r) listed.Say(r, EventKind::progress);
  const std::string named = JudgedCase(listed).Only("init-rank-missing").headline;
  EXPECT_TRUE(named.starts_with("ranks 8-15 never joined process-group setup; ranks 0-7 waited for them")) << named;
}

void WaitForKey(JobSketch& job, int32_t rank, int32_t writer) {
  Event& event = job.Say(rank, EventKind::rendezvous_incomplete);
  event.ranks = Ranks({writer});
  event.Make<Rendezvous>().key = "/worker/" + std::to_string(writer) + "/ready";
}

TEST(InitRankMissing, WhoDidNotWriteItsKeyIsMissingUnlessItFailedItself) {
  JobSketch silent(4, {}), failed(4, {});
  for (JobSketch* job : {&silent, &failed})
    for (const int32_t r : {0, 1}) WaitForKey(*job, r, 3);
  const Finding finding = JudgedCase(silent).Only("init-rank-missing");
  EXPECT_EQ(finding.ranks, Ranks({3}));
  EXPECT_EQ(finding.affected_ranks, Ranks({0, 1}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
  failed.Say(3, EventKind::exception).Make<Raised>().type = "ValueError";
  EXPECT_EQ(JudgedCase(failed).Verdict().cause, "application-exception");
}

// Rank 0 asks one by one: 1 and 2 have answered, 4 says that it was there, and 5 may not have come.
Diagnosis BarrierVerdict(bool all_listed) {
  JobSketch job(6, {});
  Event& report = job.Say(0, EventKind::monitored_barrier_failed);
  report.ranks = Ranks({3});
  report.Make<BarrierFailure>().all_listed = all_listed;
  job.Say(4, EventKind::monitored_barrier_failed).peer = Rank{0};
  job.Say(5, EventKind::progress);
  return JudgedCase(job).Verdict();
}

TEST(MonitoredBarrier, WhoReachedItWaits) {
  const Diagnosis first = BarrierVerdict(false);
  EXPECT_EQ(first.ranks, Ranks({3}));
  EXPECT_EQ(first.findings.at(0).affected_ranks, Ranks({0, 1, 2, 4}));
  EXPECT_NE(first.headline.find("a monitored barrier"), std::string::npos) << first.headline;
  EXPECT_EQ(BarrierVerdict(true).findings.at(0).affected_ranks, Ranks({0, 1, 2, 4, 5}));
}

TEST(InitRankMissing, WithoutTheFilesOfTheMissingWhoItIsStaysOpen) {
  // Three of four came, and of two ranks there is no file: one of them came.
  JobSketch job(4, {});
  CountWhoCame(job, 0, 3, 4);
  CountWhoCame(job, 1, 3, 4);
  const RuleAnswer answer = JudgedCase(job).Ask("init-rank-missing");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_TRUE(answer.findings[0].ranks.empty());
  EXPECT_EQ(answer.findings[0].status, Status::undetermined);
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_NE(answer.open[0].missing.find("output"), std::string::npos);
}

TEST(InitRankMissing, StaysSilentOnceSomebodyIssuedACollective) {
  JobSketch job(4);
  job.Rounds(3);
  for (const int r : {0, 1, 2}) job.Log(r, EventKind::init_started);
  EXPECT_FALSE(JudgedCase(job).Fires("init-rank-missing"));
}

TEST(InitRankMissing, StaysSilentWhenTheSetUpWasDone) {
  JobSketch job(4, {});
  for (int r = 0; r < 4; ++r) {
    job.Log(r, EventKind::init_started);
    job.Log(r, EventKind::init_completed);
  }
  EXPECT_FALSE(JudgedCase(job).Fires("init-rank-missing"));
}

TEST(InitRankMissing, StaysSilentWhenAllAreStillInTheSetUp) {
  JobSketch job(4, {});
  for (int r = 0; r < 4; ++r) job.Log(r, EventKind::init_started);
  EXPECT_FALSE(JudgedCase(job).Fires("init-rank-missing"));
}

TEST(InitRankMissing, LeavesAnErrorOfTheSetUpToItsOwnCause) {
  for (const char* id : {"socket-no-interface", "duplicate-gpu", "version-mismatch", "bootstrap-nranks-mismatch",
                         "connect-failed", "bootstrap-duplicate-rank"}) {
    JobSketch job(4, {});
    for (const int r : {0, 1, 2}) job.Log(r, EventKind::init_started);
    job.Log(3, EventKind::nccl_warning).Make<Warning>().id = id;
    EXPECT_FALSE(JudgedCase(job).Fires("init-rank-missing")) << id;
  }
}

void KnockInVain(JobSketch& job, int32_t rank) {
  job.Say(rank, EventKind::store_unreachable).Make<StoreUnreachable>().address = "10.0.0.1:29500";
}

TEST(InitRankMissing, RankZeroThatNeverCameLeavesAllOthersWithoutAStore) {
  for (const int32_t world : {3, 4, 64}) {
    JobSketch job(world, {});
    job.Say(0, EventKind::progress);
    for (const int32_t r : job.AllBut({0})) KnockInVain(job, r);
    const Diagnosis verdict = JudgedCase(job).Verdict();
    EXPECT_EQ(verdict.cause, "init-rank-missing") << world;
    EXPECT_EQ(verdict.ranks, Ranks({0})) << world;
  }
}

// Rank 1 waits for the communicator that rank 0 makes at its first collective.
JobSketch WaitForCreator(bool with_agent) {
  JobSketch job(4, {});
  Event& wait = job.Say(1, EventKind::store_wait_timeout);
  wait.peer = Rank{0};
  wait.Make<StoreWait>().timeout_ms = 12'000;
  for (int32_t r = 0; r < 4; ++r) {
    Event& end = job.Say(r, EventKind::process_exited);
    end.Make<ProcessEnd>().code = r == 1 ? 1 : -15;
    if (with_agent) end.Make<ProcessEnd>().first_failure = r == 1;
  }
  return job;
}

TEST(InitRankMissing, WhoCreatesNoCommunicatorUnderTorchrunHasNotComeSoFar) {
  JobSketch job = WaitForCreator(true), alone = WaitForCreator(false), failed = WaitForCreator(true);
  const Finding finding = JudgedCase(job).Only("init-rank-missing");
  EXPECT_EQ(finding.ranks, Ranks({0}));
  EXPECT_EQ(finding.affected_ranks, Ranks({1}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
  // Started otherwise rank 0 runs the store and may itself wait for somebody in there.
  EXPECT_FALSE(JudgedCase(alone).Fires("init-rank-missing"));
  // It failed: why, it says itself.
  failed.Say(0, EventKind::exception).Make<Raised>().type = "ValueError";
  EXPECT_FALSE(JudgedCase(failed).Fires("init-rank-missing"));
}

TEST(InitRankMissing, AStoreThatNobodyReachesIsNoMissingRankWithoutAFileOfRankZero) {
  JobSketch job(4, {});
  for (const int32_t r : {1, 2, 3}) KnockInVain(job, r);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "init-unreachable");
  EXPECT_TRUE(verdict.ranks.empty());
}

TEST(InitRankMissing, WhoKnocksAtAnotherDoorIsLeftToItsOwnCause) {
  // Rank 2 has another port; the others count three of four.
  JobSketch job(4, {});
  for (const int32_t r : {0, 1, 3}) CountWhoCame(job, r, 3, 4);
  KnockInVain(job, 2);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "init-unreachable");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

// init-no-interface

TEST_P(SetUpOf, TheRankWithoutAnInterfaceIsNamedWithTheSetting) {
  const auto [world, rank, rounds] = GetParam();
  JobSketch job(world, {});
  Event& setting = job.Log(rank, EventKind::environment);
  setting.Make<EnvironmentSetting>().name = "NCCL_SOCKET_IFNAME";
  setting.Make<EnvironmentSetting>().value = "ens9";
  job.Log(rank, EventKind::nccl_warning).Make<Warning>().id = "socket-no-interface";
  for (const int32_t r : job.AllBut({rank})) job.Log(r, EventKind::init_started);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("init-no-interface");
  EXPECT_EQ(finding.ranks, Ranks({rank}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(finding.affected_ranks.size(), static_cast<size_t>(world - 1));
  EXPECT_NE(finding.headline.find("NCCL_SOCKET_IFNAME=ens9"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "init-no-interface");
  EXPECT_EQ(judged.Verdict().ranks, Ranks({rank}));
}

TEST(InitNoInterface, IsToldByTheExceptionToo) {
  JobSketch job(4, {});
  Event& error = job.Say(2, EventKind::exception);
  error.Make<Raised>().type = "torch.distributed.DistBackendError";
  error.text = "NCCL error in: x, internal error - Last error: Bootstrap : no socket interface found";
  EXPECT_EQ(JudgedCase(job).Only("init-no-interface").ranks, Ranks({2}));
}

TEST(InitNoInterface, OtherWarningsAreNoneOfItsBusiness) {
  JobSketch job(4, {});
  job.Log(1, EventKind::nccl_warning).Make<Warning>().id = "connect-failed";
  job.Log(1, EventKind::no_device).Make<NetworkName>().name = "IB";
  job.Log(2, EventKind::interface_used).Make<NetworkDevice>().name = "eth0";
  EXPECT_FALSE(JudgedCase(job).Fires("init-no-interface"));
}

// init-unreachable

TEST_P(SetUpOf, ARankThatAloneCannotConnectHasABrokenWayOut) {
  const auto [world, rank, rounds] = GetParam();
  JobSketch job(world, {});
  Event& warning = job.Log(rank, EventKind::nccl_warning);
  warning.Make<Warning>().id = "connect-failed";
  warning.text = "socketStartConnect: Connect to 10.0.0.1<4> failed : No route to host";
  job.GiveOutputs();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("init-unreachable");
  EXPECT_EQ(finding.ranks, Ranks({rank}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(finding.confidence, Confidence::likely);
  EXPECT_EQ(judged.Verdict().cause, "init-unreachable");
}

TEST(InitUnreachable, ManyThatCannotReachOneAddressAreNotBlamed) {
  JobSketch job(8, {});
  for (const int r : {1, 2, 3, 4}) job.Log(r, EventKind::nccl_warning).Make<Warning>().id = "connect-failed";
  const Finding finding = JudgedCase(job).Only("init-unreachable");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.affected_ranks, Ranks({1, 2, 3, 4}));
  EXPECT_EQ(finding.confidence, Confidence::possible);
}

TEST(InitUnreachable, AStoreThatCannotBeReachedCountsAsWell) {
  JobSketch job(4, {});
  Event& store = job.Say(3, EventKind::store_unreachable);
  store.Make<StoreUnreachable>().address = "10.0.0.1:29500";
  job.GiveOutputs();
  EXPECT_EQ(JudgedCase(job).Only("init-unreachable").ranks, Ranks({3}));
}

TEST(InitUnreachable, ANameOfDigitsAloneIsTakenForAnAddress) {
  const auto headline = [](std::string address) {
    JobSketch job(4, {});
    job.Say(3, EventKind::store_unreachable).Make<StoreUnreachable>().address = std::move(address);
    job.GiveOutputs();
    return JudgedCase(job).Only("init-unreachable").headline;
  };
  EXPECT_NE(headline("5120347:40217").find("here 0.78.33.91"), std::string::npos) << headline("5120347:40217");
  EXPECT_EQ(headline("10.0.0.1:29500").find("digits"), std::string::npos);
  EXPECT_EQ(headline("99999999999:29500").find("digits"), std::string::npos);
}

TEST(PortInUse, WhoseOwnPortIsTakenIsToBlame) {
  JobSketch job(4, {});
  job.Say(0, EventKind::port_in_use).Make<PortTaken>().port = 29500;
  for (const int r : {1, 2, 3})
    job.Say(r, EventKind::store_unreachable).Make<StoreUnreachable>().address = "10.0.0.1:29500";
  job.GiveOutputs();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("port-in-use");
  EXPECT_EQ(finding.ranks, Ranks({0}));
  EXPECT_EQ(finding.affected_ranks, Ranks({1, 2, 3}));
  EXPECT_EQ(finding.confidence, Confidence::certain);
  EXPECT_NE(finding.headline.find("port 29500 is already in use"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "port-in-use");
}

// The tail of a log holds lines of a few ranks: those whose lines are not here may have reported the same.
TEST(InitUnreachable, WhoIsNotHeardMayComplainAsWell) {
  JobSketch job(8, {});
  job.Say(5, EventKind::connect_failed);
  for (const int r : {4, 6}) job.Say(r, EventKind::progress);
  const Finding finding = JudgedCase(job).Only("init-unreachable");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.affected_ranks, Ranks({5}));
}

TEST(InitUnreachable, TheOnlyOneWithFilesIsNotTheOnlyOneThatComplains) {
  JobSketch job(4, {});
  job.Say(2, EventKind::store_unreachable).Make<StoreUnreachable>().address = "10.0.0.1:29500";
  const Finding finding = JudgedCase(job).Only("init-unreachable");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.status, Status::undetermined);
}

TEST(InitUnreachable, AfterTheFirstCollectiveAFailedConnectIsAConsequence) {
  JobSketch job(4);
  job.Rounds(2);
  job.Log(1, EventKind::nccl_warning).Make<Warning>().id = "connect-failed";
  EXPECT_FALSE(JudgedCase(job).Fires("init-unreachable"));
}

TEST(InitUnreachable, ARetriedConnectIsNothing) {
  JobSketch job(4, {});
  job.Log(1, EventKind::nccl_warning).Make<Warning>().id = "connect-retry";
  EXPECT_FALSE(JudgedCase(job).Fires("init-unreachable"));
}

// init-mismatch

TEST(InitMismatch, TwoRanksOnOneGpuAreBothNamed) {
  JobSketch job(4, {});
  Event& warning = job.Log(2, EventKind::nccl_warning);
  warning.Make<Warning>().id = "duplicate-gpu";
  warning.ranks = Ranks({2, 3});
  const JudgedCase judged(job);
  const Finding finding = judged.Only("init-mismatch");
  EXPECT_EQ(finding.ranks, Ranks({2, 3}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(judged.Verdict().cause, "init-mismatch");
}

TEST(InitMismatch, TheRankWithAnotherWorldSizeIsNamedAndNotTheOneThatReportsIt) {
  JobSketch job(4, {});
  for (int r = 0; r < 4; ++r) {
    Event& started = job.Log(r, EventKind::init_started);
    started.comm = 77;
    started.Make<CommunicatorSetup>().ranks = r == 3 ? 5 : 4;
  }
  job.Log(0, EventKind::nccl_warning).Make<Warning>().id = "bootstrap-nranks-mismatch";
  EXPECT_EQ(JudgedCase(job).Only("init-mismatch").ranks, Ranks({3}));
}

TEST(InitMismatch, OfTwoRanksWithTwoWorldSizesNobodyIsBlamed) {
  JobSketch job(2, {});
  for (int r = 0; r < 2; ++r) {
    Event& started = job.Log(r, EventKind::init_started);
    started.comm = 77;
    started.Make<CommunicatorSetup>().ranks = 2 + r;
  }
  job.Log(0, EventKind::nccl_warning).Make<Warning>().id = "bootstrap-nranks-mismatch";
  EXPECT_TRUE(JudgedCase(job).Only("init-mismatch").ranks.empty());
}

TEST(InitMismatch, ATakenNumberIsReported) {
  JobSketch job(4, {});
  job.Log(1, EventKind::nccl_warning).Make<Warning>().id = "bootstrap-duplicate-rank";
  EXPECT_TRUE(JudgedCase(job).Fires("init-mismatch"));
}

TEST(InitMismatch, TheRootThatNoticesAnotherWorldSizeIsNotBlamed) {
  for (const int32_t odd : {0, 3}) {
    JobSketch job(4, {});
    for (int32_t r = 0; r < 4; ++r)
      job.Log(r, EventKind::init_started).Make<CommunicatorSetup>().ranks = r == odd ? 5 : 4;
    job.Log(0, EventKind::nccl_warning).Make<Warning>().id = "bootstrap-nranks-mismatch";
    EXPECT_EQ(JudgedCase(job).Only("init-mismatch").ranks, Ranks({odd}));
  }
  JobSketch job(4, {});
  job.Log(0, EventKind::nccl_warning).Make<Warning>().id = "bootstrap-nranks-mismatch";
  EXPECT_TRUE(JudgedCase(job).Only("init-mismatch").ranks.empty());
}

TEST(InitMismatch, TheTwoNumbersOfAWarningAreRanksOfTheWholeJobsCommunicatorOnly) {
  for (const int64_t size : {4, 2}) {
    JobSketch job(4, {});
    job.Log(3, EventKind::init_started).Make<CommunicatorSetup>().ranks = size;
    Event& warning = job.Log(3, EventKind::nccl_warning);
    warning.Make<Warning>().id = "duplicate-gpu";
    warning.group_rank = {1};
    warning.peer_group_rank = {0};
    EXPECT_EQ(JudgedCase(job).Verdict().ranks, size == 4 ? Ranks({0, 1}) : Ranks({}));
  }
}

void RunVersion(JobSketch& job, int32_t rank, const char* version) {
  job.Log(rank, EventKind::nccl_version).Make<Version>().number = version;
}

TEST(EnvironmentDiffers, ARankWithAnotherVersionIsAWarningAsLongAsTheJobRuns) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(10);
  job.FinishAll();
  for (int r = 0; r < 8; ++r) RunVersion(job, r, r == 5 ? "2.19.3+cuda12.2" : "2.21.5+cuda12.4");
  const Finding finding = JudgedCase(job).Only("environment-differs");
  EXPECT_EQ(finding.ranks, Ranks({5}));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.status, Status::degraded);
}

TEST(EnvironmentDiffers, OneVersionInTwoSpellingsIsNoMismatch) {
  JobSketch job(2, {CallSource::nccl_log});
  RunVersion(job, 0, "2.21.5+cuda12.4");
  RunVersion(job, 1, "2.21.5");
  EXPECT_FALSE(JudgedCase(job).Fires("environment-differs"));
}

TEST(EnvironmentDiffers, TheNumberOfVersionLinesIsNoMajority) {
  // Rank 0 prints its version for each of its communicators, in its log and in its dump.
  JobSketch job(4, {CallSource::nccl_log});
  for (int i = 0; i < 6; ++i) RunVersion(job, 0, "2.19.3");
  for (const int r : {1, 2, 3}) RunVersion(job, r, "2.21.5");
  EXPECT_EQ(JudgedCase(job).Only("environment-differs").ranks, Ranks({0}));
}

TEST(EnvironmentDiffers, OfTwoRanksWithTwoVersionsNobodyIsBlamed) {
  JobSketch job(2, {CallSource::nccl_log});
  RunVersion(job, 0, "2.19.3");
  RunVersion(job, 1, "2.21.5");
  EXPECT_TRUE(JudgedCase(job).Only("environment-differs").ranks.empty());
}

TEST(InitNoInterface, OfGlooTheAdviceIsGloosAndNamesTheInterface) {
  JobSketch job(4, {});
  Event& error = job.Say(2, EventKind::exception);
  error.Make<Raised>().type = "RuntimeError";
  error.Make<Raised>().about = ErrorObject{"ens7"};
  error.Set(Meaning::no_interface);
  const Finding finding = JudgedCase(job).Only("init-no-interface");
  EXPECT_EQ(finding.headline, "gloo found no address for the interface ens7 on rank 2");
  ASSERT_EQ(finding.fix.size(), 2u);
  EXPECT_NE(finding.fix[0].find("ip -br addr show ens7"), std::string::npos) << finding.fix[0];
  EXPECT_NE(finding.fix[1].find("GLOO_SOCKET_IFNAME"), std::string::npos) << finding.fix[1];
  JobSketch of_nccl(4, {});
  of_nccl.Log(2, EventKind::nccl_warning).Make<Warning>().id = "socket-no-interface";
  EXPECT_EQ(JudgedCase(of_nccl).Only("init-no-interface").headline.find("gloo"), std::string::npos);
}

TEST(InitMismatch, WhatTheLineSaysOfVersionsIsToldAndNotAskedFor) {
  JobSketch job(16, {});
  Event& warning = job.Log(0, EventKind::nccl_warning);
  warning.Make<Warning>().id = "version-mismatch";
  warning.text = "Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21803";
  warning.group_rank = GroupRank{0};
  warning.peer_group_rank = GroupRank{8};
  const RuleAnswer answer = JudgedCase(job).Ask("init-mismatch");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.findings[0].headline, "rank 0 runs NCCL 2.20.5 and rank 8 runs 2.18.3, so setup failed");
  EXPECT_TRUE(answer.findings[0].ranks.empty());
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_EQ(answer.open[0].question, "Which of the two versions do the other ranks run?");
}

TEST(InitUnreachable, AReasonThatNoLineGivesIsNotGuessed) {
  JobSketch job(4, {});
  job.Say(1, EventKind::store_unreachable).Make<StoreUnreachable>();
  job.Say(2, EventKind::store_unreachable).Make<StoreUnreachable>();
  const std::string untold = JudgedCase(job).Only("init-unreachable").headline;
  EXPECT_EQ(untold.find("answer"), std::string::npos) << untold;
  EXPECT_NE(untold.find("do not say why"), std::string::npos) << untold;
  JobSketch told(4, {});
  for (const int r : {1, 2})
    told.Say(r, EventKind::store_unreachable).Make<StoreUnreachable>() = {"10.9.8.7:29500", 60000};
  const std::string timed = JudgedCase(told).Only("init-unreachable").headline;
  EXPECT_NE(timed.find("no connection within 60 s"), std::string::npos) << timed;
}

TEST(PortInUse, AServerOfTheProgramHasAPortOfItsOwn) {
  for (const bool of_setup : {false, true}) {
    JobSketch job(2, {});
    job.GiveOutputs();
    Event& taken = job.Say(1, EventKind::port_in_use);
    const SourceRef source = taken.source;
    Event& error = job.Say(1, EventKind::exception);
    error.source = source;
    error.text = "[Errno 98] Address already in use";
    auto& raised = error.Make<Raised>();
    raised.type = "OSError";
    raised.place = {"serve_metrics", "/srv/train.py", 31};
    if (of_setup) raised.during = Activity::setup;
    const Finding finding = JudgedCase(job).Only("port-in-use");
    EXPECT_EQ(finding.headline.ends_with(" in serve_metrics (train.py:31)"), !of_setup) << finding.headline;
    EXPECT_EQ(finding.fix[1].find("--standalone") != std::string::npos, of_setup) << finding.fix[1];
  }
}

}  // namespace
}  // namespace tacet
