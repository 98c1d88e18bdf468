// SPDX-License-Identifier: Apache-2.0
#include "preflight/preflight_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "preflight/coordinator.h"

namespace tacet {
namespace {

using Names = std::vector<std::string>;

PreflightHost Host(int i) {
  PreflightHost host;
  host.name = "n" + std::to_string(i);
  host.ranks = {i};
  host.address = "10.0.0." + std::to_string(i + 1);
  host.port = 40000;
  host.clock_ms = 0;
  host.facts.values = {{"host", host.name},        {"boot_id", "b" + host.name}, {"tacet", "1"},
                       {"nccl", "2.27.3"},         {"memlock", "unlimited"},     {"shm_free", "8000000000"},
                       {"shm_total", "8000000000"}};
  host.facts.interfaces.push_back({"eth0", {host.address}, 9000, 100000, true});
  host.loopback_bytes_per_s = 6e9;
  return host;
}

PreflightEvidence Cluster(int count, double bytes_per_s = 5e9) {
  PreflightEvidence evidence;
  evidence.size = count;
  evidence.tried_connections = true;
  for (int i = 0; i < count; ++i) evidence.hosts.push_back(Host(i));
  for (size_t from = 0; from < evidence.hosts.size(); ++from)
    for (size_t to = 0; to < evidence.hosts.size(); ++to)
      if (from != to) evidence.links.push_back({from, to, "", 20, bytes_per_s, true, true, true, false});
  return evidence;
}

const PreflightCheck* Failure(const PreflightReport& report, std::string_view id) {
  for (const PreflightCheck& check : report.checks)
    if (check.id == id && check.level == CheckLevel::fail) return &check;
  return nullptr;
}

void ExpectFailure(PreflightEvidence evidence, std::string_view id, const Names& hosts) {
  const PreflightReport report = JudgePreflight(std::move(evidence));
  EXPECT_EQ(report.verdict, PreflightVerdict::no_go);
  const PreflightCheck* check = Failure(report, id);
  ASSERT_NE(check, nullptr) << id;
  EXPECT_EQ(check->hosts, hosts) << check->says;
  EXPECT_FALSE(check->advice.empty());
}

TEST(PreflightJudge, EqualHostsAreAGo) {
  for (const int count : {1, 2, 5, 40}) {
    const PreflightReport report = JudgePreflight(Cluster(count));
    EXPECT_EQ(report.verdict, PreflightVerdict::go) << report.checks.front().says;
  }
}

TEST(PreflightJudge, LinksOfHealthyHostsVary) {
  PreflightEvidence evidence = Cluster(4);
  for (size_t i = 0; i < evidence.links.size(); ++i) evidence.links[i].bytes_per_s *= i % 3 == 0 ? 0.5 : 1;
  EXPECT_EQ(JudgePreflight(evidence).verdict, PreflightVerdict::go);
}

TEST(PreflightJudge, AHostThatSendsSlowlyToAllIsNamedAndNotItsPartners) {
  PreflightEvidence evidence = Cluster(5);
  for (LinkMeasurement& link : evidence.links)
    if (link.from == 3) link.bytes_per_s = 1e8;
  ExpectFailure(evidence, "bandwidth", {"n3"});
}

TEST(PreflightJudge, AHostThatWasOnlyDisturbedIsForgivenByTheSecondLook) {
  PreflightEvidence evidence = Cluster(5);
  for (LinkMeasurement& link : evidence.links)
    if (link.from == 3) link.bytes_per_s = 1e8;
  evidence.links.push_back({3, 0, "", 20, 4.8e9, false, false, false, true});
  EXPECT_EQ(JudgePreflight(evidence).verdict, PreflightVerdict::go);
}

TEST(PreflightJudge, TwoSlowHostsAreHeldAgainstWhatTheirLinksPromise) {
  ExpectFailure(Cluster(2, 2e8), "bandwidth", {"n0", "n1"});
  EXPECT_EQ(JudgePreflight(Cluster(2, 3e9)).verdict, PreflightVerdict::go);
}

TEST(PreflightJudge, AnInterfaceThatNegotiatedLessIsNamed) {
  PreflightEvidence evidence = Cluster(3);
  evidence.hosts[2].facts.interfaces[0].speed_mbps = 25000;
  ExpectFailure(evidence, "link-rate", {"n2"});
}

TEST(PreflightJudge, OfTwoHostsThatDifferBothAreNamed) {
  PreflightEvidence evidence = Cluster(2);
  evidence.hosts[1].facts.values["nccl"] = "2.26.2";
  ExpectFailure(evidence, "nccl", {"n1", "n0"});
}

TEST(PreflightJudge, AnotherKernelIsOnlyAWarning) {
  PreflightEvidence evidence = Cluster(3);
  for (PreflightHost& host : evidence.hosts) host.facts.values["kernel"] = host.name == "n1" ? "6.1" : "6.8";
  const PreflightReport report = JudgePreflight(evidence);
  EXPECT_EQ(report.verdict, PreflightVerdict::go);
  EXPECT_EQ(report.checks[0].level, CheckLevel::warn);
  EXPECT_EQ(report.checks[0].hosts, Names{"n1"});
}

TEST(PreflightJudge, AFailedConnectionNamesTheHostThatIsInMostOfThem) {
  PreflightEvidence evidence = Cluster(4);
  for (const size_t from : {0, 1, 3}) evidence.failed.push_back({from, 2, "timed out"});
  ExpectFailure(evidence, "connections", {"n2"});
}

TEST(PreflightJudge, PacketsOfFullSizeThatGetLostNameTheirHost) {
  PreflightEvidence evidence = Cluster(4);
  for (LinkMeasurement& link : evidence.links) link.large = link.to != 1 && link.from != 1;
  ExpectFailure(evidence, "mtu", {"n1"});
  // Where not even small datagrams arrive, UDP is filtered, which says nothing about sizes.
  for (LinkMeasurement& link : evidence.links) link.small = link.large;
  EXPECT_EQ(JudgePreflight(evidence).verdict, PreflightVerdict::go);
}

TEST(PreflightJudge, LockedMemoryMattersWithRdmaOrWhereHostsDiffer) {
  PreflightEvidence evidence = Cluster(3);
  for (PreflightHost& host : evidence.hosts) host.facts.values["memlock"] = "8388608";
  EXPECT_EQ(JudgePreflight(evidence).verdict, PreflightVerdict::go);
  for (PreflightHost& host : evidence.hosts) host.facts.values["rdma_ports"] = "8 x InfiniBand 400 Gb/sec (4X NDR)";
  ExpectFailure(evidence, "locked-memory", {"n0", "n1", "n2"});
  PreflightEvidence other = Cluster(3);
  other.hosts[1].facts.values["memlock"] = "65536";
  ExpectFailure(other, "locked-memory", {"n1"});
}

TEST(PreflightJudge, TheClockOfTheOddHostIsNamedAlsoWhereItIsRankZeros) {
  PreflightEvidence evidence = Cluster(4);
  for (size_t i = 1; i < 4; ++i) evidence.hosts[i].clock_ms = 90'000;
  ExpectFailure(evidence, "clock", {"n0"});
}

TEST(PreflightJudge, ManyRanksNeedMoreSharedMemory) {
  PreflightEvidence evidence = Cluster(2);
  evidence.hosts[0].facts.values["shm_free"] = std::to_string(128 << 20);
  EXPECT_EQ(JudgePreflight(evidence).verdict, PreflightVerdict::go);
  evidence.hosts[0].ranks = {0, 1, 2, 3, 4, 5, 6, 7};
  ExpectFailure(evidence, "shared-memory", {"n0"});
}

TEST(PreflightJudge, WhatNoHostHasIsCalledUnchecked) {
  const auto find = [](const PreflightReport& report, std::string_view id) {
    return *std::find_if(report.checks.begin(), report.checks.end(),
                         [&](const PreflightCheck& check) { return check.id == id; });
  };
  PreflightEvidence evidence = Cluster(1);
  evidence.hosts[0].facts.values["port_range"] = "32768\t60999";
  PreflightReport report = JudgePreflight(evidence);
  EXPECT_EQ(report.verdict, PreflightVerdict::go);
  EXPECT_EQ(find(report, "gpus").level, CheckLevel::skipped);
  EXPECT_EQ(find(report, "gpus").says, "nvidia-smi was not found, so GPUs were not checked");
  EXPECT_EQ(find(report, "pytorch").level, CheckLevel::skipped);
  EXPECT_EQ(find(report, "port-range").says, "32768 to 60999");
  evidence.hosts[0].facts.values["gpus"] = "8 x NVIDIA H100";
  evidence.hosts[0].facts.values["torch"] = "2.8.0";
  report = JudgePreflight(evidence);
  EXPECT_EQ(find(report, "gpus").level, CheckLevel::ok);
  EXPECT_EQ(find(report, "pytorch").level, CheckLevel::ok);
}

TEST(PreflightJudge, AGoSaysWhatWasNotChecked) {
  PreflightEvidence evidence = Cluster(1);
  EXPECT_TRUE(RenderPreflightText(JudgePreflight(evidence), false, 100)
                  .starts_with("GO, but PyTorch and GPUs were not checked  ("));
  evidence.hosts[0].facts.values["gpus"] = "8 x NVIDIA H100";
  EXPECT_TRUE(
      RenderPreflightText(JudgePreflight(evidence), false, 100).starts_with("GO, but PyTorch was not checked  ("));
  evidence.hosts[0].facts.values["torch"] = "2.8.0";
  EXPECT_TRUE(RenderPreflightText(JudgePreflight(evidence), false, 100).starts_with("GO  ("));
}

TEST(PreflightJudge, PyTorchThatNobodyLookedForIsNotMissing) {
  PreflightEvidence evidence = Cluster(1);
  evidence.hosts[0].facts.values[kPythonSkipped] = "1";
  const std::string text = RenderPreflightText(JudgePreflight(evidence), false, 100);
  EXPECT_NE(text.find("pytorch: PyTorch was not checked (--python none)"), std::string::npos) << text;
  EXPECT_EQ(text.find("no PyTorch was found"), std::string::npos);
}

TEST(PreflightJudge, RanksAreListedInWords) {
  PreflightEvidence evidence = Cluster(1);
  evidence.size = 3;
  evidence.missing_ranks = {1, 2};
  const std::string text = RenderPreflightText(JudgePreflight(evidence), false, 100);
  EXPECT_NE(text.find("ranks 1 and 2 of 3 did not join"), std::string::npos) << text;
}

TEST(PreflightJudge, NobodyThereIsNotAGo) {
  PreflightEvidence evidence;
  evidence.size = 2;
  EXPECT_NE(JudgePreflight(evidence).verdict, PreflightVerdict::go);
}

TEST(PreflightJudge, AHostWhoseGpusAreSlowerThanThoseOfOthersIsNamed) {
  PreflightEvidence evidence = Cluster(4);
  for (PreflightHost& host : evidence.hosts) host.gpus = GpuMeasurement{"", 30, 3.4e11};
  evidence.hosts[3].gpus->bus_bytes_per_s = 3.2e11;
  EXPECT_EQ(JudgePreflight(evidence).verdict, PreflightVerdict::go);
  evidence.hosts[2].gpus->bus_bytes_per_s = 0.4e11;
  ExpectFailure(evidence, "gpu-all-reduce", {"n2"});
}

TEST(PairRounds, EverybodyMeetsEverybodyOnceInDisjointPairs) {
  for (const size_t hosts : {2, 3, 4, 7, 8, 33}) {
    std::vector<std::pair<size_t, size_t>> met;
    for (const auto& round : PairRounds(hosts, 1000)) {
      std::vector<size_t> busy;
      for (const auto& [a, b] : round) {
        met.emplace_back(std::min(a, b), std::max(a, b));
        busy.push_back(a);
        busy.push_back(b);
      }
      std::sort(busy.begin(), busy.end());
      EXPECT_EQ(std::adjacent_find(busy.begin(), busy.end()), busy.end()) << hosts;
    }
    std::sort(met.begin(), met.end());
    EXPECT_EQ(std::adjacent_find(met.begin(), met.end()), met.end()) << hosts;
    EXPECT_EQ(met.size(), hosts * (hosts - 1) / 2);
  }
  EXPECT_EQ(PairRounds(1000, 6).size(), 6u);
  EXPECT_TRUE(PairRounds(1, 6).empty());
}

TEST(SelectsInterface, ReadsListsAsNcclDoes) {
  EXPECT_TRUE(SelectsInterface("eth", "eth0"));
  EXPECT_FALSE(SelectsInterface("=eth", "eth0"));
  EXPECT_TRUE(SelectsInterface("=ib0,eth0", "eth0"));
  EXPECT_FALSE(SelectsInterface("^docker,lo", "docker0"));
  EXPECT_TRUE(SelectsInterface("^docker,lo", "eth0"));
}

}  // namespace
}  // namespace tacet
