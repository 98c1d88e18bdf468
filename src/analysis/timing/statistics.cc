// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace tacet {
namespace {

// Regularized incomplete beta function by its continued fraction (modified Lentz).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::fabs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double h = d;
  for (int m = 1; m <= 500; ++m) {
    for (const double numerator : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                   -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 + numerator * d;
      if (std::fabs(d) < kTiny) d = kTiny;
      c = 1 + numerator / c;
      if (std::fabs(c) < kTiny) c = kTiny;
      d = 1 / d;
      h *= d * c;
    }
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return h;
}

double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

double MeanOfResample(std::span<const double> values, std::mt19937_64& random) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
  return sum / static_cast<double>(values.size());
}

}  // namespace

double Mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Variance(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(below), values.end());
  const double low = values[below];
  if (below + 1 >= values.size()) return low;
  const double high = *std::min_element(values.begin() + static_cast<ptrdiff_t>(below) + 1, values.end());
  return low + (high - low) * (place - static_cast<double>(below));
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double TrimmedMean(std::vector<double> values, double share) {
  constexpr size_t kMinTrimmed = 7;
  if (values.size() < kMinTrimmed) return Mean(values);
  std::sort(values.begin(), values.end());
  const auto out = static_cast<ptrdiff_t>(share * static_cast<double>(values.size()));
  return Mean(std::span(values.begin() + out, values.end() - out));
}

double RobustDeviation(const std::vector<double>& values) {
  const double median = Median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::fabs(value - median));
  return 1.4826 * Median(std::move(distances));
}

double TwoSidedTailOfT(double t, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0) || std::isnan(t)) return 1;
  if (std::isinf(t)) return 0;
  return IncompleteBeta(degrees_of_freedom / 2, 0.5, degrees_of_freedom / (degrees_of_freedom + t * t));
}

double TailPointOfT(double two_sided_tail, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0) || !(two_sided_tail > 0)) return INFINITY;
  double low = 0, high = 1;
  while (TwoSidedTailOfT(high, degrees_of_freedom) > two_sided_tail && high < 1e12) high *= 2;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (TwoSidedTailOfT(middle, degrees_of_freedom) > two_sided_tail ? low : high) = middle;
  }
  return high;
}

PairedTest TestPairs(std::span<const double> differences, double confidence) {
  PairedTest test;
  test.mean = test.low = test.high = Mean(differences);
  if (differences.size() < 2) return test;
  const double error = std::sqrt(Variance(differences) / static_cast<double>(differences.size()));
  if (error == 0) {
    test.p = test.mean == 0 ? 1 : 0;
    return test;
  }
  const double freedom = static_cast<double>(differences.size() - 1);
  test.p = TwoSidedTailOfT(test.mean / error, freedom);
  const double reach = TailPointOfT(1 - confidence, freedom) * error;
  test.low = test.mean - reach;
  test.high = test.mean + reach;
  return test;
}

WelchTest TestWelch(std::span<const double> a, std::span<const double> b) {
  WelchTest test;
  test.difference = Mean(b) - Mean(a);
  if (a.size() < 2 || b.size() < 2) return test;
  const double na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double va = Variance(a) / na, vb = Variance(b) / nb;
  if (va + vb == 0) {
    // Two constant samples: equal for sure or different for sure.
    test.p = test.difference == 0 ? 1 : 0;
    return test;
  }
  test.t = test.difference / std::sqrt(va + vb);
  test.degrees_of_freedom = (va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1));
  test.p = TwoSidedTailOfT(test.t, test.degrees_of_freedom);
  return test;
}

BootstrapInterval BootstrapRelativeDifference(std::span<const double> a, std::span<const double> b, double confidence,
                                              int resamples, uint64_t seed) {
  if (a.empty() || b.empty() || resamples <= 0) return {};
  std::mt19937_64 random(seed);
  std::vector<double> differences;
  differences.reserve(static_cast<size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    const double before = MeanOfResample(a, random), after = MeanOfResample(b, random);
    if (before != 0) differences.push_back(after / before - 1);
  }
  const double tail = (1 - confidence) / 2;
  return {Quantile(differences, tail), Quantile(differences, 1 - tail)};
}

std::vector<double> AdjustForMultipleTests(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double smallest = 1;
  for (size_t i = order.size(); i-- > 0;) {
    smallest = std::min(smallest, p[order[i]] * static_cast<double>(p.size()) / static_cast<double>(i + 1));
    adjusted[order[i]] = smallest;
  }
  return adjusted;
}

LinearFit FitLine(std::span<const double> x, std::span<const double> y, std::span<const double> weights) {
  double sw = 0, sx = 0, sy = 0;
  const auto weight = [&](size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  for (size_t i = 0; i < x.size(); ++i) {
    sw += weight(i);
    sx += weight(i) * x[i];
    sy += weight(i) * y[i];
  }
  LinearFit fit;
  if (sw <= 0) return fit;
  const double mx = sx / sw, my = sy / sw;
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += weight(i) * (x[i] - mx) * (x[i] - mx);
    xy += weight(i) * (x[i] - mx) * (y[i] - my);
    yy += weight(i) * (y[i] - my) * (y[i] - my);
  }
  if (xx <= 0) return fit;
  fit.valid = true;
  fit.slope = xy / xx;
  fit.intercept = my - fit.slope * mx;
  fit.r_squared = yy > 0 ? xy * xy / (xx * yy) : 1;
  return fit;
}

LinearFit FitLineRobustly(std::span<const double> x, std::span<const double> y) {
  // All pairs of up to 160 points; of more, evenly chosen ones: the median hardly moves, and pairs are many.
  const size_t stride = std::max<size_t>(1, (x.size() + 159) / 160);
  std::vector<double> slopes;
  for (size_t i = 0; i < x.size(); i += stride)
    for (size_t j = i + stride; j < x.size(); j += stride)
      if (x[i] != x[j]) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
  LinearFit fit;
  if (slopes.empty()) return fit;
  fit.valid = true;
  fit.slope = Median(std::move(slopes));
  std::vector<double> rest;
  rest.reserve(x.size());
  for (size_t i = 0; i < x.size(); ++i) rest.push_back(y[i] - fit.slope * x[i]);
  fit.intercept = Median(std::move(rest));
  return fit;
}

}  // namespace tacet
