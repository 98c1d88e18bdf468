// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "evidence/nccl_log/nccl_log_import.h"

namespace tacet {
namespace {

TEST(NcclLogGraph, ReadsASearchOfEveryRelease) {
  NcclGraphSearch graph;
  ASSERT_TRUE(ParseGraphSearch(
      "Pattern 4, crossNic 2, nChannels 12, bw 30.000000/45.000000, type NVL/PXN, sameChannels 1", &graph));
  EXPECT_EQ(graph.pattern, kPatternRing);
  EXPECT_EQ(graph.cross_nic, 2);
  EXPECT_EQ(graph.channels, 12);
  EXPECT_DOUBLE_EQ(graph.bw_intra, 30);
  EXPECT_DOUBLE_EQ(graph.bw_inter, 45);
  EXPECT_EQ(graph.type_intra, NcclPath::nvl);
  EXPECT_EQ(graph.type_inter, NcclPath::pxn);
  EXPECT_EQ(graph.same_channels, 1);
  ASSERT_TRUE(ParseGraphSearch(
      "Pattern 3, crossNic 0, nChannels 1, speed 24.000000/24.000000, type XGMI/PIX, sameChannels 0", &graph));
  EXPECT_EQ(graph.type_intra, NcclPath::nvl);
  EXPECT_EQ(graph.type_inter, NcclPath::pix);
  EXPECT_FALSE(ParseGraphSearch("Pattern 4, crossNic 0, nChannels 2147483647, bw 1/1, type LOC/PHB", &graph));
  EXPECT_FALSE(ParseGraphSearch("Pattern 4, crossNic 0, nChan", &graph));
}

TEST(NcclLogGraph, ReadsTablesInOneBlockAndInSeveral) {
  NcclTableColumns columns;
  NcclTuningTable table;
  int op = -1;
  ASSERT_TRUE(ParseTableHead(
      "Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |    Ring/ LL128 |    "
      "Ring/Simple | CollNet/    LL | CollNet/ LL128 | CollNet/Simple |",
      &columns));
  EXPECT_EQ(columns.count, 3);
  ASSERT_TRUE(
      ParseTableRow("    AllReduce |    26.8/   0.1 |    48.0/   0.0 |    64.4/   0.5 |    36.6/   0.4 |    "
                    "65.0/   0.0 |    92.4/   0.8 |     4.4/   0.0 |     4.4/   0.0 |    10.7/   0.0 |",
                    columns, &table, &op));
  EXPECT_EQ(op, NcclTunedIndex(OpKind::all_reduce));
  EXPECT_TRUE(table.has[op][2]);
  EXPECT_DOUBLE_EQ(table.cells[op][1][2].latency_us, 92.4);
  EXPECT_DOUBLE_EQ(table.cells[op][1][2].bandwidth_gbps, 0.8);
  ASSERT_TRUE(ParseTableHead("  Algorithm   |                             PAT                  |", &columns));
  ASSERT_EQ(columns.count, 1);
  EXPECT_EQ(columns.algorithms[0], NcclAlgorithm::pat);
  EXPECT_TRUE(
      ParseTableRow("  Protocol    |             LL |          LL128 |         Simple |", columns, &table, &op));
  ASSERT_TRUE(
      ParseTableRow(" Max NThreads |              0 |              0 |            640 |", columns, &table, &op));
  EXPECT_EQ(table.max_threads[6][2], 640);
  ASSERT_TRUE(
      ParseTableRow("ReduceScatter |     0.0/   0.0 |     0.0/   0.0 |    27.2/   0.9 |", columns, &table, &op));
  EXPECT_DOUBLE_EQ(table.cells[op][6][2].latency_us, 27.2);
  EXPECT_FALSE(ParseTableRow("  SomethingElse | 1.0/ 2.0 |", columns, &table, &op));
}

TEST(NcclLogGraph, ReadsWhatRelease231SaysOfEachChoice) {
  NcclTuningInput input;
  ASSERT_TRUE(
      ParseTuningInput("Input: { .comm = 0x55d0c0a0, .tuningMask = 111, .func = AllReduce, .redOp = 0, .devRedop = 0, "
                       ".dataType = 7, .nBytes = 4194304, .numPipesOps = 1, .count = 1048576, .countMax = 1048576, "
                       ".nWorks = 1, .winRegType = 0, .regBuff = 0 }",
                       &input));
  EXPECT_EQ(input.comm, 0x55d0c0a0u);
  EXPECT_EQ(input.op, OpKind::all_reduce);
  EXPECT_EQ(input.bytes, 4194304);
  NcclLoggedChoice choice;
  std::string_view kernel;
  ASSERT_TRUE(
      ParseBestTuning("Best tuning { .id = 5, .valid = 1, timeUs = 31.200001,  .algo = RING, .proto = LL128, "
                      ".symKernelId = Undefined, nChannels = 12, maxChannels = 24, nWarps = 20, forced = 0 }",
                      &choice, &kernel));
  EXPECT_DOUBLE_EQ(choice.time_us, 31.200001);
  EXPECT_EQ(choice.algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(choice.protocol, NcclProtocol::ll128);
  EXPECT_EQ(choice.channels, 12);
  EXPECT_EQ(choice.warps, 20);
  EXPECT_TRUE(kernel.empty());
}

TEST(NcclLogGraph, CountsChannelsOfEveryRelease) {
  NcclChannelCounts counts;
  ASSERT_TRUE(ParseChannelCounts("24 coll channels, 32 p2p channels, 32 p2p channels per peer", &counts));
  EXPECT_EQ(counts.coll, 24);
  EXPECT_EQ(counts.nvls, -1);
  ASSERT_TRUE(ParseChannelCounts(
      "24 coll channels, 8 collnet channels, 16 nvls channels, 32 p2p channels, 4 p2p channels per peer", &counts));
  EXPECT_EQ(counts.nvls, 16);
  EXPECT_EQ(counts.p2p_per_peer, 4);
  EXPECT_FALSE(ParseChannelCounts("24 coll", &counts));
}

Fragment ReadGraphLines(const std::vector<std::string>& messages, int pid = 7) {
  static std::string text;
  text.clear();
  for (const std::string& message : messages)
    text += "gpu1:" + std::to_string(pid) + ":" + std::to_string(pid) + " [0] NCCL INFO " + message + "\n";
  Fragment fragment;
  FileView file;
  file.path = "nccl.log";
  file.bytes = text;
  ReadNcclLog(file, fragment);
  return fragment;
}

const std::string kRing = "Pattern 4, crossNic 0, nChannels 1, bw 1.200000/1.200000, type LOC/PHB, sameChannels 1";
const std::string kTree = "Pattern 3, crossNic 0, nChannels 1, bw 2.400000/1.200000, type LOC/PHB, sameChannels 1";
std::string Init(const std::string& comm, const std::string& end) {
  return "ncclCommInitRankConfig comm " + comm + " rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 60 commId 0x19" +
         comm.substr(2) + " - Init " + end;
}

TEST(NcclLogGraphImport, GivesEachCommunicatorItsOwnLines) {
  const Fragment read = ReadGraphLines(
      {"NCCL version 2.28.9+cuda13.0", Init("0xa0", "START"),
       "=== System : maxBw 1.2 totalBw 48.0 ===", "CPU/0-0 (1/1/4)", "+ PCI[48.0] - GPU/0-60 (0)",
       "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) NET/0-0 (3/1.2/PHB) ", kRing, " 0 : NET/0-0 GPU/0-60 NET/0-0", kTree,
       " 0 : NET/0-0 GPU/0-60 NET/0-0", "comm 0xa0 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0",
       "threadThresholds 8/8/64 | 32/8/64 | 512 | 512",
       "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer",
       Init("0xa0", "COMPLETE"), Init("0xb0", "START"), kRing, Init("0xb0", "COMPLETE")});
  ASSERT_EQ(read.nccl_setups.size(), 2u);
  const NcclSetup& setup = read.nccl_setups[0];
  EXPECT_EQ(read.strings.Get(setup.version), "2.28.9+cuda13.0");
  EXPECT_EQ(setup.nodes, 2);
  EXPECT_EQ(setup.local_ranks, 2);
  EXPECT_EQ(setup.coll_channels, 2);
  EXPECT_DOUBLE_EQ(setup.total_bw, 48);
  EXPECT_EQ(setup.system_rows.size(), 2u);
  EXPECT_EQ(setup.path_rows.size(), 1u);
  EXPECT_EQ(setup.thread_thresholds.size(), 8u);
  ASSERT_EQ(setup.graphs.size(), 2u);
  EXPECT_EQ(setup.graphs[0].algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(setup.graphs[1].algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(read.strings.Get(setup.graphs[1].rows.at(0)), "NET/0-0 GPU/0-60 NET/0-0");
  EXPECT_EQ(read.nccl_setups[1].graphs.size(), 1u);
  EXPECT_NE(setup.group, read.nccl_setups[1].group);
}

TEST(NcclLogGraphImport, LinesBeforeACompletionBelongToIt) {
  const Fragment read = ReadGraphLines({kRing, kTree, Init("0xa0", "COMPLETE"), kRing, Init("0xb0", "COMPLETE")});
  ASSERT_EQ(read.nccl_setups.size(), 2u);
  EXPECT_EQ(read.nccl_setups[0].graphs.size(), 2u);
  EXPECT_EQ(read.nccl_setups[1].graphs.size(), 1u);
  EXPECT_EQ(read.nccl_setups[0].ranks, 4);
}

TEST(NcclLogGraphImport, WithoutInitLinesASecondRingBeginsTheNextCommunicator) {
  const Fragment read = ReadGraphLines({kRing, kTree, kRing, kTree});
  EXPECT_EQ(read.nccl_setups.size(), 2u);
}

TEST(NcclLogGraphImport, CountsEqualChoicesAndMarksGroupedOnes) {
  const auto call = [](const std::string& count) {
    return "AllReduce: opCount 0 sendbuff 0x7f343da00000 recvbuff 0x7f343da00000 count " + count +
           " datatype 7 op 4 root 0 comm 0xa0 [nranks=4] stream 0x1";
  };
  const std::string small = "AllReduce: 1024 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}";
  const std::string large = "AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}";
  const Fragment read = ReadGraphLines({Init("0xa0", "START"), Init("0xa0", "COMPLETE"), call("256"), small, call("256"),
                                   small, call("1024"), large, call("256"), call("1024"), small, large});
  ASSERT_EQ(read.nccl_setups.size(), 1u);
  const auto& choices = read.nccl_setups[0].choices;
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[0].times, 2u);
  EXPECT_EQ(choices[0].algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(choices[0].protocol, NcclProtocol::ll);
  EXPECT_EQ(choices[0].type, DataType::float32);
  EXPECT_EQ(choices[0].reduction, ReduceOp::avg);
  EXPECT_FALSE(choices[0].grouped);
  EXPECT_EQ(choices[1].last_channel, 1);
  EXPECT_TRUE(choices[2].grouped);
  EXPECT_TRUE(choices[3].grouped);
}

TEST(NcclLogGraphImport, MarksASearchThatFoundNothing) {
  const Fragment read =
      ReadGraphLines({"Could not find a path for pattern 4, falling back to simple order",
                 "Pattern 4, crossNic 0, nChannels 1, bw 0.100000/0.100000, type SYS/SYS, sameChannels 1", kTree});
  ASSERT_EQ(read.nccl_setups.size(), 1u);
  EXPECT_TRUE(read.nccl_setups[0].graphs.at(0).simple_order);
  EXPECT_FALSE(read.nccl_setups[0].graphs.at(1).simple_order);
}

TEST(NcclLogGraphImport, StrayRowsMakeNoCommunicator) {
  const Fragment read = ReadGraphLines({"  12 : something else", "    AllReduce |    26.8/   0.1 |", "+ nothing"});
  EXPECT_TRUE(read.nccl_setups.empty());
  EXPECT_EQ(read.speakers.size(), 1u);
}

}  // namespace
}  // namespace tacet
