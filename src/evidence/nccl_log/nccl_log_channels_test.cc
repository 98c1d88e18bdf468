// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_channels.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "evidence/nccl_log/nccl_log_hardware.h"
#include "evidence/nccl_log/nccl_log_import.h"

namespace tacet {
namespace {

// Lines of one process, or of several: "host:pid:tid" may stand before a message.
Fragment ReadLines(std::initializer_list<std::string_view> messages, const char* who = "gpu7:41:41") {
  std::string text;
  for (const std::string_view message : messages)
    text += std::string(who) + " [3] NCCL INFO " + std::string(message) + "\n";
  Fragment out;
  ReadNcclLog({"nccl.log", text, false}, out);
  EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, text.size());
  return out;
}

constexpr std::string_view kStart =
    "ncclCommInitRank comm 0x55 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 61000 commId 0x9 - Init START";
constexpr std::string_view kComplete =
    "ncclCommInitRank comm 0x55 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 61000 commId 0x9 - Init COMPLETE";

TEST(NcclLogChannels, KeepsThePlaceInRingsAndTrees) {
  const Fragment out = ReadLines({kStart, "Ring 00 : 2 -> 3 -> 4", "Ring 01 : 4 -> 3 -> 2",
                                  "Trees [0] 4/-1/-1->3->2 [1] 2/7/-1->3->4", kComplete});
  ASSERT_EQ(out.rank_channels.size(), 1u);
  const RankChannels& own = out.rank_channels[0];
  EXPECT_EQ(own.group_rank.value, 3);
  EXPECT_EQ(own.ranks, 8);
  ASSERT_EQ(own.rings.size(), 2u);
  EXPECT_EQ(own.rings[1].previous, 4);
  EXPECT_EQ(own.rings[1].next, 2);
  ASSERT_EQ(own.trees.size(), 2u);
  EXPECT_EQ(own.trees[1].up, 4);
  EXPECT_EQ(own.trees[1].down[1], 7);
}

TEST(NcclLogChannels, JoinsTheChannelsOfOneWay) {
  const Fragment out =
      ReadLines({kStart, kComplete, "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM",
                 "Channel 00/0 : 2[2] -> 3[3] [receive] via NET/IB/3/GDRDMA",
                 "Channel 01/0 : 3[3] -> 4[4] via P2P/CUMEM", "Channel 17/0 : 3[3] -> 4[4] via P2P/CUMEM",
                 "Channel 00/1 : 3[3] -> 4[4] via P2P/CUMEM/read", "Connected all rings, use ring PXN 1 GDR 1"});
  ASSERT_EQ(out.rank_channels.size(), 1u);
  const RankChannels& own = out.rank_channels[0];
  ASSERT_EQ(own.uses.size(), 3u);
  EXPECT_EQ(own.uses[1].channels.Count(), 3);
  EXPECT_TRUE(own.uses[1].channels.Has(17));
  EXPECT_TRUE(own.uses[2].point_to_point);
  EXPECT_EQ(own.uses[0].direction, ChannelUse::Direction::receive);
  EXPECT_EQ(out.transports[own.uses[0].transport].device, 3);
  EXPECT_TRUE(own.rings_connected);
  EXPECT_FALSE(own.connected_in_setup) << "at first use";
  EXPECT_EQ(own.ring_pxn, 1);
}

TEST(NcclLogChannels, GivesOldLinesToTheCommunicatorThatCompletesBelow) {
  const Fragment out = ReadLines(
      {"NCCL version 2.12.12+cuda11.7", "Trees [0] 4/-1/-1->3->2", "Channel 00 : 3[61000] -> 4[9d000] via P2P/IPC/read",
       "Connected all rings", "comm 0x7f rank 3 nranks 8 cudaDev 3 busId 61000 - Init COMPLETE",
       "Trees [0] 1/-1/-1->0->-1", "comm 0x80 rank 0 nranks 2 cudaDev 3 busId 61000 - Init COMPLETE"});
  ASSERT_EQ(out.rank_channels.size(), 2u);
  EXPECT_EQ(out.rank_channels[0].ranks, 8);
  EXPECT_EQ(out.rank_channels[0].uses.size(), 1u);
  EXPECT_TRUE(out.rank_channels[0].connected_in_setup);
  EXPECT_EQ(out.rank_channels[1].ranks, 2);
  EXPECT_EQ(out.rank_channels[1].group_rank.value, 0);
}

TEST(NcclLogChannels, ReadsTheFormsOf24And27AndRccl) {
  const Fragment oldest =
      ReadLines({"Ring 00 : 0[0] -> 1[1] via P2P/IPC", "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE"});
  ASSERT_EQ(oldest.rank_channels.size(), 1u);
  EXPECT_EQ(oldest.transports[0].kind, TransportKind::p2p);
  const Fragment seven = ReadLines({"Channel 02 : 3[1b000] -> 0[1c000] via direct shared memory",
                                    "comm 0x1 rank 3 nranks 4 cudaDev 0 busId 1b000 - Init COMPLETE"});
  EXPECT_EQ(seven.transports[0].kind, TransportKind::shm);
  const Fragment amd = ReadLines({kStart, "Ring 00 : 2 -> 3 -> 4 comm 0x55 nRanks 08 busId 61000",
                                  "Trees [0] 4/-1/-1->3->2 comm 0x55 nRanks 08 busId 61000", kComplete,
                                  "Channel 100/0 : 3[61000] -> 4[9d000] via P2P/direct pointer comm 0x55 nRanks 08"});
  ASSERT_EQ(amd.rank_channels.size(), 1u);
  EXPECT_EQ(amd.rank_channels[0].rings.size(), 1u);
  EXPECT_EQ(amd.rank_channels[0].trees.size(), 1u);
  EXPECT_TRUE(amd.rank_channels[0].uses[0].channels.Has(100));
  EXPECT_EQ(amd.transports[0].name, "direct pointer");
}

TEST(NcclLogChannels, TellsCommunicatorsOfOneProcessApartByTheOwnRank) {
  const Fragment out =
      ReadLines({kStart, kComplete,
                 "ncclCommSplit comm 0x66 rank 0 nranks 2 cudaDev 3 nvmlDev 3 busId 61000 parent 0x55 splitCount 1 "
                 "color 1 key 0- Init START",
                 "ncclCommSplit comm 0x66 rank 0 nranks 2 cudaDev 3 nvmlDev 3 busId 61000 parent 0x55 splitCount 1 "
                 "color 1 key 0 - Init COMPLETE",
                 "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM", "Channel 00/0 : 0[3] -> 1[4] via P2P/CUMEM"});
  ASSERT_EQ(out.rank_channels.size(), 2u);
  EXPECT_EQ(out.rank_channels[0].ranks, 8);
  EXPECT_EQ(out.rank_channels[1].ranks, 2);
}

// A process may have the same rank in two communicators. The first line of the trees fits one of them alone.
TEST(NcclLogChannels, WhatAThreadConnectsInOneGoIsOfOneCommunicator) {
  constexpr std::string_view kLarge[] = {
      "ncclCommInitRank comm 0x55 rank 1 nranks 4 cudaDev 3 nvmlDev 3 busId 61000 commId 0x9 - Init START",
      "ncclCommInitRank comm 0x55 rank 1 nranks 4 cudaDev 3 nvmlDev 3 busId 61000 commId 0x9 - Init COMPLETE"};
  constexpr std::string_view kSmall[] = {
      "ncclCommInitRank comm 0x66 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId 61000 commId 0xa - Init START",
      "ncclCommInitRank comm 0x66 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId 61000 commId 0xa - Init COMPLETE"};
  const Fragment out = ReadLines(
      {kLarge[0], kLarge[1], kSmall[0], kSmall[1], "Channel 00/0 : 1[3] -> 0[3] [send] via NET/Socket/0",
       "Connected all rings", "Channel 00/0 : 1[3] -> 3[3] [send] via NET/Socket/0",
       "Channel 00/0 : 1[3] -> 0[3] [send] via NET/Socket/0", "Channel 01/0 : 1[3] -> 0[3] [send] via NET/Socket/0",
       "Connected all trees", "Channel 01/0 : 1[3] -> 0[3] [send] via NET/Socket/0"});
  ASSERT_EQ(out.rank_channels.size(), 2u);
  const bool small_first = out.rank_channels[0].ranks == 2;
  const RankChannels &small = out.rank_channels[small_first ? 0 : 1], &large = out.rank_channels[small_first ? 1 : 0];
  EXPECT_TRUE(small.rings_connected);
  EXPECT_FALSE(small.trees_connected);
  EXPECT_FALSE(large.rings_connected);
  EXPECT_TRUE(large.trees_connected);
  ASSERT_EQ(small.uses.size(), 1u);
  EXPECT_EQ(small.uses[0].channels.Count(), 2) << "behind 'Connected', the newest communicator that fits";
  ASSERT_EQ(large.uses.size(), 2u);
  EXPECT_EQ(large.uses[0].channels.Count() + large.uses[1].channels.Count(), 3);
}

TEST(NcclLogChannels, ListsNetworkDevicesWithMergedPorts) {
  const Fragment out =
      ReadLines({"NET/IB : Using [0]mlx5_0:1/IB [1]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE} [2]mlx5_3:1/IB [RO]; OOB "
                 "eth0:10.0.0.1<0>",
                 "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
                 "NET/IB : GPU Direct RDMA Disabled for HCA 2 'mlx5_3'", "PXN Disabled as plugin is v4"});
  ASSERT_EQ(out.net_devices.size(), 1u);
  const NetDevices& own = out.net_devices[0];
  ASSERT_EQ(own.devices.size(), 3u);
  EXPECT_EQ(own.devices[1].name, "mlx5_1+mlx5_2");
  EXPECT_EQ(own.devices[1].link, "RoCE");
  EXPECT_EQ(own.devices[0].gdr, 1);
  EXPECT_EQ(own.devices[2].gdr, 0);
  EXPECT_EQ(own.devices[2].index, 2);
  EXPECT_TRUE(own.pxn_disabled);
}

TEST(NcclLogHardware, ReadsTheTreeAndThePaths) {
  const std::string_view rows[] = {"CPU/0-0 (1/1/2)",
                                   "+ PCI[48.0] - PCI/0-16000 (1000c0301000100b)",
                                   "              + PCI[48.0] - GPU/0-18000 (0)",
                                   "                            + NVL[370.8] - NVS/0-0",
                                   "              + PCI[48.0] - NIC/0-19000",
                                   "                            + NET[50.0] - NET/0-3 (aa24210003bd70c4/1/50.000000)",
                                   "+ SYS[10.0] - CPU/0-1",
                                   "CPU/0-1 (1/1/2)",
                                   "+ PCI[24.0] - GPU/0-98000 (1)",
                                   "              + NVL[185.4] - NVS/0-0"};
  const std::string_view paths[] = {
      "GPU/0-18000 :GPU/0-18000 (0/5000.0/LOC) GPU/0-98000 (2/185.4/NVL) NVS/0-0 (1/370.8/NVL) NET/0-3 (4/48.0/PXB)"};
  const Hardware hardware = ParseHardware(rows, paths);
  const int32_t gpu = hardware.Find(DeviceKind::gpu, 0x18000), net = hardware.Find(DeviceKind::net, 3);
  ASSERT_GE(gpu, 0);
  ASSERT_GE(net, 0);
  EXPECT_DOUBLE_EQ(hardware.devices[static_cast<size_t>(gpu)].nvlink_gbs, 370.8);
  EXPECT_EQ(hardware.devices[static_cast<size_t>(gpu)].number, 0);
  EXPECT_DOUBLE_EQ(hardware.devices[static_cast<size_t>(net)].speed_gbs, 50);
  EXPECT_EQ(hardware.devices[static_cast<size_t>(hardware.devices[static_cast<size_t>(gpu)].parent)].kind,
            DeviceKind::pci);
  EXPECT_EQ(hardware.devices[static_cast<size_t>(hardware.Find(DeviceKind::gpu, 0x98000))].parent,
            hardware.Find(DeviceKind::cpu, 1));
  ASSERT_EQ(hardware.paths.size(), 2u);
  EXPECT_EQ(hardware.Path(static_cast<uint32_t>(gpu), static_cast<uint32_t>(net))->type, NcclPath::pxb);
}

}  // namespace
}  // namespace tacet
