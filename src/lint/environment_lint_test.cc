// SPDX-License-Identifier: Apache-2.0
#include "lint/environment_lint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace tacet {
namespace {

using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

GivenEnvironment Process(const std::string& holder, Pairs pairs,
                         EnvironmentSource source = EnvironmentSource::process) {
  GivenEnvironment environment;
  environment.source = source;
  environment.holder = holder;
  uint32_t line = 0;
  for (const auto& [name, value] : pairs) environment.variables.push_back({name, value, ++line});
  return environment;
}

std::vector<LintFinding> Lint(const std::vector<GivenEnvironment>& environments, LintOptions options = {}) {
  return LintEnvironments(environments, options).findings;
}

const LintFinding* Find(const std::vector<LintFinding>& findings, LintKind kind, std::string_view name) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const LintFinding& finding) {
    return finding.kind == kind && finding.name == name;
  });
  return found != findings.end() ? &*found : nullptr;
}

struct OneCase {
  const char *name, *value;
  LintKind kind;
  const char* says;
};
class OneVariable : public testing::TestWithParam<OneCase> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, OneVariable,
    testing::Values(OneCase{"NCCL_TIMEOUT", "1800", LintKind::never_read, "timeout="},
                    OneCase{"NCCL_NVLINK_DISABLE", "1", LintKind::never_read, "NCCL_P2P_DISABLE"},
                    OneCase{"NCCL_IB_DISABEL", "1", LintKind::misspelt, "NCCL_IB_DISABLE"},
                    OneCase{"NCLL_DEBUG", "INFO", LintKind::misspelt, "NCCL_DEBUG"},
                    OneCase{"NCCL_BUFSIZE", "2MB", LintKind::misspelt, "NCCL_BUFFSIZE=2097152"},
                    OneCase{"NCCL_NET_GDR_LEVEL", "NEAR", LintKind::misread, "write LOC, PIX, PXB, PHB or SYS"},
                    OneCase{"NCCL_COFFEE_STRENGTH", "1", LintKind::unknown, "unset"},
                    OneCase{"TORCH_NCCL_COFFEE_STRENGTH", "1", LintKind::unknown, "unset"},
                    OneCase{"NCCL_IB_DISABLE", "true", LintKind::misread, "write 1 or 0"},
                    OneCase{"NCCL_BUFFSIZE", "8M", LintKind::misread, "write 8388608:"},
                    OneCase{"NCCL_BUFFSIZE", "8 lanes", LintKind::misread, "in digits"},
                    OneCase{"NCCL_BUFFSIZE", "99999999999G", LintKind::misread, "in digits"},
                    OneCase{"NCCL_IB_TC", "010", LintKind::misread, "octal"},
                    OneCase{"NCCL_P2P_DISABLE", "2", LintKind::misread, "exactly 1"},
                    OneCase{"NCCL_P2P_LEVEL", "pix", LintKind::misread, "PIX"},
                    OneCase{"NCCL_IB_TIMEOUT", "99999999999999999999999", LintKind::misread, "64 bits"},
                    OneCase{"NCCL_CROSS_NIC", "3", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_TC", "256", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_SL", "16", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_TIMEOUT", "-3", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_RETRY_CNT", "8", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_QPS_PER_CONNECTION", "0", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_QPS_PER_CONNECTION", "129", LintKind::misread, "range"},
                    OneCase{"NCCL_NCHANNELS_PER_NET_PEER", "0", LintKind::misread, "range"},
                    OneCase{"NCCL_SOCKET_NTHREADS", "32", LintKind::misread, "range"},
                    OneCase{"NCCL_NTHREADS", "1024", LintKind::misread, "range"},
                    OneCase{"NCCL_IB_TIMEOUT", "32", LintKind::risky, "unset"},
                    OneCase{"NCCL_ALGO", "Rings", LintKind::misread, "Ring"},
                    OneCase{"NCCL_ALGO", "CollNet", LintKind::misread, "CollNetDirect"},
                    OneCase{"NCCL_DEBUG", "DEBUG", LintKind::misread, "INFO"},
                    OneCase{"NCCL_DEBUG_SUBSYS", "INIT,COL", LintKind::misread, "COLL"},
                    OneCase{"TORCH_NCCL_BLOCKING_WAIT", "on", LintKind::misread, "write 1 or 0"},
                    OneCase{"TORCH_DISTRIBUTED_DEBUG", "FULL", LintKind::misread, "DETAIL"},
                    OneCase{"NCCL_SOCKET_IFNAME", "\"eth0\"", LintKind::stray_characters, "bare"},
                    OneCase{"NCCL_SOCKET_IFNAME", "eth0 ", LintKind::stray_characters, "bare"},
                    OneCase{"NCCL_IB_HCA", "mlx5_0, mlx5_2", LintKind::stray_characters, "commas"},
                    OneCase{"NCCL_LL_THRESHOLD", "0", LintKind::removed, "NCCL_PROTO"},
                    OneCase{"NCCL_WORK_FIFO_DEPTH", "65536", LintKind::removed, "NCCL_WORK_FIFO_BYTES"},
                    OneCase{"NCCL_MAX_NRINGS", "16", LintKind::renamed, "NCCL_MAX_NCHANNELS"},
                    OneCase{"NCCL_ASYNC_ERROR_HANDLING", "1", LintKind::renamed, "TORCH_NCCL_ASYNC_ERROR_HANDLING"},
                    OneCase{"NCCL_IB_TIMEOUT", "18", LintKind::old_default, "unset"},
                    OneCase{"NCCL_IB_GID_INDEX", "3", LintKind::old_default, "unset"},
                    OneCase{"NCCL_IB_DISABLE", "1", LintKind::slow, "unset"},
                    OneCase{"NCCL_IB_DISABLE", "0x1", LintKind::slow, "unset"},
                    OneCase{"NCCL_IB_TIMEOUT", "0", LintKind::risky, "unset"},
                    OneCase{"NCCL_PROTO", "LL128,Simple", LintKind::risky, "unset"},
                    OneCase{"NCCL_SOCKET_IFNAME", "docker0", LintKind::risky, "unset"},
                    OneCase{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", LintKind::risky, "unset"},
                    OneCase{"CUDA_LAUNCH_BLOCKING", "1", LintKind::debugging, "unset"},
                    OneCase{"NCCL_DEBUG_FILE", "/tmp/nccl.log", LintKind::shared_file, "%p"},
                    OneCase{"NCCL_DEBUG_FILE", "/tmp/nccl.%h.log", LintKind::shared_file, "%p"}));

TEST_P(OneVariable, IsFoundWithAdviceAndPlace) {
  const auto findings = Lint({Process("", {{GetParam().name, GetParam().value}}, EnvironmentSource::script)});
  const LintFinding* finding = Find(findings, GetParam().kind, GetParam().name);
  ASSERT_NE(finding, nullptr) << GetParam().name << " has " << findings.size() << " findings";
  EXPECT_NE(finding->advice.find(GetParam().says), std::string::npos) << finding->advice;
  EXPECT_EQ(finding->value, GetParam().value);
  ASSERT_EQ(finding->places.size(), 1u);
  EXPECT_EQ(finding->places[0].line, 1u);
}

TEST(EnvironmentLint, OrdinarySettingsAreNothing) {
  const auto findings = Lint({Process("", {{"NCCL_DEBUG", "INFO"},
                                           {"NCCL_DEBUG_SUBSYS", "INIT,NET"},
                                           {"NCCL_DEBUG_FILE", "nccl.%h.%p.log"},
                                           {"NCCL_SOCKET_IFNAME", "^docker,lo"},
                                           {"NCCL_IB_HCA", "=mlx5_0,mlx5_1"},
                                           {"NCCL_IB_QPS_PER_CONNECTION", "4"},
                                           {"NCCL_IB_TIMEOUT", "22"},
                                           {"NCCL_NET", "IB"},
                                           {"NCCL_CROSS_NIC", "0"},
                                           {"NCCL_IB_MERGE_NICS", "false"},
                                           {"NCCL_VERSION", "2.27.3-1"},
                                           {"NCCL_HOME", "/usr/local/nccl"},
                                           {"NCCL_FASTRAK_CTRL_DEV", "eth0"},
                                           {"TORCH_HOME", "/cache"},
                                           {"TORCH_CUDA_ARCH_LIST", "9.0"},
                                           {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"},
                                           {"TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"},
                                           {"TORCH_FR_BUFFER_SIZE", "2000"},
                                           {"UCX_SOMETHING_NEW", "y"},
                                           {"FI_CXI_NEW_OPTION", "1"},
                                           {"OMP_NUM_THREADS", "8"},
                                           {"CUDA_HOME", "/usr/local/cuda"},
                                           {"NO_PROXY", "localhost"},
                                           {"NODE_RANK", "0"},
                                           {"PATH", "/bin"}})});
  for (const LintFinding& finding : findings) ADD_FAILURE() << finding.headline;
}

TEST(EnvironmentLint, TheEndsOfARangeAreInIt) {
  for (const auto& [name, value] : {std::pair{"NCCL_CROSS_NIC", "0"},
                                    {"NCCL_CROSS_NIC", "1"},
                                    {"NCCL_IB_TC", "255"},
                                    {"NCCL_IB_TC", "106"},
                                    {"NCCL_IB_SL", "15"},
                                    {"NCCL_IB_SL", "0"},
                                    {"NCCL_IB_QPS_PER_CONNECTION", "16"},
                                    {"NCCL_NCHANNELS_PER_NET_PEER", "4"},
                                    {"NCCL_NCHANNELS_PER_NET_PEER", "-1"},
                                    {"NCCL_SOCKET_NTHREADS", "16"},
                                    {"NCCL_NSOCKS_PERTHREAD", "1"},
                                    {"NCCL_IB_PCI_RELAXED_ORDERING", "1"}})
    for (const LintFinding& finding : Lint({Process("", {{name, value}}, EnvironmentSource::script)}))
      if (finding.kind == LintKind::misread) ADD_FAILURE() << finding.headline;
}

TEST(EnvironmentLint, ARemovedVariableWorksInItsOwnRelease) {
  const GivenEnvironment given = Process("", {{"NCCL_WORK_FIFO_DEPTH", "65536"}}, EnvironmentSource::script);
  EXPECT_TRUE(Lint({given}, {.nccl = 22105}).empty());
  EXPECT_EQ(Lint({given}, {.nccl = 22203}).size(), 1u);
}

TEST(EnvironmentLint, AVariableOfALaterReleaseHasNoEffect) {
  const GivenEnvironment given = Process("", {{"NCCL_RAS_ADDR", "localhost:1"}}, EnvironmentSource::script);
  const auto findings = Lint({given}, {.nccl = 22105});
  ASSERT_NE(Find(findings, LintKind::too_new, "NCCL_RAS_ADDR"), nullptr);
  EXPECT_EQ(findings[0].since, "2.24");
  EXPECT_TRUE(Lint({given}, {.nccl = 22403}).empty());
}

TEST(EnvironmentLint, TheNetworkOfOneHostCostsNothing) {
  const GivenEnvironment given = Process("rank 0", {{"NCCL_SOCKET_IFNAME", "lo"}}, EnvironmentSource::log);
  EXPECT_TRUE(Lint({given}, {.hosts = 1}).empty());
  EXPECT_EQ(Lint({given}, {.hosts = 2}).size(), 1u);
}

TEST(EnvironmentLint, ARetryTimeIsToldAsATime) {
  const auto effect = [](Pairs pairs, std::string_view name) {
    for (const LintFinding& finding : Lint({Process("", pairs)}))
      if (finding.name == name) return finding.headline + "; " + finding.effect;
    return std::string("no finding");
  };
  const std::string minutes = effect({{"NCCL_IB_TIMEOUT", "24"}}, "NCCL_IB_TIMEOUT");
  EXPECT_NE(minutes.find("only after minutes"), std::string::npos) << minutes;
  EXPECT_NE(minutes.find("2^24 = 1.1 min (NCCL_IB_TIMEOUT), 7 times"), std::string::npos) << minutes;
  EXPECT_NE(minutes.find("after 9.2 min"), std::string::npos) << minutes;
  const std::string hours = effect({{"NCCL_IB_TIMEOUT", "31"}}, "NCCL_IB_TIMEOUT");
  EXPECT_NE(hours.find("only after hours"), std::string::npos) << hours;
  EXPECT_NE(hours.find("after 20 h"), std::string::npos) << hours;
  const std::string few = effect({{"NCCL_IB_TIMEOUT", "20"}, {"NCCL_IB_RETRY_CNT", "1"}}, "NCCL_IB_RETRY_CNT");
  EXPECT_NE(few.find("1 time (NCCL_IB_RETRY_CNT): a dead link is reported after 8.6 s"), std::string::npos) << few;
  // 0 never ends: no time to tell.
  EXPECT_EQ(effect({{"NCCL_IB_TIMEOUT", "0"}}, "NCCL_IB_TIMEOUT").find("at the earliest"), std::string::npos);
}

TEST(EnvironmentLint, FormerDefaultsAreTold) {
  const auto findings = Lint({Process("", {{"NCCL_IB_TIMEOUT", "18"}})});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].standard, "20");
  EXPECT_EQ(findings[0].earlier, "18 before 2.23, 14 before 2.14");
  const Variable* timeout = FindKnownVariable("NCCL_IB_TIMEOUT");
  ASSERT_NE(timeout, nullptr);
  EXPECT_EQ(DefaultOf(*timeout, 22205), "18");
  EXPECT_EQ(DefaultOf(*timeout, 21300), "14");
  EXPECT_EQ(DefaultOf(*timeout, 22300), "20");
}

TEST(EnvironmentLint, RanksThatDifferAreNamedAndTheOddOneFirst) {
  std::vector<GivenEnvironment> ranks;
  for (int r = 0; r < 8; ++r)
    ranks.push_back(Process("rank " + std::to_string(r),
                            {{"NCCL_CROSS_NIC", r == 6 ? "1" : "0"}, {"NCCL_HOSTID", r == 1 ? "a" : "b"}}));
  const auto findings = Lint(ranks);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, LintKind::differs);
  EXPECT_NE(findings[0].headline.find("1 on rank 6; 0 on rank 0"), std::string::npos) << findings[0].headline;
}

TEST(EnvironmentLint, AHostThatNcclHostidSplitsIsNoted) {
  std::vector<GivenEnvironment> ranks;
  for (int r = 0; r < 4; ++r) {
    const std::string id = "node" + std::to_string(r);
    ranks.push_back(Process("rank " + std::to_string(r), {{"NCCL_HOSTID", id.c_str()}, {"NCCL_SOCKET_IFNAME", "lo"}},
                            EnvironmentSource::log));
    ranks.back().host = "vm";
  }
  const auto findings = Lint(ranks, {.hosts = 1});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].name, "NCCL_HOSTID");
  EXPECT_EQ(findings[0].level, LintLevel::note);
  EXPECT_NE(findings[0].headline.find("as 4 hosts"), std::string::npos) << findings[0].headline;
  EXPECT_EQ(findings[1].name, "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(findings[1].level, LintLevel::note);
  EXPECT_EQ(findings[1].place_count, 4u);
}

TEST(EnvironmentLint, WhatIsAboutTheInsideOfAHostHasNoEffectOnALoneProcess) {
  const auto lint = [](bool own_id) {
    std::vector<GivenEnvironment> ranks;
    for (int r = 0; r < 2; ++r) {
      ranks.push_back(Process("rank " + std::to_string(r),
                              {{"NCCL_HOSTID", own_id && r == 1 ? "b" : "a"}, {"NCCL_P2P_DISABLE", "1"}},
                              EnvironmentSource::log));
      ranks.back().host = "vm";
    }
    return Lint(ranks);
  };
  EXPECT_NE(Find(lint(true), LintKind::no_effect, "NCCL_P2P_DISABLE"), nullptr);
  EXPECT_EQ(Find(lint(true), LintKind::slow, "NCCL_P2P_DISABLE"), nullptr);
  EXPECT_EQ(Find(lint(false), LintKind::no_effect, "NCCL_P2P_DISABLE"), nullptr);
  EXPECT_NE(Find(lint(false), LintKind::slow, "NCCL_P2P_DISABLE"), nullptr);
}

TEST(EnvironmentLint, AHostIdPerHostOrTheSameOnOneHostIsNothing) {
  std::vector<GivenEnvironment> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.push_back(Process("rank " + std::to_string(r), {{"NCCL_HOSTID", r < 2 ? "a" : "b"}}, EnvironmentSource::log));
    ranks.back().host = r < 2 ? "gpu1" : "gpu2";
  }
  EXPECT_TRUE(Lint(ranks).empty());
  for (GivenEnvironment& rank : ranks) rank.host = "localhost";
  EXPECT_TRUE(Lint(ranks).empty()) << "many machines have this name";
  for (GivenEnvironment& rank : ranks) rank.host.clear();
  EXPECT_TRUE(Lint(ranks).empty());
  for (size_t r = 0; r < ranks.size(); ++r) ranks[r].host = "gpu1", ranks[r].job = r / 2;
  EXPECT_TRUE(Lint(ranks).empty()) << "two jobs";
}

TEST(EnvironmentLint, AVariableThatOneProcessLacksDiffersToo) {
  const auto findings =
      Lint({Process("rank 0", {{"NCCL_CROSS_NIC", "0"}, {"PATH", "/bin"}}), Process("rank 1", {{"PATH", "/bin"}})});
  ASSERT_NE(Find(findings, LintKind::differs, "NCCL_CROSS_NIC"), nullptr);
  // A log holds only what NCCL has read so far.
  EXPECT_TRUE(Lint({Process("rank 0", {{"NCCL_CROSS_NIC", "0"}}, EnvironmentSource::log),
                    Process("rank 1", {{"NCCL_NET", "IB"}}, EnvironmentSource::log)})
                  .empty());
}

TEST(EnvironmentLint, AVariableOfSomeProcessesOfAHostIsNoted) {
  std::vector<GivenEnvironment> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.push_back(Process("rank " + std::to_string(r), {}, EnvironmentSource::log));
    ranks.back().host = "gpu1";
    ranks.back().setup_began = true;
  }
  ranks[1].variables.push_back({"NCCL_SOCKET_IFNAME", "ib7", 3});
  ranks[2].variables.push_back({"NCCL_IB_TIMEOUT", "22", 4});
  ranks[3].variables.push_back({"NCCL_HOSTID", "node3", 4});
  auto findings = Lint(ranks);
  ASSERT_EQ(findings.size(), 1u) << "the others are read later, or by ranks that connect over InfiniBand";
  EXPECT_EQ(findings[0].kind, LintKind::differs);
  EXPECT_EQ(findings[0].level, LintLevel::note);
  EXPECT_EQ(findings[0].headline,
            "NCCL_SOCKET_IFNAME is set on some processes of gpu1 only: rank 1 (ib7), not on rank 0, rank 2, rank 3");
  for (GivenEnvironment& rank : ranks) rank.setup_done = true;
  EXPECT_NE(Find(Lint(ranks), LintKind::differs, "NCCL_HOSTID"), nullptr);
  for (size_t r = 0; r < ranks.size(); ++r) ranks[r].host = "gpu" + std::to_string(r);
  EXPECT_TRUE(Lint(ranks).empty()) << "hosts may differ in the names of their interfaces";
  for (GivenEnvironment& rank : ranks) rank.host = "gpu1", rank.setup_began = rank.setup_done = false;
  EXPECT_TRUE(Lint(ranks).empty()) << "these logs may end before the variable is read";
}

TEST(EnvironmentLint, TheEnvironmentOverridesNcclConf) {
  const auto findings = Lint({Process("", {{"NCCL_IB_HCA", "mlx5_0"}, {"PATH", "/bin"}}),
                              Process("", {{"NCCL_IB_HCA", "mlx5_4"}}, EnvironmentSource::host_conf)});
  const LintFinding* finding = Find(findings, LintKind::overridden, "NCCL_IB_HCA");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->value, "mlx5_4");
  EXPECT_EQ(finding->level, LintLevel::note);
}

TEST(EnvironmentLint, SettingsThatSwitchEachOtherOffAreTold) {
  EXPECT_NE(Find(Lint({Process("", {{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5_0"}})}), LintKind::no_effect,
                 "NCCL_IB_HCA"),
            nullptr);
  EXPECT_NE(Find(Lint({Process("", {{"NCCL_DEBUG_SUBSYS", "NET"}, {"PATH", "/bin"}})}), LintKind::no_effect,
                 "NCCL_DEBUG_SUBSYS"),
            nullptr);
  EXPECT_NE(Find(Lint({Process("", {{"NCCL_INSPECTOR_ENABLE", "1"}, {"NCCL_PROFILER_PLUGIN", "x.so"}})}),
                 LintKind::no_effect, "NCCL_INSPECTOR_ENABLE"),
            nullptr);
  EXPECT_NE(Find(Lint({Process("", {{"NCCL_MIN_NCHANNELS", "16"}, {"NCCL_MAX_NCHANNELS", "8"}})}), LintKind::risky,
                 "NCCL_MIN_NCHANNELS"),
            nullptr);
}

TEST(EnvironmentLint, ALogFilePerRankIsNotShared) {
  EXPECT_TRUE(Lint({Process("rank 0", {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", "/tmp/0.log"}}),
                    Process("rank 1", {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", "/tmp/1.log"}})})
                  .empty());
}

TEST(EnvironmentLint, AThousandRanksGiveOneFinding) {
  std::vector<GivenEnvironment> ranks(1000, Process("rank", {{"NCCL_IB_DISABEL", "1"}}));
  const auto findings = Lint(ranks);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].place_count, 1000u);
  EXPECT_LE(findings[0].places.size(), 8u);
}

}  // namespace
}  // namespace tacet
