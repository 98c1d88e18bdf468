// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "analysis/testing/cluster_sketch.h"
#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

constexpr std::string_view kAll[] = {"ring-broken",        "graph-search-failed",  "nic-count-unequal",
                                     "node-lowers-graph",  "nic-path-through-cpu", "ring-reenters-node",
                                     "nic-unbalanced",     "rails-crossed",        "pxn-off",
                                     "nvls-not-connected", "channels-limited",     "ll128-lost",
                                     "rank-unlike-others", "rank-order-scattered", "transport-fallback"};

JudgedCase Judged(const Incident& incident) { return JudgedCase(CopyOf(incident)); }

// The causes that fire, of those above, joined by blanks.
std::string Fired(const Incident& incident) {
  const JudgedCase judged = Judged(incident);
  std::string fired;
  for (const std::string_view cause : kAll)
    if (judged.Fires(cause)) fired += (fired.empty() ? "" : " ") + std::string(cause);
  return fired;
}

void OfNode(Incident& incident, int32_t node, const std::function<void(NcclSetup&)>& change) {
  for (NcclSetup& setup : incident.nccl_setups)
    if (setup.group_rank.value / setup.local_ranks == node) change(setup);
}

TEST(TopologyRules, AHealthyClusterRaisesNothing) {
  EXPECT_EQ(Fired(SketchCluster()), "");
  EXPECT_EQ(Fired(SketchCluster({5, 8})), "");
  EXPECT_EQ(Fired(SketchCluster({1, 8})), "");
}

TEST(TopologyRules, PartOfTheLogsRaisesNothing) {
  Incident incident = SketchCluster();
  incident.rank_channels.resize(3);
  incident.nccl_setups.resize(3);
  EXPECT_EQ(Fired(incident), "");
}

TEST(RingBroken, TwoRanksThatDisagreeAreNamed) {
  Incident incident = SketchCluster();
  incident.rank_channels[2].rings[1].next = 7;
  const JudgedCase judged = Judged(incident);
  const Finding finding = judged.Only("ring-broken");
  EXPECT_NE(finding.headline.find("channel 1"), std::string::npos) << finding.headline;
  EXPECT_EQ(finding.status, Status::degraded);
  EXPECT_EQ(Fired(incident), "ring-broken");
}

TEST(RingReenters, ANodeThatIsEnteredTwiceIsNamedAndOneAtTheSeamIsNot) {
  Incident incident = SketchCluster();
  // 0 1 | 4 5 6 7 | 2 3: node0 is left in the middle.
  const int32_t order[] = {0, 4, 5, 1, 2, 6, 7, 3};
  for (RankChannels& record : incident.rank_channels) {
    record.uses.clear();
    record.rings.clear();
  }
  for (int i = 0; i < 8; ++i)
    incident.rank_channels[static_cast<size_t>(order[i])].rings.push_back({0, order[(i + 7) % 8], order[(i + 1) % 8]});
  EXPECT_EQ(Fired(incident), "ring-reenters-node");
  const int32_t seam[] = {2, 3, 4, 5, 6, 7, 0, 1};
  for (RankChannels& record : incident.rank_channels) record.rings.clear();
  for (int i = 0; i < 8; ++i)
    incident.rank_channels[static_cast<size_t>(seam[i])].rings.push_back({0, seam[(i + 7) % 8], seam[(i + 1) % 8]});
  EXPECT_EQ(Fired(incident), "");
}

TEST(RailsCrossed, FiresUnlessNcclCrossesOnPurposeOrNothingTellsWhetherItDoes) {
  Incident incident = SketchCluster();
  UseOf(incident, 3, 4, ChannelUse::Direction::receive)->transport = WayOf(incident, "NET/IB/1/GDRDMA");
  EXPECT_EQ(Fired(incident), "rails-crossed");
  Incident meant = CopyOf(incident);
  for (NcclSetup& setup : meant.nccl_setups) setup.graphs[0].cross_nic = 2;
  EXPECT_EQ(Fired(meant), "");
  for (NcclSetup& setup : incident.nccl_setups) setup.graphs.clear();
  EXPECT_EQ(Fired(incident), "");
}

TEST(NicCount, ANodeWithFewerDevicesIsNamedWithTheMissingOne) {
  Incident incident = SketchCluster({3, 4});
  for (int r = 4; r < 8; ++r) {
    incident.net_devices[static_cast<size_t>(r)].devices.erase(
        incident.net_devices[static_cast<size_t>(r)].devices.begin() + 2);
    std::erase_if(incident.hardware[static_cast<size_t>(r)].devices,
                  [](const HardwareDevice& device) { return device.kind == DeviceKind::net && device.number == 2; });
    incident.hardware[static_cast<size_t>(r)].paths.clear();
    DerivePaths(incident.hardware[static_cast<size_t>(r)]);
  }
  OfNode(incident, 1, [](NcclSetup& setup) { setup.graphs[0].channels = 3; });
  const JudgedCase judged = Judged(incident);
  const Finding finding = judged.Only("nic-count-unequal");
  EXPECT_EQ(finding.ranks, RankRange(4, 8));
  EXPECT_NE(finding.headline.find("mlx5_2 is missing, which lowers all 12 ranks to 3 channels instead of 4"),
            std::string::npos)
      << finding.headline;
  EXPECT_FALSE(judged.Fires("node-lowers-graph")) << "one cause is told once";
}

TEST(NicCount, AnExtraDeviceForStorageIsNoFault) {
  Incident incident = SketchCluster();
  for (int r = 0; r < 4; ++r)
    incident.net_devices[static_cast<size_t>(r)].devices.push_back({4, "mlx5_bond_0", "RoCE", 0});
  EXPECT_EQ(Fired(incident), "");
}

TEST(NodeLowersGraph, NamesTheNodeAndWhatItLacks) {
  Incident incident = SketchCluster({4, 4});
  OfNode(incident, 2, [](NcclSetup& setup) {
    for (NcclGraphSearch& graph : setup.graphs) graph.bw_intra = graph.bw_inter = 24;
  });
  for (int r = 8; r < 12; ++r)
    for (HardwareDevice& device : incident.hardware[static_cast<size_t>(r)].devices)
      if (device.kind == DeviceKind::gpu) device.link_gbs = 24;
  const Finding finding = Judged(incident).Only("node-lowers-graph");
  EXPECT_EQ(finding.ranks, RankRange(8, 12));
  EXPECT_NE(finding.headline.find("PCIe link of a GPU carries 24 GB/s instead of 48"), std::string::npos)
      << finding.headline;
  EXPECT_EQ(Fired(incident), "node-lowers-graph");
}

TEST(NodeLowersGraph, AsksForTheHardwareWhereItIsNotThere) {
  Incident incident = SketchCluster({4, 4});
  OfNode(incident, 2, [](NcclSetup& setup) { setup.graphs[0].bw_inter = 24; });
  incident.hardware.clear();
  EXPECT_EQ(Judged(incident).Ask("node-lowers-graph").open.size(), 1u);
}

TEST(NodeLowersGraph, WhereHalfOfTheNodesShowLessNobodyIsTheException) {
  Incident incident = SketchCluster({5, 4});
  for (const int32_t node : {0, 1, 2}) OfNode(incident, node, [](NcclSetup& setup) { setup.graphs[0].bw_inter = 24; });
  EXPECT_EQ(Fired(incident), "");
}

TEST(GraphSearchFailed, ATenthOfAGigabyteStandsForNoPath) {
  Incident incident = SketchCluster();
  OfNode(incident, 1, [](NcclSetup& setup) {
    setup.graphs[0].channels = 1;
    setup.graphs[0].bw_intra = setup.graphs[0].bw_inter = 0.1;
  });
  EXPECT_EQ(Fired(incident), "graph-search-failed");
  OfNode(incident, 1, [](NcclSetup& setup) { setup.graphs[0].bw_intra = setup.graphs[0].bw_inter = 0.12; });
  EXPECT_EQ(Fired(incident), "node-lowers-graph") << "slow, but found";
}

TEST(NicUnbalanced, AnIdleDeviceIsNamedAndASlowOneIsNot) {
  Incident incident = SketchCluster();
  for (RankChannels& record : incident.rank_channels)
    for (ChannelUse& use : record.uses) {
      const Transport way = incident.transports[use.transport];
      if (way.kind == TransportKind::net && way.device == 3)
        use.transport = WayOf(incident, std::string("NET/IB/2") + (way.proxy_rank >= 0 ? "(2)" : "") + "/GDRDMA");
    }
  const Finding finding = Judged(incident).Only("nic-unbalanced");
  EXPECT_NE(finding.headline.find("mlx5_3"), std::string::npos) << finding.headline;
  EXPECT_EQ(Fired(incident), "nic-unbalanced");
  for (Hardware& hardware : incident.hardware)
    for (HardwareDevice& device : hardware.devices)
      if (device.kind == DeviceKind::net && device.number == 3) device.speed_gbs = 3;
  EXPECT_FALSE(Judged(incident).Fires("nic-unbalanced"));
}

TEST(NicPathThroughCpu, FiresOnlyWhereDevicesHangOnSwitches) {
  Incident incident = SketchCluster();
  for (NcclSetup& setup : incident.nccl_setups) setup.graphs[0].type_inter = NcclPath::phb;
  EXPECT_EQ(Fired(incident), "nic-path-through-cpu");
  for (Hardware& hardware : incident.hardware)
    for (HardwarePath& path : hardware.paths)
      if (path.type == NcclPath::pix) path.type = NcclPath::phb;
  EXPECT_EQ(Fired(incident), "") << "the machine can do no better";
}

TEST(TransportFallback, SharedMemoryBetweenNvlinkPeersIsAWarningUnlessAVariableAsksForIt) {
  Incident incident = SketchCluster();
  UseOf(incident, 5, 6, ChannelUse::Direction::both)->transport = WayOf(incident, "SHM/direct/direct");
  const Finding finding = Judged(incident).Only("transport-fallback");
  EXPECT_EQ(finding.ranks, Ranks({5, 6}));
  EXPECT_EQ(Fired(incident), "transport-fallback");
  SetVariable(incident, "NCCL_P2P_DISABLE", "1");
  EXPECT_EQ(Fired(incident), "") << "environment-cripples names it";
}

TEST(TransportFallback, SharedMemoryWithoutNvlinkIsWhatTheMachineCanDo) {
  Incident incident = SketchCluster();
  UseOf(incident, 5, 6, ChannelUse::Direction::both)->transport = WayOf(incident, "SHM/direct/direct");
  for (Hardware& hardware : incident.hardware)
    for (HardwarePath& path : hardware.paths)
      if (path.type == NcclPath::nvl) path.type = NcclPath::phb;
  EXPECT_EQ(Fired(incident), "");
}

TEST(TransportFallback, NoDirectAccessWhereTheDeviceIsFarIsNoFallback) {
  Incident incident = SketchCluster();
  const auto stage = [](Incident& one) {
    for (RankChannels& record : one.rank_channels)
      for (ChannelUse& use : record.uses)
        if (record.rank.value >= 4 && one.transports[use.transport].kind == TransportKind::net)
          use.transport = WayOf(one, "NET/IB/" + std::to_string(one.transports[use.transport].device));
  };
  stage(incident);
  EXPECT_EQ(Judged(incident).Only("transport-fallback").ranks, RankRange(4, 8));
  for (Hardware& hardware : incident.hardware)
    for (HardwarePath& path : hardware.paths)
      if (path.type == NcclPath::pix) path.type = NcclPath::phb;
  EXPECT_FALSE(Judged(incident).Fires("transport-fallback"));
}

TEST(NvlsNotConnected, NeedsMulticastAndEnoughRanksPerNode) {
  Incident incident = SketchCluster();
  for (NcclSetup& setup : incident.nccl_setups) setup.nvls_channels = 0;
  EXPECT_EQ(Fired(incident), "nvls-not-connected");
  Incident without = CopyOf(incident);
  for (RankChannels& record : without.rank_channels) record.nvls_multicast = 0;
  EXPECT_EQ(Fired(without), "");
  for (NcclSetup& setup : incident.nccl_setups) setup.local_ranks = 2;
  EXPECT_FALSE(Judged(incident).Fires("nvls-not-connected"));
}

TEST(NvlsNotConnected, WhatIsConnectedAtFirstUseIsNotMissed) {
  Incident incident = SketchCluster();
  for (RankChannels& record : incident.rank_channels) record.nvls_connected = false;
  EXPECT_EQ(Fired(incident), "nvls-not-connected");
  for (RankChannels& record : incident.rank_channels) record.connected_in_setup = false;
  EXPECT_EQ(Fired(incident), "");
}

TEST(Ll128Lost, FiresWhereThePathsAllowIt) {
  Incident incident = SketchCluster();
  const auto op = static_cast<size_t>(NcclTunedIndex(OpKind::all_reduce));
  auto& cells = incident.nccl_setups[0].tables[0].cells[op][static_cast<size_t>(NcclAlgorithm::ring)];
  cells[static_cast<size_t>(NcclProtocol::ll128)].bandwidth_gbps = 0;
  EXPECT_EQ(Fired(incident), "ll128-lost");
  Incident pcie = CopyOf(incident);
  for (NcclSetup& setup : pcie.nccl_setups) setup.graphs[0].type_intra = NcclPath::phb;
  EXPECT_EQ(Fired(pcie), "");
  SetVariable(incident, "NCCL_PROTO", "^LL128");
  EXPECT_EQ(Fired(incident), "");
}

TEST(ChannelsLimited, NeedsTheGraphsOfAllNodes) {
  Incident incident = SketchCluster();
  for (NcclSetup& setup : incident.nccl_setups) setup.coll_channels = 6;
  EXPECT_EQ(Fired(incident), "channels-limited");
  SetVariable(incident, "NCCL_MAX_NCHANNELS", "6");
  EXPECT_NE(Judged(incident).Only("channels-limited").headline.find("NCCL_MAX_NCHANNELS=6"), std::string::npos);
  OfNode(incident, 1, [](NcclSetup& setup) { setup.graphs.clear(); });
  EXPECT_EQ(Fired(incident), "");
}

TEST(RankOrderScattered, JudgesTheLargestCommunicator) {
  Incident incident = SketchCluster();
  std::swap(incident.processes[1].host, incident.processes[5].host);
  EXPECT_TRUE(Judged(incident).Fires("rank-order-scattered"));
}

TEST(RankUnlikeOthers, OneGpuWithHalfOfItsLinksIsNamed) {
  Incident incident = SketchCluster({4, 4});
  for (int r = 4; r < 8; ++r)
    for (HardwareDevice& device : incident.hardware[static_cast<size_t>(r)].devices)
      if (device.kind == DeviceKind::gpu && device.id == 0x3000) device.nvlink_gbs = 185.4;
  const Finding finding = Judged(incident).Only("rank-unlike-others");
  EXPECT_EQ(finding.ranks, Ranks({6}));
  EXPECT_EQ(Fired(incident), "rank-unlike-others");
}

TEST(PxnOff, SendsThatCrossRailsWithoutARelay) {
  Incident incident = SketchCluster();
  ChannelUse send;
  send.from = 0, send.to = 5;
  send.point_to_point = true;
  send.direction = ChannelUse::Direction::send;
  send.transport = WayOf(incident, "NET/IB/0/GDRDMA/Shared");
  ChannelUse receive = send;
  receive.direction = ChannelUse::Direction::receive;
  receive.transport = WayOf(incident, "NET/IB/1/GDRDMA/Shared");
  incident.rank_channels[0].uses.push_back(send);
  incident.rank_channels[5].uses.push_back(receive);
  EXPECT_EQ(Fired(incident), "") << "relays elsewhere show that PXN is on";
  for (Transport& transport : incident.transports)
    if (transport.proxy_rank >= 0) transport = ParseTransport("NET/IB/" + std::to_string(transport.device) + "/GDRDMA");
  EXPECT_EQ(Fired(incident), "pxn-off");
  SetVariable(incident, "NCCL_PXN_DISABLE", "1");
  EXPECT_EQ(Fired(incident), "") << "environment-cripples names it";
}

}  // namespace
}  // namespace tacet
