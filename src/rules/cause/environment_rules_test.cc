// SPDX-License-Identifier: Apache-2.0
// Settings that slow the job down, and settings that differ between ranks.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

constexpr SketchedCall kBegun = {.state = CallState::started};

// A sketched job is on one host, unless NCCL counts more.
void CountTwoHosts(JobSketch& job) { job.Log(0, EventKind::node_count).Make<NodeCount>().nodes = 2; }

// environment-cripples

void Sets(JobSketch& job, int32_t rank, const char* name, const char* value) {
  Event& event = job.Log(rank, EventKind::environment);
  event.Make<EnvironmentSetting>().name = name;
  event.Make<EnvironmentSetting>().value = value;
}

class Crippling : public testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Settings, Crippling,
                         testing::Values(std::pair{"NCCL_P2P_DISABLE", "1"}, std::pair{"NCCL_P2P_DISABLE", "1."},
                                         std::pair{"NCCL_P2P_LEVEL", "LOC"}, std::pair{"NCCL_SHM_DISABLE", "1"},
                                         std::pair{"NCCL_IB_DISABLE", "1"}, std::pair{"NCCL_NET", "Socket"},
                                         std::pair{"NCCL_NET_GDR_LEVEL", "LOC"}, std::pair{"NCCL_ALGO", "Ring"},
                                         std::pair{"NCCL_PROTO", "LL"}, std::pair{"NCCL_MAX_NCHANNELS", "1"},
                                         std::pair{"NCCL_MAX_CTAS", "2"}, std::pair{"NCCL_MAX_NRINGS", "1"},
                                         std::pair{"NCCL_BUFFSIZE", "65536"}, std::pair{"NCCL_NTHREADS", "64"},
                                         std::pair{"NCCL_NVLS_ENABLE", "0"}, std::pair{"NCCL_CHECK_POINTERS", "1"},
                                         std::pair{"NCCL_CHECK_MODE", "DEBUG_GLOBAL"},
                                         std::pair{"NCCL_LAUNCH_MODE", "GROUP"}));

TEST_P(Crippling, IsAWarningThatNamesTheVariable) {
  JobSketch job(4, {CallSource::nccl_log});
  CountTwoHosts(job);
  job.Rounds(5);
  for (int r = 0; r < 4; ++r) Sets(job, r, GetParam().first, GetParam().second);
  job.FinishAll();
  const Finding finding = JudgedCase(job).Only("environment-cripples");
  EXPECT_EQ(finding.ranks, RankRange(0, 4));
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_NE(finding.headline.find(GetParam().first), std::string::npos);
}

TEST(EnvironmentCripples, WhereNothingIsLostIsToldForEachVariable) {
  for (const auto& [name, value, told, other] : {std::tuple{"NCCL_IB_DISABLE", "1", "no InfiniBand or RoCE", "one GPU"},
                                                 std::tuple{"NCCL_P2P_DISABLE", "1", "one GPU per host", "InfiniBand"},
                                                 std::tuple{"NCCL_ALGO", "Ring", "nccl-tests.", "nothing changes"}}) {
    JobSketch job(4, {CallSource::nccl_log});
    CountTwoHosts(job);
    job.Rounds(5);
    for (int r = 0; r < 4; ++r) Sets(job, r, name, value);
    job.FinishAll();
    const std::string fix = JudgedCase(job).Only("environment-cripples").fix.front();
    EXPECT_NE(fix.find(told), std::string::npos) << fix;
    EXPECT_EQ(fix.find(other), std::string::npos) << fix;
  }
}

TEST(EnvironmentCripples, HarmlessSettingsAreNothing) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int r = 0; r < 4; ++r) {
    for (const auto& [name, value] :
         {std::pair{"NCCL_DEBUG", "INFO"}, std::pair{"NCCL_P2P_DISABLE", "0"}, std::pair{"NCCL_IB_DISABLE", "0."},
          std::pair{"NCCL_SOCKET_IFNAME", "eth0"}, std::pair{"NCCL_MAX_NCHANNELS", "32"},
          std::pair{"NCCL_BUFFSIZE", "4194304"}, std::pair{"NCCL_NVLS_ENABLE", "1"}, std::pair{"NCCL_NET", "IB"},
          std::pair{"NCCL_P2P_LEVEL", "NVL"}, std::pair{"NCCL_NTHREADS", "512"}})
      Sets(job, r, name, value);
  }
  EXPECT_FALSE(JudgedCase(job).Fires("environment-cripples"));
}

TEST(EnvironmentDiffers, VariablesThatMustAgreeAndDoNotAreNamed) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(5);
  job.FinishAll();
  for (int r = 0; r < 8; ++r) Sets(job, r, "NCCL_BUFFSIZE", r == 6 ? "2097152" : "4194304");
  const Finding finding = JudgedCase(job).Only("environment-differs");
  EXPECT_EQ(finding.ranks, Ranks({6}));
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_NE(finding.headline.find("differs"), std::string::npos);
}

// Whatever a rank other than 0 prints, each prints for itself: those whose setup is done and that do not, have it not.
TEST(EnvironmentDiffers, ASettingOfOneRankIsNamedWithoutAFailure) {
  for (const int holder : {0, 2}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    for (int r = 0; r < 4; ++r) {
      Sets(job, r, "NCCL_SOCKET_IFNAME", "eth0");
      if (r == holder) Sets(job, r, "NCCL_PROTO", "Simple");
      job.Log(r, EventKind::init_completed);
    }
    const JudgedCase judged(job);
    EXPECT_EQ(judged.Fires("environment-differs"), holder == 2) << holder;
    if (holder != 2) continue;
    EXPECT_EQ(judged.Only("environment-differs").ranks, Ranks({2}));
    EXPECT_EQ(judged.Only("environment-differs").status, Status::degraded);
  }
}

TEST(EnvironmentDiffers, TheNumberOfLinesIsNoMajority) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int i = 0; i < 9; ++i) Sets(job, 0, "NCCL_BUFFSIZE", "2097152");
  for (const int r : {1, 2, 3}) Sets(job, r, "NCCL_BUFFSIZE", "4194304");
  EXPECT_EQ(JudgedCase(job).Only("environment-differs").ranks, Ranks({0}));
}

TEST(EnvironmentDiffers, OfTwoValuesHeldByEquallyManyNoneIsOdd) {
  JobSketch job(2, {CallSource::nccl_log});
  Sets(job, 0, "NCCL_BUFFSIZE", "2097152");
  Sets(job, 1, "NCCL_BUFFSIZE", "4194304");
  const Finding finding = JudgedCase(job).Only("environment-differs");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.headline.find("no rank"), std::string::npos) << finding.headline;
}

TEST(EnvironmentDiffers, TwoNetworksInASetupThatIsNotOver) {
  const auto job = [](std::string_view other, bool done) {
    JobSketch sketch(4, {CallSource::nccl_log});
    for (int r = 0; r < 4; ++r) {
      sketch.Log(r, EventKind::network).Make<NetworkName>().name = r < 2 ? "IB" : other;
      sketch.Log(r, EventKind::init_started);
      if (done) sketch.Log(r, EventKind::init_completed);
    }
    return sketch;
  };
  JobSketch open = job("Socket", false), done = job("Socket", true), plugin = job("IBext", false);
  EXPECT_EQ(JudgedCase(open).Only("environment-differs").severity, Severity::critical);
  EXPECT_FALSE(JudgedCase(done).Fires("environment-differs"));
  EXPECT_FALSE(JudgedCase(plugin).Fires("environment-differs"));
}

TEST(EnvironmentDiffers, AllSettingsThatDifferAreNamed) {
  JobSketch job(2, {CallSource::nccl_log});
  Sets(job, 0, "NCCL_ALGO", "Ring");
  Sets(job, 1, "NCCL_ALGO", "Tree");
  Sets(job, 0, "NCCL_PROTO", "Simple");
  Sets(job, 1, "NCCL_PROTO", "LL");
  const Finding finding = JudgedCase(job).Only("environment-differs");
  for (const char* name : {"NCCL_ALGO differs", "NCCL_PROTO differs"})
    EXPECT_NE(finding.headline.find(name), std::string::npos) << finding.headline;
  EXPECT_EQ(finding.evidence.size(), 4u);
}

TEST(EnvironmentCripples, ANetworkThatNobodyUsesCostsNothing) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.Log(0, EventKind::node_count).Make<NodeCount>().nodes = 1;
  for (int r = 0; r < 4; ++r) Sets(job, r, "NCCL_IB_DISABLE", "1");
  job.GiveOutputs();
  job.FinishAll();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("environment-cripples");
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(judged.Verdict().status, Status::healthy) << judged.Verdict().headline;
}

TEST(EnvironmentCripples, OnOneHostTheSettingsOfTheGpusStillCost) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Log(0, EventKind::node_count).Make<NodeCount>().nodes = 1;
  for (int r = 0; r < 4; ++r) {
    Sets(job, r, "NCCL_IB_DISABLE", "1");
    Sets(job, r, "NCCL_P2P_DISABLE", "1");
  }
  const RuleAnswer answer = JudgedCase(job).Ask("environment-cripples");
  ASSERT_EQ(answer.findings.size(), 2u);
  EXPECT_EQ(answer.findings[0].severity, Severity::warning);
  EXPECT_EQ(answer.findings[0].headline.find("NCCL_IB_DISABLE"), std::string::npos) << answer.findings[0].headline;
  EXPECT_EQ(answer.findings[1].severity, Severity::note);
}

TEST(EnvironmentCripples, YieldsToTheCauseOfAHang) {
  JobSketch job(4, {CallSource::nccl_log, CallSource::flight_recorder});
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, kBegun);
  job.Wait(600 * kSecondNs);
  for (int r = 0; r < 4; ++r) Sets(job, r, "NCCL_P2P_DISABLE", "1");
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "rank-stuck-on-host");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

// environment-mistake

TEST(EnvironmentMistake, AnOutdatedSettingIsANoteAndNeverTheVerdict) {
  JobSketch job(4, {CallSource::nccl_log});
  CountTwoHosts(job);
  job.Rounds(5);
  for (int r = 0; r < 4; ++r) Sets(job, r, "NCCL_IB_TIMEOUT", "14");
  job.GiveOutputs();
  job.FinishAll();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("environment-mistake");
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.headline.find("NCCL_IB_TIMEOUT=14"), std::string::npos);
  EXPECT_EQ(judged.Verdict().status, Status::healthy) << judged.Verdict().headline;
}

TEST(EnvironmentMistake, TodaysDefaultsAndOrdinarySettingsAreNothing) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int r = 0; r < 4; ++r)
    for (const auto& [name, value] : {std::pair{"NCCL_IB_TIMEOUT", "20"}, std::pair{"NCCL_DEBUG", "INFO"},
                                      std::pair{"NCCL_SOCKET_IFNAME", "eth0"}, std::pair{"NCCL_P2P_DISABLE", "1"}})
      Sets(job, r, name, value);
  EXPECT_FALSE(JudgedCase(job).Fires("environment-mistake"));
}

}  // namespace
}  // namespace tacet
