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
