// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/piecewise_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tacet {
namespace {

struct Piece {
  double from = 0, alpha = 0, beta = 0;  // us, us per byte
};

// LL to 64 KiB, LL128 to 8 MiB, Simple beyond: each piece runs from sizes where its latency decides to sizes where its
// bandwidth does, else no sweep could tell both.
const std::vector<Piece> kPieces = {{0, 12, 6e-4}, {128 << 10, 100, 1.3e-4}, {16 << 20, 2000, 2.2e-5}};

std::vector<FitObservation> Synthetic(const std::vector<Piece>& pieces, double noise, int times, uint32_t seed,
                                      double first = 1024, double last = 8.6e9) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<FitObservation> out;
  for (double bytes = first; bytes <= last; bytes *= 2) {
    const Piece* at = &pieces.front();
    for (const Piece& one : pieces)
      if (bytes >= one.from) at = &one;
    for (int i = 0; i < times; ++i)
      out.push_back({bytes, (at->alpha + at->beta * bytes) * std::max(0.3, 1 + normal(random))});
  }
  return out;
}

TEST(PiecewiseFit, FindsParametersWithinThreePercentAndBreaksWithinOneSizeUnderTenPercentNoise) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const PiecewiseFit fit = FitPiecewise(Synthetic(kPieces, 0.10, 100, seed));
    ASSERT_EQ(fit.segments.size(), 3u) << "seed " << seed;
    for (size_t i = 0; i < 3; ++i) {
      const FitSegment& segment = fit.segments[i];
      EXPECT_NEAR(segment.alpha_us / kPieces[i].alpha, 1, 0.03) << "seed " << seed << " segment " << i;
      EXPECT_NEAR(segment.beta_us_per_byte / kPieces[i].beta, 1, 0.03) << "seed " << seed << " segment " << i;
      const double off = i > 0 ? std::fabs(std::log2(segment.first_bytes / kPieces[i].from)) : 0;
      EXPECT_LE(off, 1.0) << "seed " << seed;
    }
    EXPECT_NEAR(fit.noise, 0.10, 0.015);
  }
}

TEST(PiecewiseFit, IntervalsHoldTheTruthMostOfTheTime) {
  int inside = 0, all = 0, split = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const PiecewiseFit fit = FitPiecewise(Synthetic({{0, 25, 1e-5}}, 0.10, 4, seed));
    split += fit.segments.size() > 1;
    if (fit.segments.size() > 1) continue;
    const FitSegment& one = fit.segments[0];
    inside += std::fabs(one.alpha_us - 25) <= one.alpha_error_us;
    inside += std::fabs(one.beta_us_per_byte - 1e-5) <= one.beta_error_us_per_byte;
    all += 2;
  }
  EXPECT_LE(split, 2);  // of 60: noise that looks like a break
  EXPECT_GE(inside, all * 88 / 100);
}

TEST(PiecewiseFit, OneMeasurementPerSizeStillFindsTheBreaks) {
  int right = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const PiecewiseFit fit = FitPiecewise(Synthetic(kPieces, 0.03, 1, seed));
    right += fit.segments.size() == 3 && std::fabs(std::log2(fit.segments[1].first_bytes / kPieces[1].from)) <= 1 &&
             std::fabs(std::log2(fit.segments[2].first_bytes / kPieces[2].from)) <= 1;
  }
  EXPECT_GE(right, 17);
}

TEST(PiecewiseFit, AStraightSweepIsOneSegment) {
  const PiecewiseFit fit = FitPiecewise(Synthetic({{0, 10, 1e-5}}, 0.0, 1, 1));
  ASSERT_EQ(fit.segments.size(), 1u);
  EXPECT_NEAR(fit.segments[0].alpha_us, 10, 1e-6);
  EXPECT_NEAR(fit.segments[0].BandwidthGbs(), 100, 1e-6);
  EXPECT_NEAR(fit.r_squared, 1, 1e-9);
  EXPECT_LT(fit.worst_error, 1e-9);
}

TEST(PiecewiseFit, AFewOutliersDoNotMoveIt) {
  std::vector<FitObservation> sweep = Synthetic({{0, 10, 1e-5}}, 0.02, 5, 3);
  for (size_t i = 2; i < sweep.size(); i += 25) sweep[i].time_us *= 5;
  const PiecewiseFit fit = FitPiecewise(sweep);
  ASSERT_EQ(fit.segments.size(), 1u);
  EXPECT_NEAR(fit.segments[0].alpha_us / 10, 1, 0.03);
  EXPECT_NEAR(fit.segments[0].BandwidthGbs() / 100, 1, 0.03);
}

TEST(PiecewiseFit, SaysNothingOfTooLittle) {
  EXPECT_TRUE(FitPiecewise({}).segments.empty());
  const std::vector<FitObservation> two = {{1024, 10}, {2048, 11}, {2048, 11}};
  EXPECT_TRUE(FitPiecewise(two).segments.empty());
  const std::vector<FitObservation> bad = {{0, 1}, {-4, 1}, {8, NAN}, {16, -1}};
  EXPECT_TRUE(FitPiecewise(bad).segments.empty());
}

TEST(PiecewiseFit, BearsThousandsOfSizes) {
  std::vector<FitObservation> sweep;
  for (int i = 1; i <= 4000; ++i) sweep.push_back({i * 1024.0, 20 + i * 0.01});
  const PiecewiseFit fit = FitPiecewise(sweep);
  ASSERT_EQ(fit.segments.size(), 1u);
  EXPECT_NEAR(fit.segments[0].alpha_us, 20, 0.01);
}

}  // namespace
}  // namespace tacet
