// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tacet {

// All functions take values in any order; an empty list gives 0.
double Mean(std::span<const double> values);
double Variance(std::span<const double> values);        // of the sample: divided by n - 1
double Quantile(std::vector<double> values, double q);  // linear between neighbours, q in [0, 1]
double Median(std::vector<double> values);
// Without this share of the values at each end; of fewer than seven all count.
double TrimmedMean(std::vector<double> values, double share);
// Median distance from the median, times 1.4826: the standard deviation of a normal sample, and blind to outliers.
double RobustDeviation(const std::vector<double>& values);

// Student's t distribution: probability of a value at least as far from 0 as t, on both sides.
double TwoSidedTailOfT(double t, double degrees_of_freedom);

// The t that has this two-sided tail: 2.776 for 0.05 and 4 degrees of freedom.
double TailPointOfT(double two_sided_tail, double degrees_of_freedom);

// Student's t-test of pairs: is the mean of these differences zero? The interval is that of the mean, at `confidence`.
struct PairedTest {
  double mean = 0, low = 0, high = 0;
  double p = 1;  // two-sided; 1 with fewer than two values
};
PairedTest TestPairs(std::span<const double> differences, double confidence = 0.95);

// Welch's t-test: do two samples with unequal variances have the same mean?
struct WelchTest {
  double difference = 0;  // mean of b minus mean of a
  double t = 0, degrees_of_freedom = 0;
  double p = 1;  // two-sided; 1 when a sample has fewer than two values
};
WelchTest TestWelch(std::span<const double> a, std::span<const double> b);

// Percentile bootstrap of mean(b) / mean(a) - 1, with a fixed seed so that the same input gives the same answer.
struct BootstrapInterval {
  double low = 0, high = 0;
};
BootstrapInterval BootstrapRelativeDifference(std::span<const double> a, std::span<const double> b,
                                              double confidence = 0.95, int resamples = 4000, uint64_t seed = 1);

// Benjamini-Hochberg: for each p-value its adjusted value. Calling everything below q a discovery keeps the share of
// false ones among the discoveries at or below q.
std::vector<double> AdjustForMultipleTests(std::span<const double> p);

// y = intercept + slope * x by least squares, weights optional (empty: all 1).
struct LinearFit {
  double intercept = 0, slope = 0;
  double r_squared = 0;
  bool valid = false;  // at least two different x
};
LinearFit FitLine(std::span<const double> x, std::span<const double> y, std::span<const double> weights = {});

// Slope and intercept by medians (Theil-Sen): right as long as fewer than about 29 % of the points are outliers.
LinearFit FitLineRobustly(std::span<const double> x, std::span<const double> y);

}  // namespace tacet
