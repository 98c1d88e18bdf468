// SPDX-License-Identifier: Apache-2.0
#include "predict/training.h"

#include <gtest/gtest.h>

#include "predict/alpha_beta.h"
#include "predict/prediction.h"

namespace tacet {
namespace {

TrainingModel Llama8B() {
  TrainingModel m;
  m.layers = 32;
  m.hidden = 4096;
  m.heads = 32;
  m.kv_heads = 8;
  m.ffn = 14336;
  m.vocabulary = 128256;
  m.sequence = 8192;
  return m;
}

TEST(AlphaBeta, CollectivesOfALink) {
  const AlphaBeta link{5, 50};
  const auto time = [&](OpKind op, std::string_view algorithm, double bytes) {
    for (const PlainCost& cost : PlainCosts(op, 8, bytes))
      if (cost.algorithm == algorithm) return TimeOf(cost, link);
    return -1.0;
  };
  EXPECT_DOUBLE_EQ(time(OpKind::all_reduce, "ring", 8e6), 14 * 5 + 2 * 7.0 / 8 * 8e6 / 50e3);
  EXPECT_DOUBLE_EQ(time(OpKind::all_reduce, "double tree", 8e6), 6 * 5 + 2 * 8e6 / 50e3);
  EXPECT_DOUBLE_EQ(time(OpKind::all_reduce, "halving and doubling", 8e6), 6 * 5 + 2 * 7.0 / 8 * 8e6 / 50e3);
  EXPECT_DOUBLE_EQ(time(OpKind::all_gather, "ring", 8e6), 7 * 5 + 7.0 / 8 * 8e6 / 50e3);
  EXPECT_DOUBLE_EQ(time(OpKind::all_to_all, "pairwise", 8e6), 7 * 5 + 7.0 / 8 * 8e6 / 50e3);
  EXPECT_DOUBLE_EQ(time(OpKind::send, "direct", 1e6), 5 + 1e6 / 50e3);
  EXPECT_DOUBLE_EQ(HalfBandwidthBytes(link), 250'000);
  EXPECT_TRUE(PlainCosts(OpKind::coalesced, 8, 1).empty());
  EXPECT_EQ(PlainCosts(OpKind::all_gather, 8, 1).size(), 3u);
  EXPECT_EQ(PlainCosts(OpKind::all_gather, 12, 1).size(), 2u) << "ranks pair up at distances of powers of two";
}

TEST(AlphaBeta, LogGpCountsGapAndBytes) {
  const LogGp link{4, 1, 2, 0.02e-3};
  const PlainCost one{"direct", 1, 1001, ""};
  EXPECT_DOUBLE_EQ(TimeOf(one, link), 4 + 2 * 1 + 1000 * 0.02e-3);
  EXPECT_NEAR(AlphaBetaOf(link).bandwidth_gbps, 50, 1e-9);
}

TEST(AlphaBeta, HierarchyUsesBothLinks) {
  const Hierarchy h{{2, 400}, {10, 50}, 8, 4, 8};
  const double m = 1e9;
  EXPECT_NEAR(HierarchicalTime(OpKind::all_reduce, m, h),
              2 * (7 * 2 + 7.0 / 8 * m / 400e3) + 2 * (3 * 10 + 3.0 / 4 * m / 8 / 50e3), 1e-6);
  EXPECT_EQ(HierarchicalTime(OpKind::broadcast, m, h), 0);
}

TEST(Training, CountsTheParametersOfLlama8B) { EXPECT_NEAR(CountParameters(Llama8B()).total() / 1e9, 8.03, 0.01); }

// 16 bytes per parameter; ZeRO 1 leaves 4 + 12/d, ZeRO 2 leaves 2 + 14/d, ZeRO 3 divides all.
TEST(Training, ZeroDividesModelStates) {
  TrainingModel m;
  m.parameters = 1e9;
  m.sequence = 1;
  TrainingLayout l;
  l.data = 4;
  const auto states = [&](int zero) {
    l.zero = zero;
    const TrainingMemory memory = EstimateMemory(m, l);
    return (memory.parameters + memory.gradients + memory.optimizer) / 1e9;
  };
  EXPECT_DOUBLE_EQ(states(0), 16);
  EXPECT_DOUBLE_EQ(states(1), 4 + 12 / 4.0);
  EXPECT_DOUBLE_EQ(states(2), 2 + 14 / 4.0);
  EXPECT_DOUBLE_EQ(states(3), 4);
}

TEST(Training, RecomputationTakesActivationsAway) {
  const TrainingModel m = Llama8B();
  TrainingLayout l;
  l.sequence_parallel = false;
  const double sbh = 8192.0 * 4096;
  EXPECT_DOUBLE_EQ(EstimateMemory(m, l).activations, 32 * sbh * (34 + 5.0 * 32 * 8192 / 4096));
  l.recompute = Recompute::selective;
  EXPECT_DOUBLE_EQ(EstimateMemory(m, l).activations, 32 * sbh * 34);
  l.recompute = Recompute::full;
  EXPECT_DOUBLE_EQ(EstimateMemory(m, l).activations, 32 * sbh * 2);
  l.recomputed_layers = 8;
  EXPECT_GT(EstimateMemory(m, l).activations, 32 * sbh * 2);
  EXPECT_GT(HardwareFlopsOfToken(m, l), ModelFlopsOfToken(m));
}

TEST(Training, MfuOfAKnownExample) {  // 175e9 parameters, 2048 tokens, batch 1024, 1024 A100, 60 s
  TrainingModel m;
  m.parameters = 175e9;
  m.sequence = 2048;
  TrainingLayout l;
  l.data = 1024;
  const StepEstimate step = EstimateStep(m, l, {}, 312, 60'000);
  EXPECT_NEAR(step.mfu, 6 * 175e9 * 2048 * 1024 / 60 / (1024 * 312e12), 1e-9);
  EXPECT_DOUBLE_EQ(step.hfu, step.mfu);
  EXPECT_NEAR(step.gpu_hours_lost_per_day, 24 * 1024 * (1 - step.mfu), 1e-6);
}

TEST(Training, BubbleShrinksWithMicroBatchesAndChunks) {
  TrainingLayout l;
  l.pipeline = 4;
  l.micro_batches = 8;
  EXPECT_DOUBLE_EQ(EstimateStep(Llama8B(), l, {}, 0, 0).bubble, 3.0 / 11);
  l.interleave = 2;
  EXPECT_DOUBLE_EQ(EstimateStep(Llama8B(), l, {}, 0, 0).bubble, 3.0 / 19);
}

TEST(Training, Zero3SendsThreeHalvesOfZero1) {
  TrainingLayout l;
  l.data = 8;
  const auto sent = [&](int zero) {
    l.zero = zero;
    double bytes = 0;
    for (const StepTraffic& one : EstimateTraffic(Llama8B(), l, 8)) bytes += one.sent_bytes;
    return bytes;
  };
  EXPECT_DOUBLE_EQ(sent(0), sent(1));
  EXPECT_NEAR(sent(3) / sent(1), 1.5, 1e-9);
}

TEST(Training, OverlapIsTheShareThatIsHidden) {
  EXPECT_DOUBLE_EQ(OverlapEfficiency(15, 20, 20), 1);
  EXPECT_DOUBLE_EQ(OverlapEfficiency(15, 20, 35), 0);
}

TEST(GraphSearch, FindsTheGraphsOfUsualMachines) {
  std::vector<std::string> unused;
  ClusterHardware hardware;
  hardware.gpu = *FindGpu("H100");
  NcclCommunicator c = SearchGraphs(ParseNcclRelease("2.28.9"), hardware, &unused);
  EXPECT_EQ(c.ring.channels, 12);
  EXPECT_FLOAT_EQ(c.ring.bw_intra, 30);
  EXPECT_EQ(c.nvls.channels, 8);
  EXPECT_FLOAT_EQ(c.nvls.bw_intra, 40);
  EXPECT_FLOAT_EQ(c.nvls.bw_inter, 60);
  EXPECT_EQ(c.channels, 24);
  hardware.nodes = 16;
  hardware.nics_per_node = 8;
  hardware.nic_gbit = 400;
  c = SearchGraphs(ParseNcclRelease("2.28.9"), hardware, &unused);
  EXPECT_EQ(c.ring.channels, 8);
  EXPECT_FLOAT_EQ(c.ring.bw_inter, 45);
  EXPECT_EQ(c.ranks, 128);
  hardware.gpu = *FindGpu("a100-sxm4-80gb");
  hardware.nodes = 1;
  c = SearchGraphs(ParseNcclRelease("2.20.5"), hardware, &unused);
  EXPECT_EQ(c.ring.channels, 12);
  EXPECT_FLOAT_EQ(c.ring.bw_intra, 20);
  EXPECT_FALSE(c.multicast);
}

TEST(GraphSearch, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(ParseGpus("8xQ900").ok());
  EXPECT_FALSE(ParseNics("8x400parsec").ok());
  EXPECT_FALSE(ParseNics("fast").ok());
  EXPECT_EQ(ParseNics("8x400G").value().first, 8);
}

TEST(WhatIf, ANewNetworkAndMoreNodes) {
  std::vector<std::string> assumptions;
  ClusterHardware hardware;
  hardware.gpu = *FindGpu("H100");
  hardware.nodes = 4;
  hardware.nics_per_node = 8;
  hardware.nic_gbit = 100;
  const NcclCommunicator slow = SearchGraphs(ParseNcclRelease("2.28.9"), hardware, &assumptions);
  auto fast = ApplyChange(slow, {"nics=8x400G"}, &assumptions);
  ASSERT_TRUE(fast.ok());
  EXPECT_FLOAT_EQ(fast->ring.bw_inter, 45);
  EXPECT_GT(fast->ring.bw_inter * static_cast<float>(fast->ring.channels),
            3 * slow.ring.bw_inter * static_cast<float>(slow.ring.channels));
  auto more = ApplyChange(slow, {"nodes=32", "version=2.24", "algo=Ring"}, &assumptions);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->ranks, 256);
  EXPECT_EQ(more->release.minor, 24);
  EXPECT_EQ(more->settings.algo, "Ring");
  EXPECT_FALSE(ApplyChange(slow, {"colour=red"}, &assumptions).ok());
  EXPECT_FALSE(ApplyChange(slow, {"nodes=-3"}, &assumptions).ok());
}

TEST(WhatIf, GdrOnGivesLl128Back) {
  std::vector<std::string> assumptions;
  ClusterHardware hardware;
  hardware.gpu = *FindGpu("H100");
  hardware.nodes = 4;
  hardware.nics_per_node = 8;
  hardware.nic_gbit = 400;
  hardware.gdr = false;
  const NcclCommunicator off = SearchGraphs(ParseNcclRelease("2.28.9"), hardware, &assumptions);
  EXPECT_EQ(ComputeNcclCosts(off).cells[4][1][1].obstacle, NcclObstacle::ll128_path_inter);
  auto on = ApplyChange(off, {"gdr=on"}, &assumptions);
  ASSERT_TRUE(on.ok());
  EXPECT_EQ(ComputeNcclCosts(*on).cells[4][1][1].obstacle, NcclObstacle::none);
}

}  // namespace
}  // namespace tacet
