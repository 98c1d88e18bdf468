// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/piecewise_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Two points always lie on a line: fewer sizes say nothing about it.
constexpr size_t kLeastSizes = 3;
// Beyond these the ends of segments are looked for among every so many sizes only.
constexpr size_t kMostEnds = 96;
// What a straight line leaves over is taken for curvature of the machine below this share, not for another protocol.
constexpr double kModelError = 0.01;
// Huber's constant for 95 % efficiency on normal noise, in standard deviations.
constexpr double kHuber = 1.345;
// Alpha, beta, and the place of the break, which is the best of many.
constexpr double kParametersPerSegment = 4;

struct Line {
  double alpha = 0, beta = 0;
  double At(double x) const { return alpha + beta * x; }
};

struct Moments {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  void Add(double weight, double x, double y) {
    w += weight, wx += weight * x, wxx += weight * x * x, wy += weight * y, wxy += weight * x * y;
  }
  double Determinant() const { return w * wxx - wx * wx; }
  Line Solve() const {
    const double determinant = Determinant();
    Line line;
    if (determinant > 1e-12 * w * wxx) {
      line.beta = (w * wxy - wx * wy) / determinant;
      line.alpha = (wy - line.beta * wx) / w;
    }
    // A negative latency or a negative bandwidth means that these sizes do not tell it.
    if (line.beta <= 0) line = {w > 0 ? wy / w : 0, 0};
    if (line.alpha < 0) line = {0, wxx > 0 ? wxy / wxx : 0};
    return line;
  }
};

using Observations = std::span<const FitObservation>;

double Loss(double residual, double scale) {
  const double size = std::fabs(residual);
  return size <= scale ? residual * residual : scale * (2 * size - scale);
}

// Weights are those of the fitted time, not of the measured one: a low measurement would draw the line towards itself.
Line FitOne(Observations observed, double noise) {
  Line line;
  for (int round = 0; round < 6; ++round) {
    Moments moments;
    for (const FitObservation& one : observed) {
      const double expected = round == 0 ? one.time_us : std::max(line.At(one.bytes), 1e-9);
      double weight = 1 / (expected * expected);
      const double off = std::fabs(one.time_us / expected - 1);
      if (round > 0 && noise > 0 && off > kHuber * noise) weight *= kHuber * noise / off;
      moments.Add(weight, one.bytes, one.time_us);
    }
    line = moments.Solve();
  }
  return line;
}

// All observations between two possible ends as one: means lie on the same line. What they differ among themselves is
// the same however the sweep is divided.
struct SizeGroup {
  double bytes = 0, time_us = 0, count = 0;
};

struct Grouped {
  std::vector<SizeGroup> groups;
  double inner = 0;  // squares of logarithms left within groups
};

// Where segments may begin: index of the first observation of a size. The last entry is the end.
std::vector<size_t> EndsOf(Observations observed) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < observed.size(); ++i)
    if (i == 0 || observed[i].bytes != observed[i - 1].bytes) sizes.push_back(i);
  std::vector<size_t> ends;
  const size_t step = sizes.size() / kMostEnds + 1;
  for (size_t i = 0; i < sizes.size(); i += step) ends.push_back(sizes[i]);
  ends.push_back(observed.size());
  return ends;
}

Grouped GroupSizes(Observations observed, const std::vector<size_t>& ends, double scale) {
  Grouped out;
  for (size_t g = 0; g + 1 < ends.size(); ++g) {
    const Observations part = observed.subspan(ends[g], ends[g + 1] - ends[g]);
    std::vector<double> logs;
    SizeGroup group;
    group.count = static_cast<double>(part.size());
    for (const FitObservation& one : part) {
      group.bytes += one.bytes / group.count;
      logs.push_back(std::log(one.time_us));
    }
    const double middle = Median(logs);
    // Outliers are drawn in to where Huber's loss turns, so that none of them decides where a segment ends.
    for (const FitObservation& one : part) {
      const double off = std::log(one.time_us) - middle;
      const double kept = scale > 0 && part.size() > 2 ? std::clamp(off, -scale, scale) : off;
      group.time_us += std::exp(middle + kept) / group.count;
      if (part.front().bytes == part.back().bytes) out.inner += Loss(off, std::max(scale, 1e-9));
    }
    out.groups.push_back(group);
  }
  return out;
}

Line FitGroups(std::span<const SizeGroup> groups, double noise) {
  Line line;
  for (int round = 0; round < 4; ++round) {
    Moments moments;
    for (const SizeGroup& one : groups) {
      const double expected = round == 0 ? one.time_us : std::max(line.At(one.bytes), 1e-9);
      double weight = one.count / (expected * expected);
      const double off = std::fabs(one.time_us / expected - 1), limit = kHuber * noise;
      if (round > 0 && noise > 0 && one.count < 3 && off > limit) weight *= limit / off;
      moments.Add(weight, one.bytes, one.time_us);
    }
    line = moments.Solve();
  }
  return line;
}

double CostOf(std::span<const SizeGroup> groups, const Line& line, double scale) {
  double cost = 0;
  for (const SizeGroup& one : groups)
    cost += one.count * Loss(std::log(one.time_us / std::max(line.At(one.bytes), 1e-9)), scale);
  return cost;
}

// For each number of segments the best ends, as indices into `ends`.
struct Division {
  double cost = std::numeric_limits<double>::infinity();
  std::vector<size_t> begins;
};

std::vector<Division> Divide(Observations observed, const std::vector<size_t>& ends, double noise) {
  const size_t n = ends.size() - 1;
  const double scale = kHuber * 2 * std::max(noise, kModelError);
  const Grouped grouped = GroupSizes(observed, ends, noise > 0 ? scale : 0);
  std::vector<std::vector<double>> cost(n, std::vector<double>(n + 1, std::numeric_limits<double>::infinity()));
  for (size_t from = 0; from < n; ++from)
    for (size_t to = from + kLeastSizes; to <= n; ++to) {
      const std::span<const SizeGroup> part = std::span(grouped.groups).subspan(from, to - from);
      cost[from][to] = CostOf(part, FitGroups(part, noise), scale);
    }
  std::vector<std::vector<Division>> best(kMostSegments + 1, std::vector<Division>(n + 1));
  for (size_t to = 0; to <= n; ++to) best[1][to] = {to >= kLeastSizes ? cost[0][to] : best[1][to].cost, {0}};
  for (size_t k = 2; k <= kMostSegments; ++k)
    for (size_t to = k * kLeastSizes; to <= n; ++to)
      for (size_t from = (k - 1) * kLeastSizes; from + kLeastSizes <= to; ++from) {
        const double total = best[k - 1][from].cost + cost[from][to];
        if (total >= best[k][to].cost) continue;
        best[k][to].cost = total;
        best[k][to].begins = best[k - 1][from].begins;
        best[k][to].begins.push_back(from);
      }
  std::vector<Division> divisions;
  for (size_t k = 1; k <= kMostSegments; ++k)
    if (std::isfinite(best[k][n].cost)) {
      divisions.push_back(std::move(best[k][n]));
      divisions.back().cost += grouped.inner;
    }
  return divisions;
}

const Division& Choose(const std::vector<Division>& divisions, size_t observations) {
  const auto n = static_cast<double>(observations);
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < divisions.size(); ++k) {
    const double variance = divisions[k].cost / n + kModelError * kModelError;
    const double criterion = n * std::log(variance) + kParametersPerSegment * static_cast<double>(k + 1) * std::log(n);
    if (criterion >= least) continue;
    least = criterion;
    best = k;
  }
  return divisions[best];
}

FitSegment SegmentOf(Observations observed, double noise) {
  FitSegment segment;
  const Line line = FitOne(observed, noise);
  segment.first_bytes = observed.front().bytes;
  segment.last_bytes = observed.back().bytes;
  segment.alpha_us = line.alpha;
  segment.beta_us_per_byte = line.beta;
  segment.observations = observed.size();
  Moments moments;
  double squares = 0, mean_log = 0, logs = 0, left = 0;
  for (const FitObservation& one : observed) mean_log += std::log(one.time_us);
  mean_log /= static_cast<double>(observed.size());
  for (size_t i = 0; i < observed.size(); ++i) {
    const FitObservation& one = observed[i];
    segment.sizes += i == 0 || one.bytes != observed[i - 1].bytes;
    const double expected = std::max(line.At(one.bytes), 1e-9);
    const double off = one.time_us / expected - 1;
    moments.Add(1 / (expected * expected), one.bytes, one.time_us);
    squares += off * off;
    logs += std::pow(std::log(one.time_us) - mean_log, 2);
    left += std::pow(std::log(one.time_us / expected), 2);
    segment.mean_error += std::fabs(off) / static_cast<double>(observed.size());
    if (std::fabs(off) > segment.worst_error) segment.worst_error = std::fabs(off), segment.worst_bytes = one.bytes;
  }
  segment.r_squared = logs > 0 ? 1 - left / logs : 0;
  const auto freedom = static_cast<double>(observed.size()) - 2;
  const double determinant = moments.Determinant();
  if (freedom < 1 || determinant <= 0) {
    segment.alpha_error_us = segment.alpha_us;
    segment.beta_error_us_per_byte = segment.beta_us_per_byte;
    return segment;
  }
  const double t = TailPointOfT(0.05, freedom), variance = squares / freedom;
  segment.alpha_error_us = t * std::sqrt(variance * moments.wxx / determinant);
  segment.beta_error_us_per_byte = t * std::sqrt(variance * moments.w / determinant);
  return segment;
}

// Measured over fitted.
std::vector<double> ResidualsOf(Observations observed, const PiecewiseFit& fit) {
  std::vector<double> residuals;
  for (const FitObservation& one : observed)
    residuals.push_back(std::log(one.time_us / std::max(fit.TimeAt(one.bytes), 1e-9)));
  return residuals;
}

void FillSegments(Observations observed, const std::vector<size_t>& ends, const Division& division, double noise,
                  PiecewiseFit& fit) {
  fit.segments.clear();
  for (size_t i = 0; i < division.begins.size(); ++i) {
    const size_t from = ends[division.begins[i]];
    const size_t to = i + 1 < division.begins.size() ? ends[division.begins[i + 1]] : observed.size();
    fit.segments.push_back(SegmentOf(observed.subspan(from, to - from), noise));
  }
}

void FillQuality(Observations observed, PiecewiseFit& fit) {
  double mean_log = 0, logs = 0, left = 0;
  for (const FitObservation& one : observed) mean_log += std::log(one.time_us) / static_cast<double>(observed.size());
  for (const FitObservation& one : observed) {
    const double expected = std::max(fit.TimeAt(one.bytes), 1e-9), off = std::fabs(one.time_us / expected - 1);
    logs += std::pow(std::log(one.time_us) - mean_log, 2);
    left += std::pow(std::log(one.time_us / expected), 2);
    fit.mean_error += off / static_cast<double>(observed.size());
    if (off > fit.worst_error) fit.worst_error = off, fit.worst_bytes = one.bytes;
  }
  fit.r_squared = logs > 0 ? 1 - left / logs : 0;
}

}  // namespace

double PiecewiseFit::TimeAt(double bytes) const {
  if (segments.empty()) return 0;
  const FitSegment* at = &segments.front();
  for (const FitSegment& one : segments)
    if (bytes >= one.first_bytes) at = &one;
  return at->alpha_us + at->beta_us_per_byte * bytes;
}

PiecewiseFit FitPiecewise(std::span<const FitObservation> given) {
  std::vector<FitObservation> observed;
  for (const FitObservation& one : given)
    if (one.bytes > 0 && one.time_us > 0 && std::isfinite(one.time_us)) observed.push_back(one);
  std::stable_sort(observed.begin(), observed.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  PiecewiseFit fit;
  const std::vector<size_t> ends = EndsOf(observed);
  if (ends.size() < kLeastSizes + 1) return fit;
  // The noise is not known before there is a fit, and the fit needs it against outliers: twice is enough.
  for (int round = 0; round < 2; ++round) {
    const std::vector<Division> divisions = Divide(observed, ends, fit.noise);
    if (divisions.empty()) return fit;
    FillSegments(observed, ends, Choose(divisions, observed.size()), fit.noise, fit);
    fit.noise = std::max(RobustDeviation(ResidualsOf(observed, fit)), 1e-4);
  }
  FillQuality(observed, fit);
  return fit;
}

}  // namespace tacet
