// SPDX-License-Identifier: Apache-2.0

#include <tuple>
// Paths that are set up wrongly: between GPUs, between adapter and memory, the NVSwitch fabric, the wrong interface,
// settings that differ, strangers, threads.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

Event Warned(std::string_view id, int64_t number = -1, NcclWarningRole role = NcclWarningRole::cause) {
  Event event;
  event.kind = EventKind::nccl_warning;
  auto& warning = event.Make<Warning>();
  warning.id = id;
  warning.number = number;
  warning.role = role;
  return event;
}

Event WarnedOf(std::string_view id, std::string object, NcclWarningRole role = NcclWarningRole::cause) {
  Event event = Warned(id, -1, role);
  event.Make<Warning>().object = std::move(object);
  return event;
}

Incident Processes(std::initializer_list<std::string> hosts) {
  Incident incident;
  int64_t pid = 100;
  for (const std::string& host : hosts) incident.processes.push_back({Rank{}, Certainty::none, host, pid++});
  return incident;
}

void Add(Incident& incident, uint32_t process, Event event) {
  event.speaker = process;
  incident.events.push_back(std::move(event));
}

void Add(Incident& incident, uint32_t process, EventKind kind, EventDetail detail) {
  Event event;
  event.kind = kind;
  event.detail = std::move(detail);
  Add(incident, process, std::move(event));
}

bool Speaks(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// p2p-broken

TEST(P2pBroken, ABufferThatCannotBeHandedOutIsOnlyLikely) {
  Incident incident = Processes({"gpu3"}), both = Processes({"gpu3"});
  Add(incident, 0, Warned("ipc-export-failed"));
  const Finding finding = JudgedCase(std::move(incident)).Only("p2p-broken");
  EXPECT_EQ(finding.confidence, Confidence::likely);
  EXPECT_EQ(finding.evidence[0].says, "a GPU buffer could not be shared with another process");
  Add(both, 0, Warned("ipc-export-failed"));
  Add(both, 0, Warned("p2p-peering-failed"));
  EXPECT_EQ(JudgedCase(std::move(both)).Only("p2p-broken").confidence, Confidence::certain);
}

TEST(P2pBroken, AFailedHandleNamesTheProcess) {
  Incident incident = Processes({"gpu3"});
  Add(incident, 0, Warned("p2p-peering-failed"));
  const JudgedCase judged(std::move(incident));
  EXPECT_TRUE(Speaks(judged.Only("p2p-broken").headline, "process 100 on gpu3"));
  EXPECT_EQ(judged.Verdict().cause, "p2p-broken");
  EXPECT_EQ(judged.Verdict().status, Status::crash);
}

TEST(P2pBroken, ARefusedGpuUnderAHangBlamesNobody) {
  JobSketch job(2);
  job.IssueAll({.state = CallState::started});
  job.Wait(600 * kSecondNs);
  job.TimeOut(0, 1);
  Event& fault = job.Tell(EventKind::iommu_fault);
  fault.Make<IommuFault>().pci = "0000:21:00.0";
  fault.rank = Rank{0};
  const Finding finding = JudgedCase(job).Only("p2p-broken");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.status, Status::hang);
}

TEST(P2pBroken, AFaultOfAnotherDeviceAndAChoiceAreNothing) {
  Incident incident = Processes({"gpu3"});
  Add(incident, 0, EventKind::iommu_fault, IommuFault{"0000:00:1f.2"});
  Add(incident, 0, Warned("p2p-disabled", -1, NcclWarningRole::notice));
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("p2p-broken"));
}

TEST(P2pBroken, OnAmdTheStepsAreAmdsAndTheMissingBootOptionComesFirst) {
  Incident incident = Processes({"mi250-3"});
  Add(incident, 0, Warned("p2p-peering-failed"));
  incident.events.back().maker = GpuMaker::amd;
  Event setting = Warned("rccl-host-setting", -1, NcclWarningRole::notice);
  setting.Make<Warning>().object = "iommu=pt";
  Add(incident, 0, setting);
  const Finding finding = JudgedCase(std::move(incident)).Only("p2p-broken");
  ASSERT_EQ(finding.evidence.size(), 2u);
  ASSERT_FALSE(finding.fix.empty());
  EXPECT_TRUE(Speaks(finding.fix.front(), "iommu=pt")) << finding.fix.front();
  for (const std::string& step : finding.fix) EXPECT_FALSE(Speaks(step, "nvidia-smi")) << step;
}

// rdma-broken

TEST(RdmaBroken, TellsTheKindsOfFailureApart) {
  for (const auto& [id, value, words] :
       {std::tuple{"ib-register-failed", 12, "memlock"}, std::tuple{"ib-register-failed", 14, "nvidia_peermem"},
        std::tuple{"ib-completion-error", 4, "local protection"},
        std::tuple{"ib-open-failed", -1, "cannot be opened"}}) {
    Incident incident = Processes({"gpu3"});
    Add(incident, 0, Warned(id, value));
    const JudgedCase judged(std::move(incident));
    EXPECT_TRUE(Speaks(judged.Only("rdma-broken").headline, words)) << judged.Only("rdma-broken").headline;
    EXPECT_EQ(judged.Verdict().cause, "rdma-broken");
    EXPECT_FALSE(judged.Fires("network-fault"));
  }
}

TEST(RdmaBroken, RetriesThatRanOutAreTheNetworks) {
  Incident incident = Processes({"gpu3"});
  Add(incident, 0, Warned("ib-completion-error", 12));
  const JudgedCase judged(std::move(incident));
  EXPECT_FALSE(judged.Fires("rdma-broken"));
  EXPECT_TRUE(judged.Fires("network-fault"));
}

TEST(RdmaBroken, AWarningAboutTheLimitAloneIsNothing) {
  Incident incident = Processes({"gpu3"});
  Add(incident, 0, EventKind::rdma_failed, RdmaFailure{RdmaFault::locked_memory, true});
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("rdma-broken"));
}

TEST(RdmaBroken, AnAdapterThatUcxLosesDegradesAJobWhoseEndIsUnknown) {
  RdmaFailure failure;
  failure.fault = RdmaFault::locked_memory;
  failure.may_go_on = true;
  Incident incident = Processes({"gpu3"});
  Add(incident, 0, EventKind::rdma_failed, failure);
  const Finding finding = JudgedCase(std::move(incident)).Only("rdma-broken");
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

TEST(RdmaBroken, IsCertainOfTheLimitOnlyWhereItIsTold) {
  Incident alone = Processes({"gpu3"}), limited = Processes({"gpu3"});
  for (Incident* incident : {&alone, &limited}) Add(*incident, 0, Warned("ib-register-failed", 12));
  Add(limited, 0, EventKind::rdma_failed, RdmaFailure{RdmaFault::locked_memory, true, "", 65536});
  const Finding guessed = JudgedCase(std::move(alone)).Only("rdma-broken");
  EXPECT_EQ(guessed.confidence, Confidence::likely);
  EXPECT_TRUE(Speaks(guessed.headline, "probably too low")) << guessed.headline;
  const Finding told = JudgedCase(std::move(limited)).Only("rdma-broken");
  EXPECT_EQ(told.confidence, Confidence::certain);
  EXPECT_TRUE(Speaks(told.headline, "too low, 64 KiB")) << told.headline;
}

TEST(RdmaBroken, AsksWhichRank) {
  Incident incident = Processes({"gpu3"});
  Add(incident, 0, Warned("ib-register-failed", 12));
  EXPECT_EQ(JudgedCase(std::move(incident)).Ask("rdma-broken").open.size(), 1u);
}

// fabric-manager-down

TEST(FabricManagerDown, Error802NeedsNoRank) {
  Incident incident = Processes({"dgx-08"});
  Add(incident, 0, Warned("fabric-not-ready", 802));
  const JudgedCase judged(std::move(incident));
  EXPECT_TRUE(Speaks(judged.Only("fabric-manager-down").headline, "error 802"));
  EXPECT_EQ(judged.Verdict().status, Status::crash);
  EXPECT_TRUE(judged.Ask("fabric-manager-down").open.empty()) << "the host is known";
}

TEST(FabricManagerDown, AFallbackAtInfoLevelIsNothing) {
  Incident incident = Processes({"dgx-08"});
  Add(incident, 0, Warned("nvls-bind-failed", 401, NcclWarningRole::notice));
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("fabric-manager-down"));
}

// wrong-interface

TEST(WrongInterface, ABridgeOfDockerBetweenHostsIsNamed) {
  Incident incident = Processes({"node-a", "node-b"});
  Add(incident, 0, EventKind::interface_used, NetworkDevice{"docker0", "172.17.0.1", DeviceUse::bootstrap});
  Add(incident, 1, EventKind::interface_used, NetworkDevice{"eth0", "10.0.3.5", DeviceUse::bootstrap});
  Event failed = WarnedOf("connect-failed", "172.17.0.1<41234>");
  Add(incident, 1, std::move(failed));
  const JudgedCase judged(std::move(incident));
  const Finding finding = judged.Only("wrong-interface");
  EXPECT_TRUE(Speaks(finding.headline, "process 100 on node-a uses docker0 (172.17.0.1)")) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "wrong-interface");
  EXPECT_EQ(judged.Verdict().status, Status::crash);
}

TEST(WrongInterface, TheTargetAloneTells) {
  Incident incident = Processes({"node-b"});
  Event failed = WarnedOf("connect-failed", "169.254.3.1<41234>");
  Add(incident, 0, std::move(failed));
  const Finding finding = JudgedCase(std::move(incident)).Only("wrong-interface");
  EXPECT_TRUE(Speaks(finding.headline, "169.254.3.1, a link-local address")) << finding.headline;
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(WrongInterface, TheLoopbackOnOneHostIsRight) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int r = 0; r < 4; ++r) {
    Event& used = job.Log(r, EventKind::interface_used);
    used.Make<NetworkDevice>().name = "lo";
    used.Make<NetworkDevice>().address = "127.0.0.1";
  }
  EXPECT_FALSE(JudgedCase(job).Fires("wrong-interface"));
}

TEST(WrongInterface, TheLoopbackOnOneHostIsRightWhateverNcclTakesForNodes) {
  for (const bool all_seen : {true, false}) {
    Incident incident = Processes({"node-a", "node-a"});
    for (const uint32_t process : {0u, 1u}) {
      incident.processes[process].rank = Rank{static_cast<int32_t>(process)};
      Add(incident, process, EventKind::interface_used, NetworkDevice{"lo", "127.0.0.1", DeviceUse::bootstrap});
      Add(incident, process, EventKind::init_started, CommunicatorSetup{all_seen ? 2 : 4, 0, "1b000"});
      Add(incident, process, EventKind::node_count, NodeCount{2});
      Add(incident, process, EventKind::watchdog_timeout, WatchdogTimeout{});
    }
    EXPECT_EQ(JudgedCase(std::move(incident)).Fires("wrong-interface"), !all_seen);
  }
}

TEST(WrongInterface, OfTheLoopbackInOneLogItAsksForTheHosts) {
  Incident incident = Processes({"node-b"});
  Event failed = WarnedOf("connect-failed", "127.0.0.1<41234>");
  Add(incident, 0, std::move(failed));
  const RuleAnswer answer = JudgedCase(std::move(incident)).Ask("wrong-interface");
  EXPECT_TRUE(answer.findings.empty());
  EXPECT_EQ(answer.open.size(), 1u);
}

// So many ranks are on several hosts, as a rule.
TEST(WrongInterface, GlooOnTheLoopbackOfManyRanksIsLikelyWrong) {
  for (const int64_t world : {16, 2}) {
    Incident incident = Processes({"node-b"});
    incident.world_size = world;
    Add(incident, 0, EventKind::interface_used, NetworkDevice{"lo", "", DeviceUse::setup});
    Add(incident, 0, EventKind::connect_failed, ConnectFailure{"", "no connection"});
    const JudgedCase judged(std::move(incident));
    EXPECT_EQ(judged.Fires("wrong-interface"), world == 16);
    if (world == 16) {
      EXPECT_EQ(judged.Only("wrong-interface").confidence, Confidence::likely);
      EXPECT_TRUE(Speaks(judged.Only("wrong-interface").fix.at(0), "GLOO_SOCKET_IFNAME"));
    }
  }
}

TEST(WrongInterface, GloosFallbackAloneIsNoFault) {
  Incident incident = Processes({"node-b"});
  incident.world_size = 16;
  Add(incident, 0, EventKind::interface_used, NetworkDevice{"lo", "", DeviceUse::setup});
  Add(incident, 0, EventKind::watchdog_timeout, WatchdogTimeout{});
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("wrong-interface"));
}

TEST(WrongInterface, AnOrdinaryAddressThatRefusesIsAnotherCause) {
  Incident incident = Processes({"node-a", "node-b"});
  Add(incident, 0, EventKind::interface_used, NetworkDevice{"eth0", "10.0.3.4", DeviceUse::bootstrap});
  Event failed = WarnedOf("connect-failed", "10.0.3.4<41234>");
  Add(incident, 1, std::move(failed));
  const JudgedCase judged(std::move(incident));
  EXPECT_FALSE(judged.Fires("wrong-interface"));
  EXPECT_TRUE(judged.Fires("init-unreachable"));
}

TEST(WrongInterface, WhatWorksIsNotWrong) {
  Incident incident = Processes({"node-a", "node-b"});
  for (const uint32_t process : {0u, 1u}) {
    Add(incident, process, EventKind::interface_used, NetworkDevice{"cni0", "10.244.1.7", DeviceUse::bootstrap});
    Add(incident, process, EventKind::init_started, CommunicatorSetup{2, 0, "1b000"});
    Add(incident, process, EventKind::init_completed, CommunicatorSetup{2, 0, "1b000"});
  }
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("wrong-interface"));
}

// environment-differs

TEST(EnvironmentDiffers, SocketsThatMeetInfinibandAreNamed) {
  Incident incident = Processes({"node-a", "node-b"});
  Add(incident, 0, EventKind::network, NetworkName{"IB"});
  Add(incident, 1, EventKind::network, NetworkName{"Socket"});
  Add(incident, 0, Warned("network-type-mismatch", 3));
  const JudgedCase judged(std::move(incident));
  const Finding finding = judged.Only("environment-differs");
  EXPECT_TRUE(Speaks(finding.headline, "IB on process 100 on node-a")) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "environment-differs");
  EXPECT_EQ(judged.Verdict().status, Status::crash);
}

TEST(EnvironmentDiffers, TheRefusalAloneAsksWhoUsesWhat) {
  Incident incident = Processes({"node-a"});
  Add(incident, 0, Warned("network-type-mismatch", 3));
  const RuleAnswer answer = JudgedCase(std::move(incident)).Ask("environment-differs");
  EXPECT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.open.size(), 1u);
}

TEST(EnvironmentDiffers, EqualSettingsAndDifferentDriversAreNoFault) {
  Incident incident = Processes({"node-a", "node-b"});
  for (const uint32_t process : {0u, 1u}) {
    Add(incident, process, EventKind::environment, EnvironmentSetting{"NCCL_ALGO", "Ring"});
    Add(incident, process, EventKind::environment,
        EnvironmentSetting{"NCCL_SOCKET_IFNAME", process == 0 ? "eth0" : "ens5"});
    Add(incident, process, EventKind::driver_version, Version{process == 0 ? "12020" : "12040"});
  }
  const Finding finding = JudgedCase(std::move(incident)).Only("environment-differs");
  EXPECT_EQ(finding.severity, Severity::note);
}

// foreign-connection

TEST(ForeignConnection, OneThatIsRefusedIsANote) {
  Incident incident = Processes({"node-a"});
  Event stranger = WarnedOf("socket-stranger", "10.0.9.9<33412>", NcclWarningRole::notice);
  Add(incident, 0, std::move(stranger));
  const Finding finding = JudgedCase(std::move(incident)).Only("foreign-connection");
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_TRUE(Speaks(finding.headline, "from 10.0.9.9")) << finding.headline;
}

TEST(ForeignConnection, OneThatBreaksTheSetUpIsTheCause) {
  Incident incident = Processes({"node-a"});
  Add(incident, 0, Warned("bootstrap-stranger"));
  const JudgedCase judged(std::move(incident));
  EXPECT_EQ(judged.Verdict().cause, "foreign-connection");
  EXPECT_EQ(judged.Verdict().status, Status::crash);
  EXPECT_EQ(judged.Ask("foreign-connection").open.size(), 1u);
}

// communicator-shared-by-threads

void IssueBy(JobSketch& job, int32_t rank, uint8_t thread, int64_t elements) {
  SketchedCall call;
  call.elements = elements;
  job.Issue(rank, call);
  job.LastCall(rank, CallSource::nccl_log).thread = thread;
}

TEST(CommunicatorSharedByThreads, ThreadsInAnotherOrderAreNamed) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int round = 0; round < 5; ++round)
    for (int r = 0; r < 4; ++r) {
      const bool swapped = round == 4 && r == 2;
      IssueBy(job, r, swapped ? 2 : 1, swapped ? 64 : 4096);
      IssueBy(job, r, swapped ? 1 : 2, swapped ? 4096 : 64);
    }
  const JudgedCase judged(job);
  const Finding finding = judged.Only("communicator-shared-by-threads");
  EXPECT_TRUE(Speaks(finding.headline, "thread 2 on rank 2")) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "communicator-shared-by-threads");
}

TEST(CommunicatorSharedByThreads, ThreadsThatTakeTurnsAlikeAreHealthy) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int round = 0; round < 5; ++round)
    for (int r = 0; r < 4; ++r) {
      IssueBy(job, r, 1, 4096);
      IssueBy(job, r, 2, 64);
    }
  EXPECT_FALSE(JudgedCase(job).Fires("communicator-shared-by-threads"));
}

TEST(CommunicatorSharedByThreads, ASkippedCallIsAnotherCause) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int round = 0; round < 5; ++round)
    for (int r = 0; r < 4; ++r) {
      if (round != 3 || r != 2) IssueBy(job, r, 1, 4096);
      IssueBy(job, r, 2, 64);
    }
  EXPECT_FALSE(JudgedCase(job).Fires("communicator-shared-by-threads"));
}

TEST(CommunicatorSharedByThreads, NcclsOwnWarningIsEnough) {
  Incident incident = Processes({"node-a"});
  Add(incident, 0, Warned("launch-race"));
  const JudgedCase judged(std::move(incident));
  EXPECT_EQ(judged.Verdict().cause, "communicator-shared-by-threads");
  EXPECT_EQ(judged.Ask("communicator-shared-by-threads").open.size(), 1u);
}

}  // namespace
}  // namespace tacet
