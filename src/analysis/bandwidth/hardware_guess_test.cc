// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/hardware_guess.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

struct GuessCase {
  BenchmarkRun run;
  Sweep sweep;

  explicit GuessCase(const std::string& gpu, int32_t ranks = 8) {
    for (int32_t i = 0; i < ranks; ++i) run.devices.push_back({Rank(i), "hgx-01", gpu, 100 + i, i, {}});
    sweep.tool = "nccl-tests";
    sweep.operation = "all_reduce";
    sweep.kind = OpKind::all_reduce;
    sweep.library = "2.27.5";
    sweep.ranks = ranks;
    sweep.hosts = {"hgx-01"};
    SweepPoint point;
    point.bytes = int64_t{1} << 30;
    point.time_us = 12800;
    point.bus_gbs = 146;
    sweep.points = {point};
  }
  std::optional<HardwareGuess> Guess() {
    sweep.runs = {&run};
    return GuessFromHardware(sweep);
  }
};

TEST(HardwareGuess, IsWhatPredictSaysOfTheMachineInTheHeader) {
  const auto guess = GuessCase("NVIDIA H100 80GB HBM3").Guess();
  ASSERT_TRUE(guess);
  EXPECT_EQ(guess->machine, "8 x H100 on one node");
  EXPECT_GT(guess->expected_gbs, 400);
  EXPECT_LT(guess->expected_gbs, 500);
  EXPECT_EQ(guess->measured_gbs, 146);
}

TEST(HardwareGuess, SaysNothingOfMachinesThatItDoesNotKnow) {
  EXPECT_FALSE(GuessCase("NVIDIA H100 PCIe").Guess()) << "no NVLink";
  EXPECT_FALSE(GuessCase("Some GPU").Guess());
  GuessCase two("NVIDIA H100 80GB HBM3");
  two.sweep.hosts = {"hgx-01", "hgx-02"};
  EXPECT_FALSE(two.Guess());
  GuessCase shared("NVIDIA H100 80GB HBM3");
  shared.run.devices[1].device = 0;
  EXPECT_FALSE(shared.Guess()) << "two ranks on one GPU";
  GuessCase forced("NVIDIA H100 80GB HBM3");
  forced.sweep.algorithm = "Ring";
  EXPECT_FALSE(forced.Guess());
  GuessCase small("NVIDIA H100 80GB HBM3");
  small.sweep.points[0].bytes = 1 << 20;
  EXPECT_FALSE(small.Guess()) << "latency decides";
}

}  // namespace
}  // namespace tacet
