// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/sweep_outliers.h"

#include <gtest/gtest.h>

#include <random>

namespace tacet {
namespace {

std::vector<double> Steady(size_t count, double level, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(1, 0.03);
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(level * normal(random));
  return out;
}

TEST(LevelShift, IsFoundWhereItBegins) {
  std::vector<double> times = Steady(40, 100, 1);
  for (size_t i = 25; i < times.size(); ++i) times[i] *= 1.4;
  const auto shift = FindLevelShift(times);
  ASSERT_TRUE(shift);
  EXPECT_EQ(shift->first, 25u);
  EXPECT_NEAR(shift->after / shift->before, 1.4, 0.06);
}

TEST(LevelShift, IsNotSeenInNoiseNorInSpikes) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::vector<double> times = Steady(40, 100, seed);
    EXPECT_FALSE(FindLevelShift(times)) << seed;
    times[7] *= 4, times[30] *= 3;
    EXPECT_FALSE(FindLevelShift(times)) << seed;
  }
}

TEST(Spikes, AreSingleValuesFarAboveTheOthers) {
  std::vector<double> times = Steady(40, 100, 2);
  times[7] *= 4, times[30] *= 3;
  EXPECT_EQ(FindSpikes(times, 0.5), (std::vector<size_t>{7, 30}));
  EXPECT_TRUE(FindSpikes(Steady(40, 100, 3), 0.5).empty());
  EXPECT_TRUE(FindSpikes(std::vector<double>{1, 9}, 0.5).empty());
}

// A sweep of one size more slow than the line through the others, measured `times` times.
Sweep WithOneSlowSize(int times, int slow) {
  Sweep sweep;
  std::vector<FitObservation> observed;
  for (int64_t bytes = 1 << 10; bytes <= 1 << 24; bytes *= 2) {
    SweepPoint& point = sweep.points.emplace_back();
    point.bytes = bytes;
    for (int i = 0; i < times; ++i) {
      const double factor = bytes == 1 << 16 && i < slow ? 2 : 1;
      point.times_us.push_back((20 + static_cast<double>(bytes) * 1e-3) * factor);
      observed.push_back({static_cast<double>(bytes), point.times_us.back()});
    }
  }
  sweep.fit = FitPiecewise(observed);
  return sweep;
}

TEST(SweepOutliers, TellLastingFromPassing) {
  const std::vector<SweepOutlier> lasting = FindSweepOutliers(WithOneSlowSize(4, 4));
  ASSERT_EQ(lasting.size(), 1u);
  EXPECT_EQ(lasting[0].bytes, 1 << 16);
  EXPECT_EQ(lasting[0].kind, OutlierKind::lasting);
  const std::vector<SweepOutlier> passing = FindSweepOutliers(WithOneSlowSize(4, 1));
  ASSERT_EQ(passing.size(), 1u);
  EXPECT_EQ(passing[0].kind, OutlierKind::passing);
  EXPECT_EQ(passing[0].slow, 1u);
  const std::vector<SweepOutlier> once = FindSweepOutliers(WithOneSlowSize(1, 1));
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(once[0].kind, OutlierKind::once);
  EXPECT_TRUE(FindSweepOutliers(WithOneSlowSize(4, 0)).empty());
}

TEST(SweepOutliers, TellWhatTheyAreMeasuredAgainst) {
  // The fit bends towards a size that is always slow; the sizes beside it do not.
  const std::vector<SweepOutlier> lasting = FindSweepOutliers(WithOneSlowSize(4, 4));
  ASSERT_EQ(lasting.size(), 1u);
  EXPECT_TRUE(lasting[0].by_neighbours);
  Sweep sweep = WithOneSlowSize(4, 1);
  sweep.fit.segments = {sweep.fit.segments.front(), sweep.fit.segments.front()};
  sweep.fit.segments[0].last_bytes = 1 << 16;
  const std::vector<SweepOutlier> changed = FindSweepOutliers(sweep);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_TRUE(changed[0].at_change);
  EXPECT_FALSE(FindSweepOutliers(WithOneSlowSize(4, 1)).at(0).at_change);
}

TEST(SweepOutliers, IterationsTellFromWhenOn) {
  Sweep sweep;
  SweepPoint& point = sweep.points.emplace_back();
  point.bytes = 1 << 20;
  point.iterations_us = Steady(30, 100, 4);
  for (size_t i = 12; i < 30; ++i) point.iterations_us[i] *= 2;
  const std::vector<SweepOutlier> found = FindSweepOutliers(sweep);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, OutlierKind::lasting);
  EXPECT_EQ(found[0].iteration, 12);
}

}  // namespace
}  // namespace tacet
