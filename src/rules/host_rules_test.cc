// SPDX-License-Identifier: Apache-2.0
// Causes that tools of the host and of the cluster list: resources, ports, PCIe links.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

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
  pending.why = PendingWhy::dependency;
  EXPECT_EQ(JudgedCase(WithEvent(EventKind::start_pending, pending)).Only("resources-pending").status, Status::hang);
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

}  // namespace
}  // namespace tacet
