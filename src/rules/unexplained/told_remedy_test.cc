// SPDX-License-Identifier: Apache-2.0
// What the text around a log says: a setting that helps, wrong results, a blocked service of the host.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

Event& Add(Incident& incident, EventKind kind) {
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source.line = static_cast<uint32_t>(incident.events.size());
  event.text = "told";
  return event;
}

Incident Hang(bool acs = false) {
  Incident incident;
  Add(incident, EventKind::told_hang).Make<ToldPlace>().acs_on = acs;
  return incident;
}

Incident HangWithRemedy(RemedyOf of, std::string setting) {
  Incident incident = Hang();
  auto& remedy = Add(incident, EventKind::told_remedy).Make<ToldRemedy>();
  remedy.setting = std::move(setting);
  remedy.of = of;
  return incident;
}

TEST(ToldRemedyRule, ASettingThatHelpsNamesTheSuspectedPath) {
  struct Known {
    RemedyOf of;
    const char* setting;
    const char* cause;
  };
  for (const Known& one : {Known{RemedyOf::peer_access, "NCCL_P2P_DISABLE=1", "p2p-broken"},
                           Known{RemedyOf::infiniband, "NCCL_IB_DISABLE=1", "rdma-broken"},
                           Known{RemedyOf::gpu_direct, "NCCL_NET_GDR_LEVEL=LOC", "rdma-broken"},
                           Known{RemedyOf::shared_memory, "NCCL_SHM_DISABLE=1", "shared-memory-full"},
                           Known{RemedyOf::interface, "NCCL_SOCKET_IFNAME=eth0", "wrong-interface"}}) {
    const Diagnosis verdict = JudgedCase(HangWithRemedy(one.of, one.setting)).Verdict();
    EXPECT_EQ(verdict.status, Status::hang) << one.setting;
    EXPECT_EQ(verdict.cause, one.cause) << one.setting;
    EXPECT_NE(verdict.confidence, Confidence::certain) << one.setting;
    EXPECT_TRUE(verdict.ranks.empty()) << one.setting;
    EXPECT_NE(verdict.headline.find(one.setting), std::string::npos) << verdict.headline;
  }
}

TEST(ToldRemedyRule, OnAmdsGpusTheStepsNameAmdsTools) {
  Incident incident = HangWithRemedy(RemedyOf::peer_access, "NCCL_P2P_DISABLE=1");
  incident.events[1].maker = GpuMaker::amd;
  const Finding finding = JudgedCase(std::move(incident)).Only("p2p-broken");
  bool amd = false;
  for (const std::string& step : finding.fix) {
    amd |= step.find("rocm-smi") != std::string::npos;
    EXPECT_EQ(step.find("nvidia-smi"), std::string::npos) << step;
  }
  EXPECT_TRUE(amd);
}

TEST(ToldRemedyRule, WithoutTroubleItIsNoCause) {
  Incident incident;
  Add(incident, EventKind::told_remedy).Make<ToldRemedy>().setting = "NCCL_P2P_DISABLE=1";
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("p2p-broken"));
  EXPECT_FALSE(JudgedCase(Hang()).Fires("p2p-broken"));
}

TEST(ToldRemedyRule, AccessControlBesideAHangIsSuspect) {
  const Finding finding = JudgedCase(Hang(true)).Only("p2p-broken");
  EXPECT_EQ(finding.confidence, Confidence::possible);
  EXPECT_EQ(finding.status, Status::hang);
}

TEST(ToldRemedyRule, WrongResultsAreTold) {
  Incident incident;
  Add(incident, EventKind::told_wrong);
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_EQ(verdict.status, Status::corrupt);
  EXPECT_EQ(verdict.cause, "wrong-results");
}

TEST(ToldRemedyRule, ABlockedServiceOfTheHostIsTold) {
  const auto blocked = [](bool hangs) {
    Incident incident;
    incident.files.emplace_back();
    Event& task = Add(incident, EventKind::hung_task);
    task.pid = 4711;
    task.Make<HungTask>().process = "lvm";
    task.Set(Meaning::of_service);
    if (hangs) Add(incident, EventKind::told_hang).Make<ToldPlace>();
    return JudgedCase(std::move(incident)).Verdict();
  };
  const Diagnosis alone = blocked(false), hang = blocked(true);
  EXPECT_EQ(alone.status, Status::undetermined);
  EXPECT_NE(alone.headline.find("lvm (process 4711)"), std::string::npos) << alone.headline;
  EXPECT_EQ(hang.status, Status::hang);
  ASSERT_FALSE(hang.findings.empty());
  ASSERT_FALSE(hang.findings[0].fix.empty());
  EXPECT_NE(hang.findings[0].fix[0].find("lvm"), std::string::npos) << hang.findings[0].fix[0];
}

}  // namespace
}  // namespace tacet
