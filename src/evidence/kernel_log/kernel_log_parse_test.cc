// SPDX-License-Identifier: Apache-2.0
#include "evidence/kernel_log/kernel_log_parse.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "evidence/format.h"

namespace tacet {
extern const Format kKernelLogFormat;

namespace {

using Kind = KernelRecord::Kind;
using Shape = KernelLine::Shape;

std::string SampleFolder() { return std::string(TACET_SOURCE_DIR) + "/src/evidence/kernel_log/samples/"; }

std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Fragment Read(std::string_view bytes) {
  Fragment out;
  kKernelLogFormat.read({"dmesg.txt", bytes, false}, out);
  EXPECT_EQ(out.bytes.total, bytes.size());
  EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, bytes.size());
  return out;
}
Fragment ReadSample(const std::string& name) { return Read(Slurp(SampleFolder() + name)); }

// 2026-11-15 00:15:37 UTC
constexpr int64_t kMoment = int64_t{1794701737} * 1'000'000'000;

TEST(KernelLogTime, EveryFormOfTimeIsRead) {
  struct Case {
    const char* line;
    Shape shape;
    int64_t wall_ns;
    const char* host;
    const char* message;
  } cases[] = {
      {"[  146.183052] hello: x", Shape::kernel, kKernelTimeUnknown, "", "hello: x"},
      {"[12345.678] hello", Shape::loose, kKernelTimeUnknown, "", "hello"},
      {"[  146.183052 <    0.000012>] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"[  +0.000012] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"[Nov15 00:15] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"[Sun Nov 15 00:15:37 2026] hello", Shape::kernel, kMoment, "", "hello"},
      {"[Sun Nov  1 00:15:37 2026] hello", Shape::kernel, kMoment - int64_t{14} * 86400 * 1'000'000'000, "", "hello"},
      {"2026-11-15T00:15:37,123456+00:00 hello", Shape::kernel, kMoment + 123'456'000, "", "hello"},
      {"2026-11-15T01:15:37,000000+01:00 hello", Shape::kernel, kMoment, "", "hello"},
      {"2026-11-14T17:15:37-0700 node7 kernel: hello", Shape::kernel, kMoment, "node7", "hello"},
      {"2026-11-15T00:15:37.500000+00:00 node7 kernel: [  146.183052] hello", Shape::kernel, kMoment + 500'000'000,
       "node7", "hello"},
      {"Nov 15 00:15:37 node7 kernel: hello", Shape::kernel, kKernelTimeUnknown, "node7", "hello"},
      {"Nov  5 00:15:37.123456 node7 kernel: [  146.183052] hello", Shape::kernel, kKernelTimeUnknown, "node7",
       "hello"},
      {"Sun 2026-11-15 00:15:37 UTC node7.a.b kernel: hello", Shape::kernel, kMoment, "node7.a.b", "hello"},
      {"1794701737.250000 node7 kernel: hello", Shape::kernel, kMoment + 250'000'000, "node7", "hello"},
      {"[  146.183052] node7 kernel: hello", Shape::kernel, kKernelTimeUnknown, "node7", "hello"},
      {"<4>[  146.183052] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"kern  :warn  : [  146.183052] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"[  146.183052][  T812] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"6,339,5140900,-;hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"node7: [  146.183052] hello", Shape::kernel, kKernelTimeUnknown, "node7", "hello"},
      {"3: [  146.183052] hello", Shape::kernel, kKernelTimeUnknown, "", "hello"},
      {"Nov 15 00:15:37 node7 systemd[1]: hello", Shape::other, kKernelTimeUnknown, "node7", "hello"},
      {"hello", Shape::bare, kKernelTimeUnknown, "", "hello"},
      {"2026-11-15 00:15:37,123 INFO train: step", Shape::bare, kKernelTimeUnknown, "",
       "2026-11-15 00:15:37,123 INFO train: step"},
      {"[2026-11-15 00:15:37] x", Shape::bare, kKernelTimeUnknown, "", "[2026-11-15 00:15:37] x"},
      {"[3/30] Building", Shape::bare, kKernelTimeUnknown, "", "[3/30] Building"},
  };
  for (const Case& c : cases) {
    const KernelLine line = ParseKernelLine(c.line);
    EXPECT_EQ(int(line.shape), int(c.shape)) << c.line;
    EXPECT_EQ(line.wall_ns, c.wall_ns) << c.line;
    EXPECT_EQ(line.host, c.host) << c.line;
    EXPECT_EQ(line.message, c.message) << c.line;
  }
}

TEST(KernelLogTime, ImpossibleTimesAreNoTimes) {
  EXPECT_EQ(ParseKernelLine("[Sun Nov 15 99:15:37 2026] x").wall_ns, kKernelTimeUnknown);
  EXPECT_EQ(ParseKernelLine("[Sun Nov 15 00:15:37 999999999] x").wall_ns, kKernelTimeUnknown);
  EXPECT_EQ(ParseKernelLine("[Sun Nov 99 00:15:37 2026] x").wall_ns, kKernelTimeUnknown);
}

TEST(KernelLogOom, TheLinesOfOneKillAreOneEvent) {
  const Fragment fragment = ReadSample("dmesg_cgroup_oom.txt");
  ASSERT_EQ(fragment.events.size(), 1u);
  const Event& event = fragment.events[0];
  EXPECT_EQ(event.kind, EventKind::oom_kill);
  EXPECT_EQ(event.pid, 1533);
  EXPECT_EQ(event.As<OomKill>().process, "python3");
  EXPECT_EQ(event.As<OomKill>().limit, MemoryLimit::cgroup);
  EXPECT_EQ(event.As<OomKill>().resident_bytes, int64_t{3041896 + 306440 + 91776} * 1024);
  EXPECT_EQ(event.source.line, 5u);
  EXPECT_EQ(event.speaker, kNobody);
  EXPECT_EQ(event.wall_ns, kNoTime);
  EXPECT_TRUE(event.text.starts_with("Memory cgroup out of memory: Killed process 1533"));
  EXPECT_TRUE(event.text.ends_with("(limit of cgroup /lab)")) << event.text;
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(KernelLogOom, OlderKernelsTellTheLimitOnALineBefore) {
  const Fragment fragment = ReadSample("dmesg_host_oom_old.txt");
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].pid, 1533);
  EXPECT_EQ(fragment.events[0].As<OomKill>().limit, MemoryLimit::host);
  EXPECT_EQ(fragment.events[0].source.line, 4u);
  EXPECT_EQ(fragment.events[1].pid, 1702);
  EXPECT_EQ(fragment.events[1].As<OomKill>().process, "python (rank 3)");
  EXPECT_EQ(fragment.events[1].As<OomKill>().limit, MemoryLimit::cgroup);
  EXPECT_TRUE(fragment.events[1].text.ends_with("(limit of cgroup /slurm/uid_1000/job_77)"));
}

TEST(KernelLogOom, HostsAreKeptApartEvenWithEqualPids) {
  const Fragment fragment = ReadSample("pdsh_two_nodes.txt");
  ASSERT_EQ(fragment.events.size(), 2u);
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[fragment.events[0].speaker].host, "node7");
  EXPECT_EQ(fragment.events[0].As<OomKill>().limit, MemoryLimit::host);
  EXPECT_EQ(fragment.events[0].As<OomKill>().resident_bytes, 23 * 1024);
  EXPECT_EQ(fragment.speakers[fragment.events[1].speaker].host, "node8");
  EXPECT_EQ(fragment.events[1].As<OomKill>().limit, MemoryLimit::cgroup);
  EXPECT_FALSE(fragment.speakers[0].rank.known());
}

TEST(KernelLogOom, TheReaperAloneStillTellsTheKill) {
  const Fragment fragment =
      Read("[ 9890.100000] oom_reaper: reaped process 1702 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].pid, 1702);
}

TEST(KernelLogOom, APidThatIsKilledAgainLaterIsAnotherProcess) {
  const std::string kill =
      "[    1.000000] python invoked oom-killer: gfp_mask=0xcc0\n"
      "[    1.000001] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=77,uid=0\n"
      "[    1.000002] Out of memory: Killed process 77 (python) total-vm:3kB, anon-rss:3kB\n"
      "[    1.000003] oom_reaper: reaped process 77 (python), now anon-rss:0kB\n";
  const Fragment fragment = Read(kill + kill);
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].source.line, 3u);
  EXPECT_EQ(fragment.events[1].source.line, 7u);
}

TEST(KernelLogGpu, XidsOfEveryForm) {
  const Fragment fragment = ReadSample("dmesg_ctime_gpu.txt");
  std::vector<const Event*> xids;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::xid) xids.push_back(&event);
  ASSERT_EQ(xids.size(), 4u);
  EXPECT_EQ(xids[0]->As<Xid>().number, 79);
  EXPECT_EQ(xids[0]->As<Xid>().pci, "0000:3b:00");
  EXPECT_EQ(xids[0]->pid, -1);
  EXPECT_EQ(xids[0]->wall_ns, kMoment);
  EXPECT_EQ(xids[0]->As<Xid>().times, 2) << "the driver says it twice";
  EXPECT_EQ(xids[1]->As<Xid>().number, 94);
  EXPECT_EQ(xids[1]->As<Xid>().pci, "0000:86:00");
  EXPECT_EQ(xids[1]->pid, 7194);
  EXPECT_EQ(xids[2]->As<Xid>().number, 45);
  EXPECT_EQ(xids[2]->As<Xid>().times, 2);
  EXPECT_EQ(xids[3]->pid, 7201) << "another process of the same GPU is another event";
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(KernelLogGpu, OldXidLinesWithoutPciPrefix) {
  const Fragment fragment = ReadSample("kmsg_raw.txt");
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[1].kind, EventKind::xid);
  EXPECT_EQ(fragment.events[1].As<Xid>().number, 31);
  EXPECT_EQ(fragment.events[1].As<Xid>().pci, "0000:01:00");
}

TEST(KernelLogGpu, SwitchErrorsAreNvlinkErrors) {
  const Fragment fragment = ReadSample("dmesg_ctime_gpu.txt");
  std::vector<const Event*> found;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::nvlink_error) found.push_back(&event);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]->As<Xid>().number, 20034);
  EXPECT_EQ(found[0]->As<Xid>().pci, "0000:c2:00");
  EXPECT_EQ(found[0]->As<Xid>().fatal, true);
  EXPECT_EQ(found[1]->As<Xid>().number, 19084);
  EXPECT_EQ(found[1]->As<Xid>().fatal, false);
}

TEST(KernelLogGpu, ADriverThatOnlySpeaksOfNvlinkReportsNoError) {
  const Fragment fragment = Read(
      "[  146.183052] NVRM:      0    4115 NVLINK_INBAND_RECEIVE 0x0000000000000000 0x0000000000000000\n"
      "[  146.183053] NVRM: knvlinkCoreShutdown: NVLink fatal error detected on link 4\n");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::nvlink_error);
  EXPECT_EQ(fragment.events[0].source.line, 2u);
}

TEST(KernelLogHardware, PcieErrorsByDeviceAndSeverity) {
  const Fragment fragment = ReadSample("dmesg_ctime_gpu.txt");
  std::vector<const Event*> found;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::pcie_error) found.push_back(&event);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]->As<HardwareError>().device, "0000:3b:00.0");
  EXPECT_EQ(found[0]->As<HardwareError>().severity, ErrorSeverity::fatal);
  EXPECT_EQ(found[1]->As<HardwareError>().device, "0000:3a:00.0");
  EXPECT_EQ(found[1]->As<HardwareError>().severity, ErrorSeverity::fatal);
  EXPECT_EQ(found[2]->As<HardwareError>().device, "0000:5e:00.0");
  EXPECT_EQ(found[2]->As<HardwareError>().severity, ErrorSeverity::corrected);
  EXPECT_EQ(found[2]->As<HardwareError>().times, 2);
}

TEST(KernelLogHardware, MemoryErrors) {
  const Fragment fragment = ReadSample("dmesg_ctime_gpu.txt");
  std::vector<const Event*> found;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::ecc_error) found.push_back(&event);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]->As<HardwareError>().device, "MC0");
  EXPECT_EQ(found[0]->As<HardwareError>().severity, ErrorSeverity::corrected);
  EXPECT_EQ(found[0]->As<HardwareError>().times, 3);
  KernelRecord record;
  ASSERT_EQ(ParseHardwareMessage(
                "Memory failure: 0x1f2b7: Sending SIGBUS to python:4711 due to hardware memory corruption", &record),
            KernelMessage::record);
  EXPECT_EQ(record.pid, 4711);
  EXPECT_EQ(record.value, 1);
  ASSERT_EQ(ParseHardwareMessage("EDAC MC1: 1 UE memory read error on DIMM", &record), KernelMessage::record);
  EXPECT_EQ(record.value, 1);
  ASSERT_EQ(ParseHardwareMessage("amdgpu 0000:05:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
                                 &record),
            KernelMessage::record);
  EXPECT_EQ(record.subject, "0000:05:00.0");
}

TEST(KernelLogFaults, AFatalErrorOfAnAmdGpuIsAFaultOfThatGpu) {
  const Fragment fragment =
      Read("[   10.000000] amdgpu 0000:26:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::xid);
}

// VMware's host tells so what it told a virtual machine of that machine's adapter.
TEST(KernelLogLinks, TheAdapterOfAVirtualMachineIsNoLinkOfTheHost) {
  EXPECT_TRUE(Read("[    1.000000] userif-5: sent link down event.\n[    1.000013] userif-5: sent link up event.\n")
                  .events.empty());
}

TEST(KernelLogFaults, SegfaultsTrapsAndHungTasksWithTheirHosts) {
  const Fragment fragment = ReadSample("journal_faults.txt");
  ASSERT_EQ(fragment.events.size(), 6u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::segfault);
  EXPECT_EQ(fragment.events[0].As<Segfault>().process, "pt_main_thread");
  EXPECT_EQ(fragment.events[0].pid, 48210);
  EXPECT_EQ(fragment.speakers[fragment.events[0].speaker].host, "node7");
  EXPECT_EQ(fragment.events[1].kind, EventKind::segfault);
  EXPECT_EQ(fragment.events[1].As<Segfault>().process, "python3");
  EXPECT_EQ(fragment.speakers[fragment.events[1].speaker].host, "node8");
  EXPECT_EQ(fragment.events[2].kind, EventKind::hung_task);
  EXPECT_EQ(fragment.events[2].pid, 4711);
  EXPECT_EQ(fragment.events[2].As<HungTask>().seconds, 120);
  EXPECT_EQ(fragment.events[3].As<HungTask>().seconds, 241);
  EXPECT_EQ(fragment.events[4].As<HungTask>().process, "kworker/13:2");
  EXPECT_EQ(fragment.events[4].pid, 4055883);
  EXPECT_EQ(fragment.events[5].pid, 4799);
  EXPECT_EQ(fragment.events[5].As<HungTask>().seconds, 22);
}

TEST(KernelLogFaults, Arm64FaultsAndLinesWithoutTime) {
  const Fragment fragment = ReadSample("dmesg_no_time.txt");
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].As<Xid>().number, 119);
  EXPECT_EQ(fragment.events[0].pid, 2024380);
  EXPECT_EQ(fragment.events[1].kind, EventKind::segfault);
  EXPECT_EQ(fragment.events[1].pid, 4242);
}

TEST(KernelLogLinks, EveryFormNamesItsDeviceAndOnlyChangesCount) {
  const Fragment fragment = ReadSample("dmesg_iso_links.txt");
  const std::vector<std::pair<EventKind, std::string>> expected = {
      {EventKind::link_down, "ens1f0np0"}, {EventKind::link_up, "ens1f0np0"}, {EventKind::link_down, "ens1f0np0"},
      {EventKind::link_down, "enp1s0f0"},  {EventKind::link_down, "ib0"},     {EventKind::link_up, "ib0"},
      {EventKind::link_down, "ens1f0"},    {EventKind::link_down, "eth2"},    {EventKind::link_down, "0000:5c:00.0"},
  };
  // The firmware of an adapter that stopped is more than a link that is down.
  ASSERT_EQ(fragment.events.size(), expected.size() + 1);
  EXPECT_EQ(fragment.events.back().As<SiteNote>().id, "adapter-fatal");
  EXPECT_EQ(fragment.events.back().As<SiteNote>().subject, "0000:0d:00.0");
  EXPECT_TRUE(fragment.events.back().As<SiteNote>().by_kernel);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(int(fragment.events[i].kind), int(expected[i].first)) << i;
    EXPECT_EQ(fragment.events[i].As<NetworkLink>().device, expected[i].second) << i;
  }
  EXPECT_EQ(fragment.events[0].wall_ns, kMoment + 123'456'000);
}

TEST(KernelLogSite, OtherDriversAndDisksAreTold) {
  const Fragment fragment = Read(
      "[  100.000000] nvme nvme3: I/O 812 QID 14 timeout, reset controller\n"
      "[  101.000000] nvme nvme3: I/O 813 QID 15 timeout, reset controller\n"
      "[  102.000000] XFS (nvme2n1): Please unmount the filesystem and rectify the problem(s)\n"
      "[  103.000000] NVRM: Xid (PCI:0000:ba:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot "
      "Required)\n");
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].As<SiteNote>().id, "local-disk");
  EXPECT_EQ(fragment.events[0].As<SiteNote>().subject, "nvme3");
  EXPECT_EQ(fragment.events[1].As<SiteNote>().id, "gpu-needs-reboot");
}

TEST(KernelLogSite, WhatHealthyHostsPrintIsNone) {
  const Fragment fragment = Read(
      "[  100.000000] mlx5_core 0000:b5:00.0: Port module event: module 0, Cable plugged\n"
      "[  101.000000] TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.\n");
  EXPECT_TRUE(fragment.events.empty());
}

TEST(KernelLogLinks, ALinkThatIsDownTwiceIsToldOnce) {
  const Fragment fragment =
      Read("[    1.000000] eth0: Link is Down\n[    2.000000] eth0: Link is Down\n[    3.000000] eth1: Link is Down\n");
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].As<NetworkLink>().times, 2);
}

TEST(KernelLogLinks, WordsAboutLinksInOtherLogsAreNoLinkEvents) {
  const Fragment fragment = Read("eth0: link down\n");
  EXPECT_TRUE(fragment.events.empty());
  EXPECT_EQ(fragment.bytes.not_understood, 16u);
}

TEST(KernelLogLevels, RawPrioritiesColoursAndCallersAreTakenOff) {
  const Fragment fragment = ReadSample("dmesg_raw_levels.txt");
  ASSERT_EQ(fragment.events.size(), 3u);
  EXPECT_EQ(fragment.events[0].As<Xid>().number, 13);
  EXPECT_EQ(fragment.events[1].kind, EventKind::link_down);
  EXPECT_EQ(fragment.events[1].As<NetworkLink>().device, "eth0");
  EXPECT_EQ(fragment.events[2].As<Xid>().number, 43);
}

TEST(KernelLogRecognise, EverySampleIsRecognised) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SampleFolder())) {
    const std::string text = Slurp(entry.path());
    EXPECT_EQ(kKernelLogFormat.recognise(std::string_view(text).substr(0, kPrefixBytes), "x"), Recognition::yes)
        << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 8);
}

TEST(KernelLogRecognise, SaysNoToOtherTools) {
  const std::string_view others[] = {
      "",
      "\n\n",
      "[rank0]:[E1115 00:10:26.1 ProcessGroupNCCL.cpp:688] [Rank 0] Watchdog caught collective operation timeout\n",
      "node7:123:456 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\nnode7:123:456 [0] NCCL WARN NET/IB : Got "
      "completion error, link down\n",
      "2026-11-15 00:15:37,123 INFO train: step 3\n2026-11-15 00:15:38,123 INFO train: step 4\n",
      "Timeout (0:00:28)!\nThread 0x00007f6cdb6ba6c0 (most recent call first):\n  <no Python frame>\n",
      "[{\"name\": \"x\"}]",
      "{\"traceEvents\": []}",
      "#       size         count      type   redop\n     1024           256     float     sum\n",
      "[3/30] Building CXX object\n[4/30] Linking\n",
      "[1699999999.123456] [gpu17:4121:0]   sock.c:323  UCX  ERROR connect(fd=54) failed: Connection refused\n"
      "[1699999999.123502] [gpu17:4121:0]   sock.c:323  UCX  ERROR connect(fd=55) failed: Connection refused\n",
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
      "\x80\x02}q\x01(X\x07\x00\x00\x00"
      "entries",
  };
  for (const auto text : others)
    EXPECT_EQ(kKernelLogFormat.recognise(text, "dmesg.txt"), Recognition::no) << text.substr(0, 80);
}

TEST(KernelLogRecognise, AKillInsideAJobsLogIsMaybe) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "step " + std::to_string(i) + "\n";
  text += "Memory cgroup out of memory: Killed process 1533 (python3) total-vm:3kB, anon-rss:3kB\n";
  EXPECT_EQ(kKernelLogFormat.recognise(text, "x"), Recognition::maybe);
}

TEST(KernelLogHostile, EveryPrefixAddsUp) {
  for (const auto& entry : std::filesystem::directory_iterator(SampleFolder())) {
    const std::string text = Slurp(entry.path());
    for (size_t cut = 0; cut <= text.size(); ++cut) Read(std::string_view(text).substr(0, cut));
  }
}

TEST(KernelLogHostile, NumbersBeyondBoundsAreLeftOut) {
  const Fragment fragment = Read(
      "[    1.000000] NVRM: Xid (PCI:0000:3b:00): 99999999999999999999, x\n"
      "[    1.000000] Killed process 99999999999999999999 (python)\n"
      "[    1.000000] EDAC MC0: 99999999999999 CE memory\n"
      "[    1.000000] Killed process 5 (python) total-vm:1kB, anon-rss:9223372036854775807kB, "
      "file-rss:9223372036854775807kB\n");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].pid, 5);
  EXPECT_EQ(fragment.events[0].As<OomKill>().resident_bytes, -1);
}

TEST(KernelLogHostile, AMillionRepeatsAreOneEvent) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "[    1.000000] NVRM: Xid (PCI:0000:3b:00): 119, pid=7, name=x, Timeout\n";
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].As<Xid>().times, 10000);
  EXPECT_EQ(fragment.events[0].source.line, 1u);
}

TEST(KernelLogPublic, ARecordedLogOfAnotherProjectIsRead) {
  const std::string path = std::string(TACET_SOURCE_DIR) + "/../shared/public/gpud/dmesg-with-xid-119.log";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not here";
  const Fragment fragment = Read(Slurp(path));
  ASSERT_EQ(fragment.events.size(), 3u);  // three processes met it
  for (const Event& event : fragment.events) {
    EXPECT_EQ(event.kind, EventKind::xid);
    EXPECT_EQ(event.As<Xid>().number, 119);
    EXPECT_EQ(event.As<Xid>().pci, "0000:9b:00");
  }
  EXPECT_EQ(fragment.events[0].As<Xid>().times, 3);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(KernelLogParse, TellsTheDeviceThatTheIommuRefused) {
  for (const std::string_view line :
       {"[Mon Jan 19 18:30:00 2026] AMD-Vi: Event logged [IO_PAGE_FAULT device=21:00.0 domain=0x0042 "
        "address=0xf8001000 flags=0x0030]\n",
        "[Mon Jan 19 18:30:00 2026] nvidia 0000:21:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0042 "
        "address=0xf8001000 flags=0x0030]\n",
        "[Mon Jan 19 18:30:00 2026] DMAR: [DMA Read NO_PASID] Request device [21:00.0] fault addr 0xf8001000 [fault "
        "reason 0x06] PTE Read access is not set\n"}) {
    const Fragment out = Read(line);
    ASSERT_EQ(out.events.size(), 1u) << line;
    EXPECT_EQ(out.events[0].kind, EventKind::iommu_fault);
    EXPECT_TRUE(out.events[0].As<IommuFault>().pci.ends_with("21:00.0")) << out.events[0].As<IommuFault>().pci;
  }
  EXPECT_TRUE(Read("[    0.5] DMAR: IOMMU enabled\n[    0.6] AMD-Vi: Interrupt remapping enabled\n").events.empty());
}

TEST(KernelLogGpu, AResetOfAmdgpuThatFailsOrLosesMemoryIsAFault) {
  for (const char* line :
       {"[22344.295194] amdgpu 0000:03:00.0: amdgpu: GPU mode1 reset failed\n",
        "[22344.456139] amdgpu 0000:03:00.0: amdgpu: ASIC reset failed with error, -121 for drm dev, x\n",
        "[22348.746284] amdgpu 0000:03:00.0: amdgpu: GPU reset succeeded, trying to resume\n",
        "[22348.746525] [drm] VRAM is lost due to GPU reset!\n"}) {
    const Fragment fragment = Read(line);
    ASSERT_EQ(fragment.events.size(), 1u) << line;
    EXPECT_EQ(fragment.events[0].kind, EventKind::xid) << line;
  }
  EXPECT_TRUE(Read("[    8.105518] amdgpu 0000:03:00.0: amdgpu: GPU mode1 reset\n").events.empty())
      << "the driver resets the GPU as it loads";
}

TEST(KernelLogGpu, TheBusLineAloneIsEnough) {
  const Fragment fragment = Read("[ 1843.30] NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.\n");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].As<Xid>().pci, "0000:b3:00");
}

TEST(KernelLogStorage, TellsWhichServerIsGoneAndWhichIsBack) {
  const Fragment out = Read(
      "2026-01-20T09:14:02.331200+00:00 wk3 kernel: nfs: server filer-b not responding, still trying\n"
      "2026-01-20T09:14:03.000000+00:00 wk3 kernel: Lustre: work-OST0003-osc-ff11: Connection to work-OST0003 (at "
      "10.1.0.3@o2ib) was lost; in progress operations using this service will wait for recovery to complete\n"
      "2026-01-20T09:15:02.331200+00:00 wk3 kernel: nfs: server filer-b OK\n"
      "2026-01-20T09:16:02.331200+00:00 wk3 kernel: nfs: server filer-b OK\n"
      "2026-01-20T09:17:02.331200+00:00 wk3 kernel: ceph: mds0 hung\n"
      "2026-01-20T09:18:02.331200+00:00 wk3 kernel: Lustre: work-OST0003-osc-ff11: haven't heard from client\n");
  ASSERT_EQ(out.events.size(), 4u);
  EXPECT_EQ(out.events[0].kind, EventKind::storage_lost);
  EXPECT_EQ(out.events[0].As<StorageLoss>().system, "NFS");
  EXPECT_EQ(out.events[0].As<StorageLoss>().target, "filer-b");
  EXPECT_EQ(out.events[1].As<StorageLoss>().target, "work-OST0003");
  EXPECT_EQ(out.events[1].As<StorageLoss>().server, "10.1.0.3@o2ib");
  EXPECT_EQ(out.events[2].kind, EventKind::storage_back);
  EXPECT_EQ(out.events[3].As<StorageLoss>().system, "Ceph");
}

TEST(KernelLogStorage, AnOperationOfLustreThatFailsTellsItsServer) {
  const auto read = [](const std::string& code) {
    return Read(
               "Jan 20 09:14:02 wk3 kernel: LustreError: 11-0: work-OST0012-osc-ff11: operation ost_read to node "
               "10.1.1.1@o2ib failed: rc = " +
               code + "\n")
        .events;
  };
  ASSERT_EQ(read("-107").size(), 1u);
  EXPECT_EQ(read("-107")[0].kind, EventKind::storage_lost);
  EXPECT_EQ(read("-107")[0].As<StorageLoss>().target, "work-OST0012");
  EXPECT_EQ(read("-107")[0].As<StorageLoss>().server, "10.1.1.1@o2ib");
  EXPECT_TRUE(read("-13").empty()) << "the server answers, and refuses";
}

TEST(KernelLogAmd, TheLineBelowAFaultTellsWhoseItWas) {
  const Fragment out = Read(
      "[Thu Jul  2 19:44:01 2026] amdgpu 0000:c9:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24)\n"
      "[Thu Jul  2 19:44:01 2026] amdgpu 0000:c9:00.0: amdgpu:  for process python3 pid 5601 thread python3 pid "
      "5601)\n");
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].pid, 5601);
}

TEST(KernelLogHardware, TheDetailsOfAnAnnouncedPcieErrorAreNoSecondOne) {
  const std::string one =
      "[    5.100231] pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: 0000:40:01.1\n"
      "[    5.100231] pcieport 0000:40:01.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer\n";
  const auto times = [](const std::string& text) {
    const Fragment fragment = Read(text);
    return fragment.events.size() == 1 ? fragment.events[0].As<HardwareError>().times : -1;
  };
  EXPECT_EQ(times(one), 1);
  EXPECT_EQ(times(one + one), 2);
  // Without an announcement each line is an error of its own.
  const std::string bare =
      "[    5.100231] nvidia 0000:5e:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n";
  EXPECT_EQ(times(bare + bare), 2);
}

TEST(KernelLogHungTask, TheFirstFrameOfAModuleTellsWhereItWaits) {
  const std::string head = "[  721.028170] INFO: task tool:5403 blocked for more than 120 seconds.\n";
  // The records view the text.
  const std::string text =
      head +
      "[  721.028346] Call Trace:\n[  721.028360]  [<ffffffff8170e16e>] ? left_over+0xe/0x10 [nvme]\n"
      "[  721.028368]  [<ffffffff8170de85>] schedule+0x35/0x80\n"
      "[  721.028422]  [<ffffffffa09c376e>] uvm_gpu_retain_by_uuid+0x1e/0x40 [nvidia_uvm]\n"
      "[  721.028430]  ioctl+0x1e/0x40 [other]\n";
  const KernelLog driver = ParseKernelLog(text);
  ASSERT_EQ(driver.records.size(), 1u);
  EXPECT_EQ(driver.records[0].module, "nvidia_uvm");
  EXPECT_EQ(ParseKernelLog(head + "[  721.028368]  schedule+0x35/0x80\n").records[0].module, "");
}

TEST(KernelLogAdapter, WhatTheFirmwareRefusesIsAnError) {
  const KernelLog log = ParseKernelLog(
      "[33058.244455] infiniband mlx5_0: create_mkey_warn:158:(pid 0): async reg mr failed. status -121\n"
      "[33059.091472] mlx5_core 0000:41:00.0: mlx5_cmd_out_err:800:(pid 2335): CREATE_MKEY(0x200) op_mod(0x0) failed, "
      "status limits exceeded(0x8), syndrome (0x18af6), err(-12)\n"
      "[33060.000000] mlx5_core 0000:41:00.0: mlx5_cmd_out_err:800:(pid 12): QUERY_VPORT(0x750) op_mod(0x0) failed, "
      "status bad parameter(0x3), syndrome (0x1), err(-22)\n"
      "[33061.000000] mlx5_core 0000:41:00.0: firmware version: 20.31.1014\n");
  ASSERT_EQ(log.records.size(), 2u) << "a query that is refused is no harm";
  EXPECT_EQ(log.records[0].subject, "mlx5_0");
  EXPECT_EQ(log.records[1].subject, "0000:41:00.0");
  EXPECT_EQ(log.records[1].value, 12);
}

TEST(KernelLogXid, AFrameAroundAnXidIsNone) {
  const KernelLog log = ParseKernelLog(
      "[  10.000001] NVRM: _kgspLogXid119: ********************* GSP Timeout *********************\n"
      "[  10.000002] NVRM: Xid (PCI:0001:6c:00): 119, pid=10200, name=python3, Timeout after 45s\n"
      "[  10.000003] NVRM: _kgspLogXid119: ***********************************************\n");
  ASSERT_EQ(log.records.size(), 1u);
  EXPECT_EQ(log.records[0].subject, "0001:6c:00");
}

}  // namespace
}  // namespace tacet
