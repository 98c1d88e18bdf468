// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/mfu.h"

#include <gtest/gtest.h>

#include "analysis/timing/memory_use.h"
#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

TEST(Mfu, KnowsDevicesByTheirDriverNames) {
  EXPECT_EQ(FindDevicePeak("NVIDIA H100 80GB HBM3")->bf16_tflops, 989);
  EXPECT_EQ(FindDevicePeak("NVIDIA H100 PCIe")->bf16_tflops, 756);
  EXPECT_EQ(FindDevicePeak("NVIDIA H200")->bf16_tflops, 989);
  EXPECT_EQ(FindDevicePeak("NVIDIA A100-PG509-200")->bf16_tflops, 312);
  EXPECT_EQ(FindDevicePeak("Tesla V100-SXM2-32GB")->bf16_tflops, 125);
  EXPECT_EQ(FindDevicePeak("NVIDIA GB200")->bf16_tflops, 2500);
  EXPECT_EQ(FindDevicePeak("NVIDIA B200")->bf16_tflops, 2250);
  EXPECT_EQ(FindDevicePeak("AMD Instinct MI300X")->bf16_tflops, 1307);
  EXPECT_FALSE(FindDevicePeak("NVIDIA GeForce RTX 9999"));
}

// PaLM 540B: 6N is 3.24e12, attention 118 * 48 * 256 * 2048 * 12 is 3.6e10 a token; the paper's 46.2 % MFU at 238.3K
// tokens/s on 6144 TPU v4 of 275 TFLOP/s.
TEST(Mfu, FollowsThePalmFormula) {
  const TransformerShape palm{.parameters = 540e9, .layers = 118, .heads = 48, .head_dim = 256, .sequence = 2048};
  EXPECT_NEAR(ModelFlopsPerToken(palm), 6 * 540e9 + 12.0 * 118 * 48 * 256 * 2048, 1);
  const double per_second = 238.3e3 * ModelFlopsPerToken(palm);
  EXPECT_NEAR(MeasureUtilisation(per_second / 6144, 1, 275).share(), 0.462, 0.003);
  EXPECT_NEAR(HardwareFlopsPerToken(palm, true) / ModelFlopsPerToken(palm), 4.0 / 3, 1e-12);
}

// Narayanan 2021: GPT-3 175B, batch 1536, 2048 tokens: one iteration with full recompute is 96 B s l h^2 (...).
TEST(Mfu, FollowsTheMegatronFormula) {
  const TransformerShape gpt3{.layers = 96, .hidden = 12288, .vocabulary = 51200, .sequence = 2048};
  const double flops = MegatronFlopsPerIteration(gpt3, 1536, true);
  EXPECT_NEAR(flops / (96.0 * 1536 * 2048 * 96 * 12288.0 * 12288),
              1 + 2048.0 / (6 * 12288) + 51200.0 / (16.0 * 96 * 12288), 1e-12);
  // Without recompute nearly three quarters; both agree with 6 N a token within the attention.
  EXPECT_NEAR(MegatronFlopsPerIteration(gpt3, 1536, false) / (1536.0 * 2048), 6 * ParametersOfShape(gpt3),
              0.05 * 6 * ParametersOfShape(gpt3));
}

TEST(Mfu, CountsTheMatrixWorkOfATrace) {
  Timeline timeline = MakeTimeline(0);
  timeline.devices = {{0, "NVIDIA H200", 1000, 9, 0, 132}};
  timeline.steps = {{0, 0, 1'000'000}, {1, 1'000'000, 2'000'000}};
  AddGpu(timeline, GpuWork::compute, 10, 20);
  timeline.matrix_work = {{100, 2e9}, {1'500'000, 4e9}, {3'000'000, 1e12}};
  const auto use = MeasureUtilisation(timeline);
  ASSERT_TRUE(use);
  EXPECT_DOUBLE_EQ(use->flops, 3e9);
  EXPECT_DOUBLE_EQ(use->share(), 3e9 / 1e-3 / 989e12);
  timeline.matrix_work.clear();
  EXPECT_FALSE(MeasureUtilisation(timeline));
}

TEST(MemoryUse, FindsThePeakAndItsStep) {
  Timeline timeline = MakeTimeline(0);
  timeline.devices = {{0, "NVIDIA H200", 1000, 9, 0, 132}};
  timeline.steps = {{4, 0, 100}, {5, 100, 200}};
  AddGpu(timeline, GpuWork::compute, 10, 20);
  timeline.memory = {{10, 300, 500}, {120, 600, 800}, {150, 200, 800}};
  const auto use = MeasureMemory(timeline);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->peak_allocated_bytes, 600);
  EXPECT_EQ(use->peak_step, 5);
  EXPECT_EQ(use->lowest_allocated_bytes, 200);
  EXPECT_DOUBLE_EQ(use->fragmentation, 0.25);
  EXPECT_FALSE(use->pressure);
  timeline.memory.push_back({160, 500, 950});
  EXPECT_TRUE(MeasureMemory(timeline)->pressure);
  EXPECT_FALSE(MeasureMemory(MakeTimeline(0)));
}

TEST(MemoryUse, SplitsThePeakBySizesAndLifetimes) {
  Timeline timeline = MakeTimeline(0);
  timeline.steps = {{4, 0, 100}, {5, 100, 200}};
  timeline.memory = {{5, 700, 2000}, {140, 1500, 2000}, {150, 1600, 2000}, {160, 1400, 2000}, {190, 700, 2000}};
  timeline.gradients = {{145, 30, 0, DataType::float32}, {155, 20, 0, DataType::float32}};
  auto use = MeasureMemory(timeline);
  ASSERT_TRUE(use && use->split);
  EXPECT_EQ(use->peak_phase, StepPhase::backward);
  EXPECT_EQ(use->split->parameter_bytes, 200);
  EXPECT_EQ(use->split->staying_bytes, 500);
  EXPECT_EQ(use->split->passing_bytes, 900);
  EXPECT_EQ(use->split->gradient_bytes, 200);
  use = MeasureMemory(timeline, 4);
  EXPECT_EQ(use->split->parameter_bytes, 50);
  EXPECT_EQ(use->split->parameter_bytes + use->split->staying_bytes + use->split->passing_bytes, 1600);
  timeline.gradients.clear();
  use = MeasureMemory(timeline);
  EXPECT_FALSE(use->split);
  EXPECT_EQ(use->peak_phase, StepPhase::unknown);
}

}  // namespace
}  // namespace tacet
