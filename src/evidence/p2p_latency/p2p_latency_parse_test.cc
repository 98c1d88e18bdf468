// SPDX-License-Identifier: Apache-2.0
#include "evidence/p2p_latency/p2p_latency_parse.h"

#include <gtest/gtest.h>

#include "evidence/format.h"

namespace tacet {
extern const Format kP2pLatencyFormat;
namespace {

constexpr std::string_view kText =
    "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, NVIDIA A100, pciBusID: 7, pciDeviceID: 0, "
    "pciDomainID:0\n"
    "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n"
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n     0 1290.12 272.31 \n"
    "     1 271.84 1291.20 \nP2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n     0   2.43   2.71 "
    "\n"
    "     1   2.74   2.50 \n\n   CPU     0      1 \n     0   3.01   2.10 \n     1   2.14   3.03 \n";

TEST(P2pLatencyParse, KeepsMeasurementsAndNotTheConnectivity) {
  const P2pOutput out = ParseP2pTest(kText);
  ASSERT_EQ(out.tables.size(), 3u);
  EXPECT_EQ(out.tables[0].title, "Unidirectional P2P=Enabled Bandwidth (P2P Writes)");
  EXPECT_DOUBLE_EQ(out.tables[0].cells[0][1], 272.31);
  EXPECT_FALSE(out.tables[0].is_latency);
  EXPECT_EQ(out.tables[1].corner, "GPU");
  EXPECT_TRUE(out.tables[1].is_latency);
  EXPECT_EQ(out.tables[2].corner, "CPU");
  EXPECT_DOUBLE_EQ(out.tables[2].cells[1][0], 2.14);
  ASSERT_EQ(out.devices.size(), 1u);
  EXPECT_EQ(out.devices[0], "NVIDIA A100");
}

TEST(P2pLatencyParse, ACutMatrixIsTold) {
  Fragment out;
  kP2pLatencyFormat.read({"p.txt", kText.substr(0, kText.find("     1 271.84")), false}, out);
  ASSERT_EQ(out.benchmark_runs.size(), 1u);
  EXPECT_FALSE(out.benchmark_runs[0].concluded);
  EXPECT_EQ(out.diagnostics.size(), 1u);
}

TEST(P2pLatencyParse, NothingComesOutOfNothing) {
  EXPECT_TRUE(ParseP2pTest("").tables.empty());
  EXPECT_TRUE(ParseP2pTest("P2P=Enabled Latency Matrix (us)\n GPU 0 1\n 0 -1 nan\n 1 1 2 3 4\n").tables.empty());
}

TEST(P2pLatency, WhichGpusReachEachOther) {
  const P2pOutput out = ParseP2pTest(
      "Device=0 CAN Access Peer Device=1\nDevice=0 CANNOT Access Peer Device=2\n\nP2P Connectivity Matrix\n");
  ASSERT_EQ(out.reach.size(), 2u);
  EXPECT_TRUE(out.reach[0].can);
  EXPECT_FALSE(out.reach[1].can);
  EXPECT_EQ(out.reach[1].to, 2);
  EXPECT_EQ(out.not_understood, 0u);
}

}  // namespace
}  // namespace tacet
