// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace tacet {
namespace {

// The density of Student's t integrated with Simpson's rule: independent of the incomplete beta function.
double TailByIntegration(double t, double df) {
  const double norm = std::tgamma((df + 1) / 2) / (std::sqrt(df * std::numbers::pi) * std::tgamma(df / 2));
  const auto density = [&](double x) { return norm * std::pow(1 + x * x / df, -(df + 1) / 2); };
  const int steps = 20000;
  const double h = std::fabs(t) / steps;
  double sum = density(0) + density(std::fabs(t));
  for (int i = 1; i < steps; ++i) sum += density(i * h) * (i % 2 ? 4 : 2);
  return 1 - 2 * sum * h / 3;
}

TEST(Statistics, TailOfTAgreesWithIntegration) {
  for (const double df : {1.0, 2.5, 4.0, 9.7, 30.0, 120.0})
    for (const double t : {0.0, 0.3, 1.0, 2.0, 3.5, 6.0})
      EXPECT_NEAR(TwoSidedTailOfT(t, df), TailByIntegration(t, df), 1e-9) << df << " " << t;
  EXPECT_NEAR(TwoSidedTailOfT(12.706, 1), 0.05, 1e-5);  // tables
  EXPECT_NEAR(TwoSidedTailOfT(2.0423, 30), 0.05, 1e-5);
}

TEST(Statistics, WelchMatchesAWorkedExample) {
  // R: t.test(c(27.5,21.0,19.0,23.6,17.0,17.9), c(27.1,22.0,20.8,23.4,23.4,23.5,25.8))
  const std::vector<double> a = {27.5, 21.0, 19.0, 23.6, 17.0, 17.9}, b = {27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8};
  const WelchTest test = TestWelch(a, b);
  const double va = Variance(a) / 6, vb = Variance(b) / 7;
  EXPECT_NEAR(test.t, (Mean(b) - Mean(a)) / std::sqrt(va + vb), 1e-12);
  EXPECT_NEAR(test.p, TailByIntegration(test.t, test.degrees_of_freedom), 1e-9);
  EXPECT_GT(test.p, 0.05);
}

TEST(Statistics, WelchFindsNothingInNoiseMostOfTheTime) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(100, 5);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> a(12), b(8);
    for (double& v : a) v = normal(random);
    for (double& v : b) v = normal(random);
    found += TestWelch(a, b).p < 0.05;
  }
  EXPECT_NEAR(found / 2000.0, 0.05, 0.015);
}

TEST(Statistics, WelchOfConstantSamplesIsCertain) {
  const std::vector<double> a = {2, 2, 2}, b = {3, 3};
  EXPECT_EQ(TestWelch(a, b).p, 0);
  EXPECT_EQ(TestWelch(a, a).p, 1);
  EXPECT_EQ(TestWelch(a, std::vector<double>{1}).p, 1);
}

TEST(Statistics, BootstrapIntervalHoldsTheTrueDifferenceAsOftenAsItPromises) {
  std::mt19937 random(9);
  std::normal_distribution<double> normal(100, 10);
  int held = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<double> a(40), b(40);
    for (double& v : a) v = normal(random);
    for (double& v : b) v = 1.1 * normal(random);
    const BootstrapInterval interval = BootstrapRelativeDifference(a, b, 0.95, 800, static_cast<uint64_t>(round));
    held += interval.low <= 0.1 && 0.1 <= interval.high;
  }
  EXPECT_GE(held, 180);
  EXPECT_LE(held, 200);
}

TEST(Statistics, AdjustedValuesFollowTheDefinition) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> p(1 + random() % 9);
    for (double& v : p) v = static_cast<double>(random() % 1000) / 1000;
    const auto adjusted = AdjustForMultipleTests(p);
    for (size_t i = 0; i < p.size(); ++i) {
      // The smallest q at which the procedure rejects hypothesis i: least over all k with p_(k) >= p_i of p_(k) n / k.
      auto sorted = p;
      std::sort(sorted.begin(), sorted.end());
      double least = 1;
      for (size_t k = 0; k < sorted.size(); ++k)
        if (sorted[k] >= p[i])
          least = std::min(least, sorted[k] * static_cast<double>(p.size()) / static_cast<double>(k + 1));
      ASSERT_NEAR(adjusted[i], least, 1e-12);
    }
  }
}

TEST(Statistics, QuantilesAgreeWithSorting) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values(1 + random() % 20);
    for (double& v : values) v = static_cast<double>(random() % 100);
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double middle =
        sorted.size() % 2 ? sorted[sorted.size() / 2] : (sorted[sorted.size() / 2 - 1] + sorted[sorted.size() / 2]) / 2;
    ASSERT_DOUBLE_EQ(Median(values), middle);
    ASSERT_DOUBLE_EQ(Quantile(values, 1), sorted.back());
    ASSERT_DOUBLE_EQ(Quantile(values, 0), sorted.front());
  }
  EXPECT_EQ(Median({}), 0);
}

TEST(Statistics, RobustLineIgnoresOutliers) {
  std::vector<double> x, y;
  for (int i = 0; i < 40; ++i) {
    x.push_back(i);
    y.push_back(i % 5 == 0 ? 1e6 : 3 + 0.5 * i);
  }
  const LinearFit fit = FitLineRobustly(x, y);
  EXPECT_NEAR(fit.slope, 0.5, 1e-9);
  EXPECT_NEAR(fit.intercept, 3, 1e-9);
  EXPECT_FALSE(FitLine(std::vector<double>{2, 2}, std::vector<double>{1, 3}).valid);
}

}  // namespace
}  // namespace tacet
