// SPDX-License-Identifier: Apache-2.0
// Causes that tools of the host and of the cluster list: resources, ports, links, PCIe, GPUs,
// file systems, nodes.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"
#include "rules/words/gpu_load_words.h"

namespace tacet {
namespace {

Incident WithEvent(EventKind kind, EventDetail detail) {
  Incident incident;
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.detail = std::move(detail);
  return incident;
}

void AddPort(Incident& incident, std::string device, PortHealth health, bool infiniband) {
  Event& event = incident.events.emplace_back();
  event.kind = EventKind::port_state;
  event.speaker = kNobody;
  PortState port;
  port.device = std::move(device);
  port.host = "gpu7";
  port.port = 1;
  port.health = health;
  port.infiniband = infiniband;
  event.detail = std::move(port);
}

bool Mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Pending RayDemand() {
  Pending pending;
  pending.by = "Ray";
  pending.demand = "{'GPU': 1.0} * 8";
  pending.gpus_wanted = 8;
  return pending;
}

TEST(ResourcesPending, AJobThatRayHasNotStartedHangs) {
  const JudgedCase judged(WithEvent(EventKind::start_pending, RayDemand()));
  const Finding finding = judged.Only("resources-pending");
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_TRUE(Mentions(finding.headline, "8 GPUs")) << finding.headline;
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(ResourcesPending, ANameThatNoNodeHasIsNoLackOfGpus) {
  Pending pending = RayDemand();
  pending.why = PendingWhy::unknown_node;
  pending.who = "head-a";
  pending.gpus = 8;
  pending.gpus_used = 0;
  const Finding finding = JudgedCase(WithEvent(EventKind::start_pending, pending)).Only("resources-pending");
  EXPECT_TRUE(Mentions(finding.headline, "'head-a'")) << finding.headline;
  EXPECT_TRUE(Mentions(finding.headline, "8 of 8 GPUs are free")) << finding.headline;
}

TEST(ResourcesPending, DemandsBesideARunningJobAreUsual) {
  Incident incident = WithEvent(EventKind::start_pending, RayDemand());
  Event& step = incident.events.emplace_back();
  step.kind = EventKind::progress;
  step.speaker = kNobody;
  step.detail = Progress{};
  EXPECT_TRUE(JudgedCase(std::move(incident)).Ask("resources-pending").findings.empty());
}

TEST(ResourcesPending, AQueueIsThereToWaitIn) {
  Pending pending;
  pending.by = "Slurm";
  pending.who = "7011";
  pending.reason = "Priority";
  pending.why = PendingWhy::priority;
  EXPECT_EQ(JudgedCase(WithEvent(EventKind::start_pending, pending)).Only("resources-pending").status,
            Status::undetermined);
  pending.reason = "DependencyNeverSatisfied";
  pending.why = PendingWhy::never;
  const Finding never = JudgedCase(WithEvent(EventKind::start_pending, pending)).Only("resources-pending");
  EXPECT_EQ(never.status, Status::hang);
  EXPECT_TRUE(Mentions(never.headline, "job 7011 will never start")) << never.headline;
  pending.reason = "Dependency";
  pending.why = PendingWhy::dependency;
  const Finding waits = JudgedCase(WithEvent(EventKind::start_pending, pending)).Only("resources-pending");
  EXPECT_FALSE(Mentions(waits.headline, "never")) << waits.headline;
}

TEST(PortNotActive, AnInfiniBandPortThatIsDownIsNamedWithItsHost) {
  Incident incident;
  AddPort(incident, "mlx5_0", PortHealth::active, true);
  AddPort(incident, "mlx5_1", PortHealth::down, true);
  const Finding finding = JudgedCase(std::move(incident)).Only("port-not-active");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_TRUE(Mentions(finding.headline, "on gpu7")) << finding.headline;
  EXPECT_TRUE(Mentions(finding.headline, "mlx5_1 is down")) << finding.headline;
  EXPECT_TRUE(Mentions(finding.headline, "mlx5_0 is active")) << finding.headline;
}

TEST(PortNotActive, AnIpInterfaceThatIsDownIsARemark) {
  const auto with = [](bool another_is_up) {
    Incident incident;
    for (const bool up : {false, true}) {
      if (up && !another_is_up) continue;
      AddPort(incident, up ? "mlx5_1" : "mlx5_0", up ? PortHealth::active : PortHealth::down, true);
      auto& port = incident.events.back().Make<PortState>();
      port.interface = up ? "ib1" : "ib0";
      port.of_interface = !up;
    }
    return JudgedCase(std::move(incident)).Only("port-not-active");
  };
  const Finding alone = with(false), odd = with(true);
  EXPECT_EQ(alone.severity, Severity::note);
  EXPECT_TRUE(Mentions(alone.headline, "RDMA does not need IP")) << alone.headline;
  EXPECT_EQ(odd.severity, Severity::warning) << "IP is used on the other one";
  EXPECT_EQ(odd.confidence, Confidence::possible);
}

TEST(PortNotActive, APortThatNobodyUsesIsARemark) {
  Incident onboard;
  AddPort(onboard, "mlx5_0", PortHealth::active, true);
  AddPort(onboard, "mlx5_2", PortHealth::down, false);
  EXPECT_EQ(JudgedCase(std::move(onboard)).Only("port-not-active").severity, Severity::note);
  // NCCL lists what it uses, and the port is not in it.
  Incident listed;
  AddPort(listed, "mlx5_0", PortHealth::active, true);
  AddPort(listed, "mlx5_1", PortHealth::down, true);
  Event& device = listed.events.emplace_back();
  device.kind = EventKind::device_found;
  device.speaker = kNobody;
  device.Make<NetworkDevice>().name = "mlx5_0:1/IB";
  EXPECT_EQ(JudgedCase(std::move(listed)).Only("port-not-active").severity, Severity::note);
}

TEST(PortNotActive, ActivePortsAreNoFinding) {
  Incident incident;
  AddPort(incident, "mlx5_0", PortHealth::active, true);
  EXPECT_TRUE(JudgedCase(std::move(incident)).Ask("port-not-active").findings.empty());
}

TEST(PcieFault, CorrectedErrorsAreARemarkAndOthersAreNot) {
  HardwareError error;
  error.device = "0000:81:00.0";
  error.severity = ErrorSeverity::corrected;
  error.times = 40;
  EXPECT_EQ(JudgedCase(WithEvent(EventKind::pcie_error, error)).Only("pcie-fault").severity, Severity::note);
  error.severity = ErrorSeverity::fatal;
  const Finding finding = JudgedCase(WithEvent(EventKind::pcie_error, error)).Only("pcie-fault");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_TRUE(Mentions(finding.headline, "0000:81:00.0")) << finding.headline;
}

Incident PortAndCard(bool of_gpu) {
  HardwareError port;
  port.device = "0000:80:02.0";
  port.severity = ErrorSeverity::fatal;
  port.times = 3;
  Incident incident = WithEvent(EventKind::pcie_error, port);
  Event card = incident.events.front();
  card.detail = HardwareError{"0000:83:00.0", ErrorSeverity::fatal, 1, of_gpu};
  incident.events.push_back(std::move(card));
  return incident;
}

TEST(PcieFault, OfAPortAndTheGpuBehindItTheGpuIsNamed) {
  EXPECT_TRUE(Mentions(JudgedCase(PortAndCard(false)).Only("pcie-fault").headline, "the device 0000:80:02.0"));
  EXPECT_TRUE(Mentions(JudgedCase(PortAndCard(true)).Only("pcie-fault").headline, "the GPU 0000:83:00.0"));
}

template <class Detail>
void AddListed(Incident& incident, EventKind kind, Detail detail) {
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source.line = static_cast<uint32_t>(incident.events.size());
  event.detail = std::move(detail);
}

void AddGpu(Incident& incident, int32_t index, float percent, float watts, int32_t memory) {
  AddListed(incident, EventKind::gpu_load, GpuLoad{"", index, percent, watts, 300, memory});
}

TEST(GpuLoads, AllBusyAtLowPowerWaitInACollectiveWhereAHangIsTold) {
  Incident incident;
  for (int32_t gpu = 0; gpu < 4; ++gpu) AddGpu(incident, gpu, 100, 120, 20000);
  EXPECT_TRUE(
      Mentions(ReadGpuLoads(incident, true).words, "the 4 GPUs listed show 100 % utilization at 120 W of 300 W"));
  // Small kernels draw as little: without a hang it is nothing to speak of.
  EXPECT_TRUE(ReadGpuLoads(incident, false).words.empty());
}

TEST(GpuLoads, FullPowerSaysNothing) {
  Incident incident;
  for (int32_t gpu = 0; gpu < 4; ++gpu) AddGpu(incident, gpu, 100, 280, 20000);
  EXPECT_TRUE(ReadGpuLoads(incident, true).words.empty());
}

TEST(GpuLoads, OneIdleAmongBusyOnesIsToBeLookedAtFirst) {
  Incident incident;
  for (int32_t gpu = 0; gpu < 3; ++gpu) AddGpu(incident, gpu, 100, 80, 20000);
  AddGpu(incident, 3, 0, 55, 20000);
  EXPECT_EQ(ReadGpuLoads(incident, true).idle, "GPU 3");
  EXPECT_TRUE(ReadGpuLoads(incident, false).idle.empty());
}

TEST(GpuLoads, AGpuThatTheJobDoesNotUseIsNotWaitedFor) {
  Incident incident;
  for (int32_t gpu = 0; gpu < 3; ++gpu) AddGpu(incident, gpu, 100, 80, 20000);
  AddGpu(incident, 3, 0, 30, 4);
  EXPECT_TRUE(ReadGpuLoads(incident, true).idle.empty());
}

TEST(SpaceUse, SharedMemoryThatFillsUpIsADegradation) {
  Incident incident;
  AddListed(incident, EventKind::space_use, SpaceUse{"", "/dev/shm", "24G", "23G", 96, 1, 9, false});
  const Finding finding = JudgedCase(std::move(incident)).Only("shared-memory-full");
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_TRUE(Mentions(finding.headline, "96 % full (23G of 24G)")) << finding.headline;
  EXPECT_TRUE(Mentions(finding.headline, "has grown from 1 %")) << finding.headline;
}

TEST(SpaceUse, ALargeDiskThatIsNearlyFullIsNone) {
  Incident incident;
  AddListed(incident, EventKind::space_use, SpaceUse{"", "/scratch", "120T", "115T", 96, 96, 1, false});
  AddListed(incident, EventKind::space_use, SpaceUse{"", "/dev/shm", "24G", "2G", 9, 9, 1, false});
  const JudgedCase judged(std::move(incident));
  EXPECT_FALSE(judged.Fires("disk-full"));
  EXPECT_FALSE(judged.Fires("shared-memory-full"));
}

TEST(NodeUnavailable, APartitionWithoutANodeThatTakesJobs) {
  Incident incident;
  AddListed(incident, EventKind::node_state, ListedNodes{"a[1-9]", "cpu", "drng", 9, NodeCondition::draining});
  AddListed(incident, EventKind::node_state, ListedNodes{"b7", "cpu", "down*", 1, NodeCondition::silent});
  AddListed(incident, EventKind::node_state, ListedNodes{"g[1-2]", "gpu", "idle", 2, NodeCondition::takes_jobs});
  const Finding finding = JudgedCase(std::move(incident)).Only("node-unavailable");
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_TRUE(Mentions(finding.headline, "artition cpu has no node that accepts jobs")) << finding.headline;
  EXPECT_TRUE(Mentions(finding.headline, "1 node (b7)")) << finding.headline;
}

TEST(NodeUnavailable, SomeNodesOutOfServiceAreANote) {
  Incident incident;
  AddListed(incident, EventKind::node_state, ListedNodes{"b7", "cpu", "down*", 1, NodeCondition::silent});
  AddListed(incident, EventKind::node_state, ListedNodes{"a[1-9]", "cpu", "alloc", 9, NodeCondition::takes_jobs});
  EXPECT_EQ(JudgedCase(std::move(incident)).Only("node-unavailable").severity, Severity::note);
}

TEST(NodeUnavailable, AFailedPrologIsNoFaultOfTheJob) {
  Incident incident;
  AddListed(incident, EventKind::node_state, ListedNodes{"m3", "", "", -1, NodeCondition::prolog_failed});
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_EQ(verdict.cause, "node-unavailable");
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_TRUE(verdict.ranks.empty());
}

PortState Nvlink(int gpu, int64_t number, PortHealth health) {
  PortState port;
  port.device = "GPU " + std::to_string(gpu);
  port.port = number;
  port.health = health;
  port.nvlink = true;
  return port;
}

TEST(PortNotActive, ANvlinkThatTheOtherGpusHave) {
  Incident incident;
  for (int gpu = 0; gpu < 3; ++gpu)
    for (int64_t link = 0; link < 3; ++link)
      AddListed(incident, EventKind::port_state,
                Nvlink(gpu, link, gpu == 1 && link > 0 ? PortHealth::down : PortHealth::active));
  const Finding finding = JudgedCase(std::move(incident)).Only("port-not-active");
  EXPECT_EQ(finding.headline, "NVLink links 1 and 2 of GPU 1 are inactive, while the other GPUs have them");
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(PortNotActive, ANvlinkThatNobodyOrOnlyAPairHasIsNotMissed) {
  Incident incident;
  for (int gpu = 0; gpu < 4; ++gpu) {
    AddListed(incident, EventKind::port_state, Nvlink(gpu, 0, PortHealth::down));
    AddListed(incident, EventKind::port_state, Nvlink(gpu, 1, gpu < 2 ? PortHealth::active : PortHealth::down));
  }
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("port-not-active"));
}

TEST(LinkErrors, CountersThatTellOfErrors) {
  PortErrors port;
  port.device = "LID 118";
  port.port = 1;
  port.counted = {"65,535 or more symbol errors", "41 link downs"};
  const Finding finding = JudgedCase(WithEvent(EventKind::port_errors, port)).Only("link-errors");
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_TRUE(Mentions(finding.headline, "counted 65,535 or more symbol errors and 41 link downs")) << finding.headline;
  port.counted.clear();
  EXPECT_FALSE(JudgedCase(WithEvent(EventKind::port_errors, port)).Fires("link-errors"));
}

TEST(SlowLink, ALinkBelowWhatBothEndsCanDo) {
  const auto link = [](std::string device, std::string better) {
    PortState port;
    port.device = std::move(device);
    port.port = 1;
    port.link = better.empty() ? "4X 25.78125 Gbps" : "1X 25.78125 Gbps";
    port.better = std::move(better);
    return port;
  };
  Incident incident;
  AddListed(incident, EventKind::port_state, link("hx11 HCA-1", "Could be 4X"));
  AddListed(incident, EventKind::port_state, link("hx12 HCA-1", ""));
  const Finding finding = JudgedCase(std::move(incident)).Only("slow-link");
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_TRUE(Mentions(finding.headline, "hx11 HCA-1 port 1 runs at 1X 25.78125 Gbps")) << finding.headline;
  Incident fine;
  AddListed(fine, EventKind::port_state, link("hx12 HCA-1", ""));
  EXPECT_FALSE(JudgedCase(std::move(fine)).Fires("slow-link"));
}

TEST(PcieFault, OneErrorIsSpokenOfAsOne) {
  HardwareError error;
  error.device = "0000:40:01.1";
  error.severity = ErrorSeverity::fatal;
  error.times = 1;
  EXPECT_TRUE(Mentions(JudgedCase(WithEvent(EventKind::pcie_error, error)).Only("pcie-fault").headline,
                       "reports a fatal PCIe error at the device 0000:40:01.1"));
}

TEST(DiskFull, TheStepsFollowWhatIsKnownOfTheFileSystem) {
  const auto first = [](const std::string& path, SpaceLimit limit) {
    return JudgedCase(WithEvent(EventKind::disk_full, NoSpace{path, limit})).Only("disk-full").fix.front();
  };
  EXPECT_TRUE(Mentions(first("/lustre/exp/ckpt/x.pt", SpaceLimit::quota), "lfs quota -h -u $USER /lustre"));
  EXPECT_FALSE(Mentions(first("/home/ann/ckpt/x.pt", SpaceLimit::quota), "df -h"));
  EXPECT_TRUE(Mentions(first("/home/ann/ckpt/x.pt", SpaceLimit::device), "df -h /home/ann/ckpt and df -i"));
}

TEST(SpaceUse, WhoGaveTheOutputOfDfIsNotAskedForIt) {
  Incident incident;
  AddListed(incident, EventKind::space_use, SpaceUse{"hx03", "/local", "3.5T", "3.5T", 100, 100, 1, false});
  const Finding finding = JudgedCase(std::move(incident)).Only("disk-full");
  ASSERT_FALSE(finding.fix.empty());
  EXPECT_TRUE(Mentions(finding.fix[0], "On hx03: du -xh --max-depth=1 /local")) << finding.fix[0];
  for (const std::string& step : finding.fix) EXPECT_FALSE(Mentions(step, "df -h")) << step;
}

}  // namespace
}  // namespace tacet
