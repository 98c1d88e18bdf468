// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string_view>

#include "evidence/format.h"

namespace tacet {
extern const Format kKernelLogFormat;

namespace {

Fragment ReadKernel(std::string_view bytes) {
  Fragment out;
  kKernelLogFormat.read({"dmesg.txt", bytes, false}, out);
  return out;
}

TEST(KernelLostGpu, IsNamedByTheFirstOfItsThreeLines) {
  const Fragment lost = ReadKernel(
      "[  912.100145] NVRM: The NVIDIA GPU 0000:4f:00.0\n"
      "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
      "               NVRM: fallen off the bus and is not responding to commands.\n");
  ASSERT_EQ(lost.events.size(), 1u);
  EXPECT_TRUE(lost.events[0].As<Xid>().pci.starts_with("0000:4f:00")) << lost.events[0].As<Xid>().pci;
}

TEST(KernelLostGpu, ADeviceThatIsOnlyNamedIsNotLost) {
  EXPECT_TRUE(ReadKernel("[  912.100145] NVRM: The NVIDIA GPU 0000:4f:00.0 (PCI ID: 10de:2330)\n").events.empty());
}

TEST(KernelLostGpu, ALaterFaultIsNotGivenTheDeviceOfAnEarlierLine) {
  const Fragment later = ReadKernel(
      "[  912.100145] NVRM: The NVIDIA GPU 0000:4f:00.0\n"
      "[  912.100146] systemd[1]: a\n[  912.100147] systemd[1]: b\n[  912.100148] systemd[1]: c\n"
      "[ 1912.100149] NVRM: fallen off the bus and is not responding to commands.\n");
  ASSERT_EQ(later.events.size(), 1u);
  EXPECT_EQ(later.events[0].As<Xid>().pci, "");
}

TEST(KernelGpu, IntelsDriversTellOfAJobThatTimedOutAndWhose) {
  const Fragment lost = ReadKernel(
      "[ 5120.660211] xe 0000:18:00.0: [drm] GT0: Timedout job: seqno=4294967180, guc_id=4, flags=0x0 in python3 "
      "[30117]\n");
  ASSERT_EQ(lost.events.size(), 1u);
  EXPECT_EQ(lost.events[0].kind, EventKind::xid);
  EXPECT_EQ(lost.events[0].As<Xid>().pci, "0000:18:00");
  EXPECT_EQ(lost.events[0].As<Xid>().process, "python3");
  EXPECT_EQ(lost.events[0].pid, 30117);
  EXPECT_TRUE(
      ReadKernel("[    4.301772] xe 0000:18:00.0: [drm] Using GuC firmware from xe/bmg_guc_70.bin\n").events.empty());
}

TEST(KernelGpu, AFabricThatIsOutOfSyncIsNoBrokenLink) {
  const Fragment stale = ReadKernel(
      "[61.118831] NVRM: nvCheckOkFailedNoLog: Check failed: NVLink fabric state cached by the driver is out of sync "
      "[NV_ERR_FABRIC_STATE_OUT_OF_SYNC] (0x00000087) returned from status @ mem_multicast_fabric.c:2917\n");
  ASSERT_EQ(stale.events.size(), 1u);
  EXPECT_EQ(stale.events[0].kind, EventKind::fabric_down);
  EXPECT_EQ(stale.events[0].As<CudaRefusal>().fabric, FabricFault::out_of_sync);
}

TEST(KernelAdapter, ACommandThatItsDriverRefusesIsReadWithItsDevice) {
  const Fragment refused = ReadKernel(
      "[ 9021.440102] infiniband efa_1: Failed to process command ALLOC_PD (opcode 14) comp_status 1 err -12\n"
      "[ 9021.440108] infiniband efa_1: Failed to allocate pd[-12]\n");
  ASSERT_EQ(refused.events.size(), 1u);
  EXPECT_EQ(refused.events[0].kind, EventKind::rdma_failed);
  EXPECT_EQ(refused.events[0].As<RdmaFailure>().device, "efa_1");
  EXPECT_EQ(refused.events[0].As<RdmaFailure>().code, 12);
  EXPECT_TRUE(ReadKernel("[   12.100145] infiniband mlx5_0: set_mtu 4096\n").events.empty());
}

}  // namespace
}  // namespace tacet
