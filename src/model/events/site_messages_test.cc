// SPDX-License-Identifier: Apache-2.0
#include "model/events/site_messages.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace tacet {
namespace {

std::string IdOf(std::string_view line) {
  const SiteMatch match = ClassifySiteMessage(line);
  return match.message ? std::string(match.message->id) : "";
}

TEST(SiteMessages, HaveAnIdOfTheirOwnAndSayWhatToDo) {
  std::set<std::string_view> ids;
  for (const SiteMessage& message : AllSiteMessages()) {
    EXPECT_TRUE(ids.insert(message.id).second) << message.id;
    EXPECT_EQ(FindSiteMessage(message.id), &message);
    EXPECT_FALSE(message.sentence.empty()) << message.id;
    EXPECT_FALSE(message.sentence.ends_with('.')) << message.id;
    EXPECT_EQ(message.steps[0].empty(), message.role == SiteRole::harmless) << message.id;
    EXPECT_TRUE(message.cleared_by.empty() || FindSiteMessage(message.cleared_by)) << message.id;
  }
  EXPECT_EQ(FindSiteMessage("no such message"), nullptr);
}

TEST(SiteMessages, AreKnownByTheirWords) {
  EXPECT_EQ(IdOf("[88.1] mlx5_core 0000:b5:00.0: Port module event[error]: module 0, Cable error, Bad or shorted "
                 "cable/module"),
            "cable-bad");
  EXPECT_EQ(IdOf("[88.1] mlx5_core 0000:b5:00.0: Port module event[error]: module 0, Cable error, High Temperature"),
            "module-hot");
  EXPECT_EQ(IdOf("| Warning | GPU 3 had uncorrectable memory errors and row remapping failed. |"), "remap-failed");
  EXPECT_EQ(IdOf("error: Nodes n[4-5] not responding, setting DOWN"), "slurm-node-down");
  EXPECT_EQ(IdOf("mount.nfs: Connection timed out"), "mount-failed");
  EXPECT_EQ(IdOf("Output: mount.nfs: Connection timed out"), "");  // below the event that tells of the pod
  EXPECT_EQ(IdOf("nvidia-container-cli: device error: GPU-17: unknown device: unknown"), "container-no-device");
  EXPECT_EQ(IdOf("NVRM: GPU0 nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x63)"),
            "gpu-needs-reset");
  EXPECT_EQ(IdOf("pbsdsh: error from tm_poll() 17002: spawn failed on node ash12"), "task-not-started");
  EXPECT_EQ(ClassifySiteMessage("shell[2]: rank 2 on host ash12: failed to launch: No such file").subject, "ash12");
}

TEST(SiteMessages, KnowACopyWithOtherDataByItsMeaning) {
  for (const std::string_view line :
       {"Verification error @ element 17: val = 0.000000, ref = 68.000000",
        "cuda:0 -> cuda:2: p2p test failed, values differ (max difference 3.71e+02)",
        "[pair check] peer-to-peer 3/5: data mismatch in 4096 of 8192 words", "copy GPU 0 -> GPU 1: 118 wrong elements",
        "transfer of 64 MiB, gpu2 to gpu6: checksum not equal"})
    EXPECT_EQ(IdOf(line), "copied-data-wrong") << line;
  for (const std::string_view line :
       {"cuda:0 -> cuda:2: p2p test passed, values equal", "copy GPU 0 -> GPU 1: 0 wrong elements",
        "p2p: tensor shape mismatch, data of rank 3 has 12 rows", "copying data from a wrong folder",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", "copy GPU 0 -> GPU 1: 23.9 GB/s"})
    EXPECT_EQ(IdOf(line), "") << line;
}

TEST(SiteMessages, LeaveHealthyLinesAlone) {
  for (const std::string_view line :
       {"blaunch: task 3: could not start the task: daemon busy, retrying", "launcher: started task 3 on node ash12",
        "mlx5_core 0000:b5:00.0: Port module event: module 0, Cable plugged", "step 400 loss 1.71 lr 1e-4",
        "mlx5_core 0000:b5:00.0: mlx5_pcie_event:299:(pid 9): PCIe slot advertised sufficient power (75W).",
        "error: Nodes n4 not responding", "nfs: server nas01 OK", "        Remapping Failure Occurred        : No",
        "    GPU Recovery Action                   : None",
        "TCP: Possible SYN flooding on port 29500. Sending cookies."})
    EXPECT_EQ(IdOf(line), "") << line;
}

TEST(SiteMessages, KnowWhatHealthyHostsPrintToo) {
  for (const std::string_view line :
       {"Readiness probe failed: dial tcp 10.2.0.4:8000: connect: connection refused",
        "nvme nvme3: I/O tag 812 (1032c) QID 14 timeout, completion polled",
        "NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kern_bus.c:412",
        "        HW Slowdown                       : Not Active", "Node n4 now responding"}) {
    const SiteMatch match = ClassifySiteMessage(line);
    ASSERT_NE(match.message, nullptr) << line;
    EXPECT_EQ(match.message->role, SiteRole::harmless) << line;
  }
}

TEST(SiteMessages, NameTheirSubject) {
  EXPECT_EQ(ClassifySiteMessage("mlx5_core 0000:5e:00.0: poll_health:958:(pid 0): Fatal error 1 detected").subject,
            "0000:5e:00.0");
  EXPECT_EQ(ClassifySiteMessage("requeue JobId=7 due to failure of node n12").subject, "n12");
  EXPECT_EQ(ClassifySiteMessage("   GUID 0xfc6a port 14: [SymbolErrorCounter == 81220]").subject, "0xfc6a port 14");
  const SiteMessage* adapter = FindSiteMessage("adapter-fatal");
  ASSERT_NE(adapter, nullptr);
  EXPECT_EQ(SiteSentence(*adapter, "0000:5e:00.0"), "the firmware of network adapter 0000:5e:00.0 failed");
  EXPECT_EQ(SiteSentence(*adapter, ""), "the firmware of the network adapter failed");
}

TEST(SiteMessages, ReadHostileLinesWithoutHarm) {
  EXPECT_EQ(IdOf(""), "");
  EXPECT_EQ(IdOf(":::"), "");
  EXPECT_EQ(IdOf(std::string(100'000, ':')), "");
  EXPECT_EQ(IdOf("NVRM: 0000:00"), "");
}

}  // namespace
}  // namespace tacet
