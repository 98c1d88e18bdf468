// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_cost_model.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "predict/nccl_choice.h"
#include "predict/nccl_filter.h"

namespace tacet {
namespace {

// Two nodes of eight H100: rings and trees of 8 channels at 45 GB/s, NVLS of 8 heads.
NcclCommunicator TwoNodes(std::string_view release) {
  NcclCommunicator c;
  c.release = ParseNcclRelease(release);
  c.ranks = 16;
  c.nodes = 2;
  c.min_capability = c.max_capability = 90;
  c.ring = {8, 45, 45, NcclPath::nvl, NcclPath::pxn, kPatternRing, true, 0};
  c.tree = {8, 45, 45, NcclPath::nvl, NcclPath::pxn, kPatternBalancedTree, true, 0};
  c.nvls = {8, 45, 48, NcclPath::nvl, NcclPath::pxn, kPatternNvls, true, 0};
  c.channels = 16;
  c.nvls_channels = 16;
  c.multicast = c.nvswitch = true;
  return c;
}

std::string Row(const NcclCostTable& table, OpKind op, NcclAlgorithm algorithm) {
  std::string text;
  for (const NcclCell& cell : table.cells[NcclTunedIndex(op)][static_cast<int>(algorithm)]) {
    char one[64];
    std::snprintf(one, sizeof one, "%s%.1f/%.1f", text.empty() ? "" : " ", cell.latency_us, cell.bandwidth);
    text += one;
  }
  return text;
}

// Worked out by hand: b = 8 x 45 = 360; ring LL min(39, b/2), LL128 min(.92 b, 8 x 36.7), each x 16/30; tree
// min(.92 b, 8 x 41.4) x 1/2; latencies base + 28 within + 2 between.
TEST(NcclCostModel, TwoNodesOfH100With230) {
  const NcclCostTable table = ComputeNcclCosts(TwoNodes("2.30.7"));
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::ring), "40.0/20.8 75.2/156.6 131.6/192.0");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::tree), "25.2/19.5 48.5/146.8 92.4/165.6");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::nvls_tree), "0.0/0.0 0.0/0.0 66.8/246.2");
  EXPECT_EQ(Row(table, OpKind::all_gather, NcclAlgorithm::ring), "23.3/41.6 44.6/313.2 70.0/384.0");
  EXPECT_EQ(Row(table, OpKind::broadcast, NcclAlgorithm::ring), "9.3/39.0 18.0/293.6 22.4/360.0");
  EXPECT_EQ(table.cells[4][static_cast<int>(NcclAlgorithm::nvls)][2].obstacle, NcclObstacle::no_collnet);
  EXPECT_EQ(table.cells[2][static_cast<int>(NcclAlgorithm::pat)][2].obstacle, NcclObstacle::pat_off);
}

TEST(NcclCostModel, TwoNodesOfH100With224) {
  const NcclCostTable table = ComputeNcclCosts(TwoNodes("2.24.3"));
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::ring), "40.0/20.8 75.2/156.6 131.6/192.0");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::tree), "25.2/19.5 48.5/146.8 92.4/165.6");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::nvls_tree), "0.0/0.0 0.0/0.0 53.0/300.0");
}

// Up to 2.22 an all-reduce ring counts 2N steps between nodes, and Tree with Simple carries a chunk's time.
TEST(NcclCostModel, TwoNodesOfH100With221) {
  const NcclCostTable table = ComputeNcclCosts(TwoNodes("2.21.5"));
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::ring), "43.4/20.8 79.4/156.6 152.8/192.0");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::tree), "25.2/19.5 48.5/146.8 448.0/165.6");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::nvls_tree), "0.0/0.0 0.0/0.0 53.0/300.0");
  EXPECT_EQ(Row(table, OpKind::all_gather, NcclAlgorithm::ring), "23.3/41.6 44.6/313.2 70.0/384.0");
}

TEST(NcclCostModel, TwoNodesOfH100With218) {
  const NcclCostTable table = ComputeNcclCosts(TwoNodes("2.18.3"));
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::ring), "43.4/20.8 79.4/156.6 152.8/192.0");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::tree), "25.2/19.5 48.5/146.8 84.0/165.6");
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::nvls_tree), "0.0/0.0 0.0/0.0 61.0/252.0");
  EXPECT_EQ(table.cells[4][static_cast<int>(NcclAlgorithm::pat)][2].obstacle, NcclObstacle::older_release);
}

// One A100 node with 2.14: 12 channels at 20 GB/s, capped at 235 together; LL128 20 per channel.
TEST(NcclCostModel, OneNodeOfA100With214) {
  NcclCommunicator c;
  c.release = ParseNcclRelease("2.14.3+cuda11.7");
  c.ranks = 8;
  c.min_capability = c.max_capability = 80;
  c.ring = {12, 20, 20, NcclPath::nvl, NcclPath::pix, kPatternRing, true, 0};
  c.tree = {12, 20, 20, NcclPath::nvl, NcclPath::pix, kPatternBalancedTree, true, 0};
  const NcclCostTable table = ComputeNcclCosts(c);
  // LL 235/4, LL128 min(.92 x 235, 240), Simple 235, each x 8/14; base + 14 x .47 / 1.9 / 3.4.
  EXPECT_EQ(Row(table, OpKind::all_reduce, NcclAlgorithm::ring), "10.2/33.6 36.6/123.5 56.0/134.3");
}

TEST(NcclCostModel, Ll128NeedsKnownPathsAndGpus) {
  NcclCommunicator c = TwoNodes("2.26.2");
  const auto obstacle = [&] { return ComputeNcclCosts(c).cells[4][static_cast<int>(NcclAlgorithm::ring)][1].obstacle; };
  EXPECT_EQ(obstacle(), NcclObstacle::none);
  c.ring.type_inter = NcclPath::phb;
  EXPECT_EQ(obstacle(), NcclObstacle::ll128_path_inter);
  c.ring.type_inter = NcclPath::pxb;
  c.ring.type_intra = NcclPath::pix;
  EXPECT_EQ(obstacle(), NcclObstacle::ll128_path_intra);
  c.ring.type_intra = NcclPath::nvl;
  c.min_capability = c.max_capability = 89;
  EXPECT_EQ(obstacle(), NcclObstacle::ll128_gpu);
  c.release = ParseNcclRelease("2.27.3");
  EXPECT_EQ(obstacle(), NcclObstacle::none);
  c.max_capability = 90;
  EXPECT_EQ(obstacle(), NcclObstacle::ll128_mixed_gpus);
  c.settings.proto = "LL128";  // named: NCCL obeys
  EXPECT_EQ(obstacle(), NcclObstacle::none);
}

TEST(NcclChoice, SmallMessagesTakeTreesAndLargeOnesTheFastest) {
  const NcclCommunicator c = TwoNodes("2.30.7");
  const NcclCostTable table = ComputeNcclCosts(c);
  const NcclDecision small = DecideNccl(c, table, {OpKind::all_reduce, 1024, DataType::bfloat16});
  ASSERT_NE(small.best(), nullptr);
  EXPECT_EQ(small.best()->algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(small.best()->protocol, NcclProtocol::ll);
  EXPECT_NEAR(small.best()->time_us, 25.2 + 1024 / (1000 * 19.5 * .9), 0.01);
  EXPECT_EQ(small.channels, 1);
  const NcclDecision large = DecideNccl(c, table, {OpKind::all_reduce, 64 << 20, DataType::bfloat16});
  ASSERT_NE(large.best(), nullptr);
  EXPECT_EQ(large.best()->algorithm, NcclAlgorithm::nvls_tree);
  EXPECT_NEAR(large.best()->time_us, 66.8 + 67108864 / (1000 * 246.187), 0.1);
  EXPECT_NEAR(large.bus_bandwidth, 67108864 / 1000.0 / large.best()->time_us * 1.875, 0.01);
  // Multicast does not average, so that the next best is taken.
  const NcclDecision average = DecideNccl(c, table, {OpKind::all_reduce, 64 << 20, DataType::bfloat16, ReduceOp::avg});
  EXPECT_EQ(average.best()->algorithm, NcclAlgorithm::ring);
}

TEST(NcclChoice, RingStaysAsAWayOutUpTo223) {
  NcclCommunicator c = TwoNodes("2.22.3");
  c.settings.algo = "Tree";
  NcclDecision decision = DecideNccl(c, ComputeNcclCosts(c), {OpKind::all_gather, 1 << 20});
  ASSERT_NE(decision.best(), nullptr);
  EXPECT_EQ(decision.best()->algorithm, NcclAlgorithm::ring);
  c.release = ParseNcclRelease("2.24.3");
  decision = DecideNccl(c, ComputeNcclCosts(c), {OpKind::all_gather, 1 << 20});
  EXPECT_EQ(decision.best(), nullptr);
}

TEST(NcclFilter, ReadsListsByFunctionFrom224On) {
  NcclFilter filter = ReadNcclFilter(ParseNcclRelease("2.28.9"), "ring;allreduce:tree,nvls", "^LL128");
  EXPECT_TRUE(filter.complaint.empty());
  EXPECT_EQ(filter.algorithms[NcclTunedIndex(OpKind::all_gather)][1], 1);
  EXPECT_EQ(filter.algorithms[NcclTunedIndex(OpKind::all_gather)][0], 0);
  EXPECT_EQ(filter.algorithms[NcclTunedIndex(OpKind::all_reduce)][1], 0);
  EXPECT_EQ(filter.algorithms[NcclTunedIndex(OpKind::all_reduce)][4], 1);
  EXPECT_EQ(filter.protocols[0][1], 0);
  EXPECT_FALSE(ReadNcclFilter(ParseNcclRelease("2.28.9"), "Rings", "").complaint.empty());
  EXPECT_TRUE(ReadNcclFilter(ParseNcclRelease("2.20.3"), "Rings", "").complaint.empty());
}

TEST(NcclRelease, IsReadAsPeopleAndLogsWriteIt) {
  EXPECT_EQ(ParseNcclRelease("2.28.9+cuda13.0").Text(), "NCCL 2.28.9");
  EXPECT_EQ(ParseNcclRelease("2.28.9+cuda13.0").cuda, 1300);
  EXPECT_EQ(ParseNcclRelease("22103").patch, 3);
  EXPECT_EQ(ParseNcclRelease("v2.24").minor, 24);
  EXPECT_TRUE(ParseNcclRelease("RCCL 2.22.3-HEAD").rccl);
  EXPECT_FALSE(ParseNcclRelease("master").known());
  EXPECT_FALSE(HasCostModel(ParseNcclRelease("2.31.2")));
  EXPECT_FALSE(HasCostModel(ParseNcclRelease("RCCL 2.22.3")));
}

}  // namespace
}  // namespace tacet
