// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <tuple>

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

TEST(Statistics, WelchFollowsItsFormulaOnRandomSamples) {
  std::mt19937 random(8);
  for (int round = 0; round < 20; ++round) {
    std::normal_distribution<double> one(100, 1 + round), other(100 + round % 5, 3);
    std::vector<double> a(2 + random() % 10), b(2 + random() % 10);
    for (double& v : a) v = one(random);
    for (double& v : b) v = other(random);
    const auto moments = [](const std::vector<double>& values) {
      long double sum = 0, squares = 0;
      for (const double v : values) sum += v;
      const long double n = static_cast<long double>(values.size()), mean = sum / n;
      for (const double v : values) squares += (v - mean) * (v - mean);
      return std::tuple(mean, squares / (n - 1) / n, n);
    };
    const auto [ma, va, na] = moments(a);
    const auto [mb, vb, nb] = moments(b);
    const auto t = static_cast<double>((mb - ma) / std::sqrt(va + vb));
    const auto df = static_cast<double>((va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1)));
    const WelchTest test = TestWelch(a, b);
    EXPECT_NEAR(test.t, t, 1e-9);
    EXPECT_NEAR(test.degrees_of_freedom, df, 1e-6);
    EXPECT_NEAR(test.p, TailByIntegration(t, df), 1e-6);
  }
}

// A test that knows no distribution: how many ways to deal the values into two samples give a larger difference?
TEST(Statistics, WelchAgreesWithDealingTheValuesAnew) {
  std::mt19937 random(9);
  for (int round = 0; round < 6; ++round) {
    std::normal_distribution<double> one(100, 5), other(100 + 2 * round, 5);
    std::vector<double> all(20);
    for (size_t i = 0; i < all.size(); ++i) all[i] = i < 10 ? one(random) : other(random);
    const auto test = [&] { return TestWelch(std::span(all).first(10), std::span(all).last(10)); };
    const WelchTest welch = test();
    int larger = 0;
    constexpr int kDeals = 4000;
    for (int deal = 0; deal < kDeals; ++deal) {
      std::shuffle(all.begin(), all.end(), random);
      larger += std::fabs(test().t) >= std::fabs(welch.t);
    }
    EXPECT_NEAR(welch.p, static_cast<double>(larger) / kDeals, 0.03) << round;
  }
}

TEST(Statistics, FittedLineLeavesResidualsThatNoOtherLineCouldLower) {
  std::mt19937 random(10);
  std::uniform_real_distribution<double> uniform(-10, 10);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> x(3 + random() % 20), y(x.size()), w(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = uniform(random), y[i] = uniform(random), w[i] = 11 + uniform(random);
    const LinearFit fit = FitLine(x, y, w);
    ASSERT_TRUE(fit.valid);
    double sum = 0, moment = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double residual = y[i] - fit.intercept - fit.slope * x[i];
      sum += w[i] * residual;
      moment += w[i] * residual * x[i];
    }
    EXPECT_NEAR(sum, 0, 1e-8);
    EXPECT_NEAR(moment, 0, 1e-7);
  }
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

TEST(Statistics, TailPointsAreThoseOfTheTables) {
  EXPECT_NEAR(TailPointOfT(0.05, 4), 2.7764451, 1e-6);
  EXPECT_NEAR(TailPointOfT(0.01, 10), 3.1692727, 1e-6);
  EXPECT_NEAR(TailPointOfT(0.05, 1), 12.7062047, 1e-5);
  for (const double freedom : {1.0, 3.0, 17.5, 200.0})
    for (const double tail : {0.5, 0.1, 0.001})
      EXPECT_NEAR(TwoSidedTailOfT(TailPointOfT(tail, freedom), freedom), tail, 1e-9);
}

// The interval of a mean must hold the truth as often as it says, and the test must cry wolf as rarely.
TEST(Statistics, PairsAreJudgedAtTheirLevel) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0.3, 2);
  int held = 0, alarms = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values(5), centred(5);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = normal(random);
      centred[i] = normal(random) - 0.3;
    }
    const PairedTest test = TestPairs(values);
    held += test.low <= 0.3 && 0.3 <= test.high;
    alarms += TestPairs(centred).p < 0.05;
  }
  EXPECT_NEAR(held / double{kRounds}, 0.95, 0.02);
  EXPECT_NEAR(alarms / double{kRounds}, 0.05, 0.02);
  EXPECT_EQ(TestPairs(std::vector<double>{1}).p, 1);
  EXPECT_EQ(TestPairs(std::vector<double>{1, 1, 1}).p, 0);
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
