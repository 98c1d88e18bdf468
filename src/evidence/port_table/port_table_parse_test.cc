// SPDX-License-Identifier: Apache-2.0
#include "evidence/port_table/port_table_parse.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(PortTable, ADeviceOfIbstatThatLooksForAPartnerIsDown) {
  const PortTable table = ParsePortTable(
      "[root@gpu07 ~]# ibstat\nCA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n"
      "\t\tPhysical state: LinkUp\n\t\tLink layer: InfiniBand\nCA 'mlx5_1'\n\tCA type: MT4123\n\tPort 1:\n"
      "\t\tState: Down\n\t\tPhysical state: Polling\n\t\tLink layer: InfiniBand\n");
  ASSERT_EQ(table.ports.size(), 2u);
  EXPECT_EQ(table.ports[0].port.device, "mlx5_0");
  EXPECT_EQ(table.ports[0].port.host, "gpu07");
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::down);
  EXPECT_TRUE(table.ports[1].port.polling);
  EXPECT_TRUE(table.ports[1].port.infiniband);
  EXPECT_EQ(table.ports[1].line, 12u);
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(PortTable, StatesOfIbstatWithoutTheirPortLines) {
  const PortTable table = ParsePortTable(
      "CA 'mlx5_0'\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tState: Down\n\t\tPhysical state: Polling\n"
      "CA 'mlx5_1'\n\t\tState: Down\n\t\tPhysical state: Disabled\n");
  ASSERT_EQ(table.ports.size(), 3u);
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
  EXPECT_EQ(table.ports[1].port.port, 2);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::down);
  EXPECT_TRUE(table.ports[1].port.infiniband) << "only InfiniBand looks for a partner";
  EXPECT_EQ(table.ports[2].port.health, PortHealth::disabled);
  EXPECT_FALSE(table.ports[2].port.infiniband);
}

TEST(PortTable, CountersAboveTheUsualLimitsAreErrors) {
  const PortTable table = ParsePortTable(
      "# Port counters: Lid 118 port 1 (CapMask: 0x5A00)\nPortSelect:......................1\n"
      "SymbolErrorCounter:..............65535\nLinkDownedCounter:...............41\nPortXmitDiscards:................"
      "18\n"
      "PortXmitData:....................4294967295\n# Port counters: Lid 7 port 1 (CapMask: 0x5A00)\n"
      "SymbolErrorCounter:..............0\nLinkDownedCounter:...............2\n");
  EXPECT_TRUE(table.ports.empty());
  ASSERT_EQ(table.errors.size(), 1u);
  EXPECT_EQ(table.errors[0].errors.device, "LID 118");
  EXPECT_EQ(table.errors[0].errors.counted,
            (std::vector<std::string>{"65,535 or more symbol errors", "41 link downs"}));
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(PortTable, LinksOfGpus) {
  const PortTable table =
      ParsePortTable("GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-7aa2cf10)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n");
  ASSERT_EQ(table.ports.size(), 2u);
  EXPECT_TRUE(table.ports[1].port.nvlink);
  EXPECT_EQ(table.ports[1].port.device, "GPU 1");
  EXPECT_EQ(table.ports[1].port.port, 1);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::down);
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
}

TEST(PortTable, ThePortsOwnStateCountsMoreThanThatOfItsInterface) {
  const PortTable table = ParsePortTable(
      "mlx5_0 port 1 ==> ib0 (Down)\nmlx5_1 port 1 ==> ib1 (Up)\nhca_id:\tmlx5_0\n\ttransport:\t\tInfiniBand (0)\n"
      "\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tInfiniBand\n");
  ASSERT_EQ(table.ports.size(), 2u);
  EXPECT_EQ(table.ports[0].port.interface, "ib0");
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::active);
}

TEST(PortTable, AnIpInterfaceThatIsDownShowsNothingOfAnInfiniBandPort) {
  const PortTable table = ParsePortTable(
      "mlx5_0 port 1 ==> ib0 (Down)\nmlx5_10  port  1  ==>  ibp204s0   (Down)  # rail 7\n"
      "mlx5_1 port 1 ==> ens9f0np0 (Down)\n"
      "ib2              DOWN           00:00:10:49 <BROADCAST,MULTICAST>\n"
      "ib3              DOWN           00:00:10:49 <NO-CARRIER,BROADCAST,MULTICAST,UP>\n");
  ASSERT_EQ(table.ports.size(), 5u);
  EXPECT_TRUE(table.ports[0].port.of_interface);
  EXPECT_TRUE(table.ports[1].port.of_interface);
  EXPECT_EQ(table.ports[1].port.interface, "ibp204s0");
  EXPECT_FALSE(table.ports[2].port.of_interface) << "Ethernet: the link itself";
  EXPECT_TRUE(table.ports[3].port.of_interface) << "nobody set it up";
  EXPECT_FALSE(table.ports[4].port.of_interface) << "it is up and has no carrier";
  for (const char* line : {"mlx5_0  port  1  ==>  ibp26s0  (Down)  # NDR", "gpu22: mlx5_1 port 1 ==> ib1 (Down)"})
    EXPECT_TRUE(IsPortLine(line)) << line;
  EXPECT_FALSE(IsPortLine("mlx5_0 port 1 ==> ib0 (Down) and more words"));
}

TEST(PortTable, APortThatIsAskedForByItsNumber) {
  const PortTable table = ParsePortTable(
      "# Port info: Lid 1 port 28\nLinkState:.......................Down\nPhysLinkState:...................Disabled\n"
      "LinkWidthActive:.................4X\n# Port info: Lid 1 port 29\nLinkState:.......................Active\n"
      "PhysLinkState:...................LinkUp\n");
  ASSERT_EQ(table.ports.size(), 2u);
  EXPECT_EQ(table.ports[0].port.device, "LID 1");
  EXPECT_EQ(table.ports[0].port.port, 28);
  EXPECT_EQ(table.ports[0].port.health, PortHealth::disabled);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::active);
}

TEST(PortTable, RowsOfRdmaLinkAndOfPdsh) {
  const PortTable table = ParsePortTable(
      "link mlx5_2/1 state ACTIVE physical_state LINK_UP netdev ib2\n"
      "link mlx5_3/1 state INIT physical_state LINK_UP netdev ib3\n"
      "link mlx5_4/1 state DOWN physical_state DISABLED netdev ens6f1\n"
      "node12: mlx5_5 port 1 ==> ib5 (Down)\n");
  ASSERT_EQ(table.ports.size(), 4u);
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::initializing);
  EXPECT_EQ(table.ports[2].port.health, PortHealth::disabled);
  EXPECT_EQ(table.ports[3].port.host, "node12");
  EXPECT_EQ(table.ports[3].port.device, "mlx5_5");
}

TEST(PortTable, VirtualInterfacesAreNoPorts) {
  const PortTable table = ParsePortTable(
      "lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>\n"
      "eno1             UP             3c:ec:ef:00:00:01 <BROADCAST,MULTICAST,UP,LOWER_UP>\n"
      "eno2             DOWN           3c:ec:ef:00:00:02 <BROADCAST,MULTICAST>\n"
      "ib0              DOWN           00:00:10:49 <NO-CARRIER,BROADCAST,MULTICAST,UP>\n"
      "docker0          DOWN           02:42:00:00:00:01 <NO-CARRIER,BROADCAST,MULTICAST,UP>\n");
  ASSERT_EQ(table.ports.size(), 3u);
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
  EXPECT_EQ(table.ports[1].port.health, PortHealth::disabled);
  EXPECT_EQ(table.ports[2].port.health, PortHealth::down);
  EXPECT_TRUE(table.ports[2].port.infiniband);
}

TEST(PortTable, ALinkOfIblinkinfoIsListedOnceWithWhatItCouldBe) {
  const PortTable table = ParsePortTable(
      "CA: hx11 HCA-1:\n"
      "      0x506b4b0300aa1102  11  1[  ] ==( 1X  25.78125 Gbps Active/  LinkUp)==>  2  7[  ] \"leaf4\" ( Could be "
      "4X)\n"
      "CA: hx12 HCA-1:\n"
      "      0x506b4b0300aa1204  12  1[  ] ==(           Down/ Polling)==>   [  ] \"\" ( )\n"
      "Switch: 0x248a070300f8a1c0 leaf4:\n"
      "           2    7[  ] ==( 1X  25.78125 Gbps Active/  LinkUp)==>  11  1[  ] \"hx11 HCA-1\" ( Could be 4X)\n"
      "           2    9[  ] ==(           Down/ Polling)==>   [  ] \"\" ( )\n");
  ASSERT_EQ(table.ports.size(), 2u);
  EXPECT_EQ(table.ports[0].port.device, "hx11 HCA-1");
  EXPECT_EQ(table.ports[0].port.link, "1X 25.78125 Gbps");
  EXPECT_EQ(table.ports[0].port.better, "Could be 4X");
  EXPECT_EQ(table.ports[0].peer, "leaf4");
  EXPECT_EQ(table.ports[1].port.health, PortHealth::down);
  EXPECT_TRUE(table.ports[1].port.polling);
  EXPECT_EQ(table.unlinked_switch_ports, 1u) << "that of the adapter is a row";
  EXPECT_EQ(table.switches_with_unlinked, 1u);
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(PortTable, OtherLinesAreNone) {
  for (const char* line : {"the state: Active port of CA is fine", "link down on eth0", "Epoch 3 ==> loss (Up)",
                           "INFO port 29500 ==> listening (Up)x"}) {
    EXPECT_FALSE(IsPortLine(line)) << line;
  }
  const PortTable table = ParsePortTable("\tState: Down\nrank 3: state DOWN\n");
  EXPECT_TRUE(table.ports.empty());
}

TEST(PortTable, CountersOfNvlinkTellALinkThatWasTrainedAgain) {
  const PortTable table = ParsePortTable(
      "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-4f10)\n"
      "\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 0\n\t Link 0: CRC Errors: 12\n"
      "\t Link 1: Replay Errors: 3\n\t Link 1: Recovery Errors: 14\n\t Link 1: CRC Errors: 20118\n");
  ASSERT_EQ(table.ports.size(), 2u);
  EXPECT_EQ(table.ports[0].port.health, PortHealth::active);
  ASSERT_EQ(table.errors.size(), 1u);
  EXPECT_EQ(table.errors[0].errors.device, "GPU 0");
  EXPECT_EQ(table.errors[0].errors.port, 1);
  EXPECT_EQ(table.errors[0].errors.counted, (std::vector<std::string>{"14 recoveries", "20,118 CRC errors"}));
}

}  // namespace
}  // namespace tacet
