// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/training_trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// A job that prints every tenth step how long it took.
Incident Printing(int lines, const std::function<double(int)>& seconds, bool exact = true) {
  Incident incident;
  TrainingRecord record;
  record.lines = lines;
  record.exact_times = exact;
  record.unit = exact ? "step" : "sample";
  for (int i = 0; i < lines; ++i) record.times.push_back({10 * i, seconds(i), {}});
  incident.training.push_back(std::move(record));
  return incident;
}

double Noise(std::mt19937& random, double share) {
  return 1 + share * (static_cast<double>(random() % 2001) / 1000 - 1);
}

TEST(TrainingTrend, ASteadyRiseIsToldWithItsSlope) {
  for (const double noise : {0.0, 0.02, 0.05}) {
    std::mt19937 random(3);
    const auto found = FindSlowingSteps(Printing(60, [&](int i) { return (0.5 + 0.01 * i) * Noise(random, noise); }));
    ASSERT_TRUE(found) << noise;
    EXPECT_TRUE(found->grows);
    EXPECT_NEAR(found->per_100_steps, 0.1, 0.015) << noise;
    EXPECT_NEAR(found->factor(), 1.03 / 0.56, 0.2);
  }
}

// "time so far / steps so far" of a run that goes on at step 400: the mean grows, and no step takes longer.
TEST(TrainingTrend, AMeanOverTheRunThatCountsEarlierStepsIsNoRise) {
  Incident incident;
  TrainingRecord record;
  record.lines = 40;
  record.unit = "step";
  for (int i = 0; i < 40; ++i) record.times.push_back({40 + 4 * i, 0.04 * (4 * i + 4) / (40.0 + 4 * i), {}});
  incident.training.push_back(record);
  EXPECT_FALSE(FindSlowingSteps(incident));
  incident.training.front().exact_times = true;  // the job says that it is the time of this step
  EXPECT_TRUE(FindSlowingSteps(incident));
}

// 16 times have 120 pairs: the slope is half way between the two in the middle.
TEST(TrainingTrend, TheSlopeIsTheMedianOfAllPairsAlsoOfAnEvenNumber) {
  const auto seconds = [](int i) { return std::pow(1.1, i); };
  std::vector<double> slopes;
  for (int i = 0; i < 16; ++i)
    for (int j = i + 1; j < 16; ++j) slopes.push_back((seconds(j) - seconds(i)) / (10.0 * (j - i)));
  const auto found = FindSlowingSteps(Printing(16, seconds));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->per_100_steps, 100 * Median(slopes), 1e-9);
}

TEST(TrainingTrend, ARiseToLessThanTwiceTheTimeIsFoundWhereItIsSteady) {
  std::mt19937 random(5);
  const auto found = FindSlowingSteps(Printing(80, [&](int i) { return (1 + 0.005 * i) * Noise(random, 0.03); }));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->grows);
  EXPECT_NEAR(found->per_100_steps, 0.05, 0.01);
}

TEST(TrainingTrend, PeaksOnTheWayDoNotHideIt) {
  std::mt19937 random(7);
  const auto found =
      FindSlowingSteps(Printing(80, [&](int i) { return i % 10 == 9 ? 9.0 : (1 + 0.01 * i) * Noise(random, 0.02); }));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->grows);
}

TEST(TrainingTrend, AJumpIsNoSteadyRise) {
  for (const int at : {15, 35, 45}) {
    std::mt19937 random(11);
    const auto found =
        FindSlowingSteps(Printing(60, [&](int i) { return (i < at ? 0.5 : 1.4) * Noise(random, 0.03); }));
    EXPECT_EQ(found.has_value(), at == 35) << "the first half is before it, the last third behind it";
    EXPECT_FALSE(found && found->grows) << at;
  }
}

TEST(TrainingTrend, NoiseWarmUpAndPeaksAreNoTrend) {
  std::mt19937 random(13);
  EXPECT_FALSE(FindSlowingSteps(Printing(80, [&](int) { return Noise(random, 0.3); })));
  EXPECT_FALSE(
      FindSlowingSteps(Printing(80, [&](int i) { return (1 + 4 * std::exp(-i / 5.0)) * Noise(random, 0.02); })));
  EXPECT_FALSE(FindSlowingSteps(Printing(80, [&](int i) { return i % 10 == 9 ? 6.0 : Noise(random, 0.02); })));
  EXPECT_FALSE(FindSlowingSteps(Printing(80, [](int i) { return 1 + 0.001 * i; }))) << "8 % are not worth a word";
}

TEST(TrainingTrend, AWarmUpDoesNotHideARise) {
  const auto found = FindSlowingSteps(Printing(20, [](int i) { return i == 0 ? 1.02 : 0.1 + 0.018 * i; }));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->grows);
  EXPECT_FALSE(FindSlowingSteps(Printing(20, [](int i) { return i == 0 ? 1.02 : 0.1; })));
}

TEST(TrainingTrend, OfRatesOnlyALargeRiseCounts) {
  EXPECT_FALSE(FindSlowingSteps(Printing(
      60, [](int i) { return 1 + 0.005 * i; }, false)));
  const auto found = FindSlowingSteps(Printing(
      60, [](int i) { return 1 + 0.02 * i; }, false));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->grows);
}

// A trace with a step after the other.
Incident Traced(int steps, const std::function<double(int)>& seconds) {
  Incident incident;
  Timeline timeline;
  timeline.rank = {2};
  int64_t now_ns = 0;
  for (int i = 0; i < steps; ++i) {
    const auto length_ns = static_cast<int64_t>(1e9 * seconds(i));
    timeline.steps.push_back({100 + i, now_ns, now_ns + length_ns});
    now_ns += length_ns;
  }
  incident.timelines.push_back(std::move(timeline));
  return incident;
}

TEST(TrainingTrend, ATraceShowsASteadyRiseToo) {
  std::mt19937 random(17);
  const auto found = FindSlowingSteps(Traced(40, [&](int i) { return (0.2 + 0.004 * i) * Noise(random, 0.03); }));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->grows);
  EXPECT_EQ(found->rank, Rank{2});
  EXPECT_NEAR(found->per_100_steps, 0.4, 0.05);
  EXPECT_FALSE(FindSlowingSteps(Traced(40, [&](int) { return Noise(random, 0.1); })));
  EXPECT_FALSE(FindSlowingSteps(Traced(40, [&](int i) { return i % 8 == 7 ? 5.0 : Noise(random, 0.03); })));
  EXPECT_FALSE(FindSlowingSteps(Traced(40, [](int i) { return i < 3 ? 4.0 - i : 1.0; })));
  EXPECT_FALSE(FindSlowingSteps(Traced(6, [](int i) { return 1 + 0.1 * i; }))) << "too few to tell";
}

TEST(TrainingTrend, TheEndOfARiseIsItsLastTimeUnlessThatIsAPeak) {
  const auto rise = [](int i) { return 0.1 + 0.02 * i; };
  const auto found = FindSlowingSteps(Printing(40, rise));
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->after.seconds, rise(39));
  const auto peak = FindSlowingSteps(Printing(40, [&](int i) { return i == 39 ? 30.0 : rise(i); }));
  ASSERT_TRUE(peak);
  EXPECT_DOUBLE_EQ(peak->after.seconds, rise(38));
}

}  // namespace
}  // namespace tacet
