// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/event_ties.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

// Two hosts with four ranks each; NCCL prints one bus id a device, the same on both hosts.
Incident TwoHosts() {
  Incident incident;
  for (int32_t r = 0; r < 8; ++r) {
    const std::string host = r < 4 ? "gpu01" : "gpu02";
    incident.files.push_back({host + "/rank" + std::to_string(r) + ".log", "nccl_log", Rank{r}, {}, kNoTime, false});
    incident.processes.push_back({Rank{r}, Certainty::stated, host, 4000 + r % 4, r % 4, {FileId{uint32_t(r)}}});
    Event init;
    init.kind = EventKind::init_completed;
    init.speaker = static_cast<uint32_t>(r);
    init.rank = Rank{r};
    init.wall_ns = kBegin;
    init.Make<CommunicatorSetup>().bus_id = std::to_string(1 + r % 4) + "b000";
    incident.events.push_back(init);
  }
  return incident;
}

Event& AddKernelEvent(Incident& incident, EventKind kind, const std::string& path, int64_t wall_ns) {
  Event event;
  event.kind = kind;
  event.speaker = kNobody;
  event.wall_ns = wall_ns;
  event.source = {FileId{static_cast<uint32_t>(incident.files.size())}, 1, 0};
  incident.files.push_back({path, "kernel_log", Rank{}, {}, kNoTime, false});
  incident.events.push_back(event);
  return incident.events.back();
}

TEST(EventTies, ReadsBusIdsAsNcclPrintsThem) {
  EXPECT_EQ(BusIdOf("0000:4b:00"), 0x4b000);
  EXPECT_EQ(BusIdOf("0000:4b:00.0"), 0x4b000);
  EXPECT_EQ(BusIdOf("0001:07:00.0"), 0x107000);
  for (const char* text : {"", "MC0", "machine check", "4b:00", "0000:4b:zz", "0000:fff:00.0", "0000:4b:00.9"})
    EXPECT_EQ(BusIdOf(text), -1) << text;
}

TEST(EventTies, AnXidWithoutPidIsOfTheRankOnThatBusOfTheHostThatThePathNames) {
  for (const char* path : {"gpu02/dmesg.txt", "dmesg-gpu02.log", "kern_gpu02"}) {
    Incident incident = TwoHosts();
    AddKernelEvent(incident, EventKind::xid, path, kBegin + 60 * kSecond).Make<Xid>().pci = "0000:3b:00";
    TieEventsToProcesses(incident);
    EXPECT_EQ(incident.events.back().rank, Rank{6}) << path;
  }
}

TEST(EventTies, ABusThatBothHostsHaveNamesNobodyWhenTheHostIsUnknown) {
  for (const char* path : {"dmesg.txt", "dmesg-gpu021.log"}) {
    Incident incident = TwoHosts();
    AddKernelEvent(incident, EventKind::xid, path, kBegin + 60 * kSecond).Make<Xid>().pci = "0000:3b:00";
    TieEventsToProcesses(incident);
    EXPECT_FALSE(incident.events.back().rank.known()) << path;
  }
}

TEST(EventTies, AGpuThatRanksShareNamesNobody) {
  Incident incident = TwoHosts();
  for (Event& event : incident.events) event.Make<CommunicatorSetup>().bus_id = "60";
  AddKernelEvent(incident, EventKind::xid, "gpu01/dmesg.txt", kNoTime).Make<Xid>().pci = "0000:00:06.0";
  TieEventsToProcesses(incident);
  EXPECT_FALSE(incident.events.back().rank.known());
}

TEST(EventTies, TheHostOfTheFilesBesideItTellsWhosePidIsMeant) {
  Incident incident = TwoHosts();
  for (Process& process : incident.processes) process.host = process.rank < Rank{4} ? "ip-10-0-0-1" : "ip-10-0-0-2";
  AddKernelEvent(incident, EventKind::oom_kill, "gpu02/dmesg.txt", kBegin + 60 * kSecond).pid = 4001;
  TieEventsToProcesses(incident);
  EXPECT_EQ(incident.events.back().rank, Rank{5});
}

TEST(EventTies, AKillThatFitsNoRankIsRemarkedOn) {
  Incident incident = TwoHosts();
  for (Process& process : incident.processes)
    if (process.pid < 0) process.pid = 9000 + process.rank.value;
  AddKernelEvent(incident, EventKind::oom_kill, "gpu02/dmesg.txt", kBegin + 60 * kSecond).pid = 28117;
  TieEventsToProcesses(incident);
  EXPECT_FALSE(incident.events.back().rank.known());
  ASSERT_EQ(incident.diagnostics.size(), 1u);
  EXPECT_EQ(incident.diagnostics[0].code, "kill-of-another");
  EXPECT_NE(incident.diagnostics[0].message.find("process 28117"), std::string::npos);
}

TEST(EventTies, WhatTheKernelSaidBeforeTheJobBeganIsSetAside) {
  Incident incident = TwoHosts();
  AddKernelEvent(incident, EventKind::xid, "gpu01/dmesg.txt", kBegin - 3600 * kSecond).Make<Xid>().pci = "0000:1b:00";
  const FileId file = incident.events.back().source.file;
  Event& later = AddKernelEvent(incident, EventKind::link_up, "x", kBegin + 60 * kSecond);
  later.source.file = file;
  TieEventsToProcesses(incident);
  for (const Event& event : incident.events) EXPECT_NE(event.kind, EventKind::xid);
  ASSERT_EQ(incident.diagnostics.size(), 1u);
  EXPECT_EQ(incident.diagnostics[0].code, "before-the-job");
}

TEST(EventTies, AKernelLogInAnotherZoneIsKept) {
  Incident incident = TwoHosts();
  AddKernelEvent(incident, EventKind::xid, "gpu01/dmesg.txt", kBegin - 8 * 3600 * kSecond).Make<Xid>().pci =
      "0000:1b:00";
  TieEventsToProcesses(incident);
  EXPECT_EQ(incident.events.back().rank, Rank{0});
}

TEST(EventTies, YesterdayIsOfNoZone) {
  Incident incident = TwoHosts();
  AddKernelEvent(incident, EventKind::xid, "gpu01/dmesg.txt", kBegin - 48 * 3600 * kSecond).Make<Xid>().pci =
      "0000:1b:00";
  TieEventsToProcesses(incident);
  EXPECT_EQ(incident.events.back().kind, EventKind::init_completed);
}

// 2023-11-14 22:13:20 is kBegin; PyTorch writes E1114 22:13:20 and no year.
Incident UndatedHang() {
  Incident incident = TwoHosts();
  for (Event& event : incident.events) {
    event.kind = EventKind::watchdog_timeout;
    event.detail = WatchdogTimeout{};
    event.Make<WatchdogTimeout>().elapsed_ms = 1'800'000;
    event.wall_ns = kNoTime;
    event.clock_s = 1114 * 86400 + 22 * 3600 + 13 * 60 + 20;
  }
  return incident;
}

bool IsKept(Incident incident, int64_t wall_ns, int32_t clock_s = -1) {
  Event& event = AddKernelEvent(incident, EventKind::oom_kill, "gpu01/dmesg.txt", wall_ns);
  event.clock_s = clock_s;
  TieEventsToProcesses(incident);
  return incident.events.back().kind == EventKind::oom_kill;
}

TEST(EventTies, AKernelLineIsComparedWithDatesThatHaveNoYear) {
  constexpr int64_t kDay = 86400 * kSecond;
  EXPECT_TRUE(IsKept(UndatedHang(), kBegin));
  EXPECT_TRUE(IsKept(UndatedHang(), kBegin - 25 * 60 * kSecond));   // within the wait that timed out
  EXPECT_TRUE(IsKept(UndatedHang(), kBegin + 8 * 3600 * kSecond));  // another zone
  EXPECT_FALSE(IsKept(UndatedHang(), kBegin + 3 * kDay));
  EXPECT_FALSE(IsKept(UndatedHang(), kBegin - 60 * kDay));
  EXPECT_FALSE(IsKept(UndatedHang(), kBegin + 300 * kDay));
}

TEST(EventTies, ASyslogDateWithoutAYearIsComparedToo) {
  EXPECT_TRUE(IsKept(UndatedHang(), kNoTime, 1114 * 86400 + 22 * 3600));
  EXPECT_FALSE(IsKept(UndatedHang(), kNoTime, 1001 * 86400 + 22 * 3600));
  EXPECT_TRUE(IsKept(UndatedHang(), kNoTime));  // uptime alone tells nothing
}

TEST(EventTies, NewYearIsNoYearAway) {
  for (const bool dated : {true, false}) {
    Incident incident = UndatedHang();
    for (Event& event : incident.events) event.clock_s = 101 * 86400 + 600;  // January 1, 00:10
    const int64_t eve_ns = (int64_t{1'704'067'200} - 300) * kSecond;         // 2023-12-31 23:55
    EXPECT_TRUE(IsKept(std::move(incident), dated ? eve_ns : kNoTime, dated ? -1 : 1231 * 86400 + 23 * 3600 + 3300));
  }
}

TEST(EventTies, WithoutAnEndNothingIsTooLate) {
  Incident incident = TwoHosts();  // what ran on may have printed no time any more
  EXPECT_TRUE(IsKept(std::move(incident), kBegin + 72 * 3600 * kSecond));
}

}  // namespace
}  // namespace tacet
