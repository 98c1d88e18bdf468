// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/sweep_outliers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// A size is out of line from here on, and beyond four standard deviations of the sweep's own noise.
constexpr double kOutOfLine = 0.25, kOutlierDeviations = 4;
// nccl-tests' own tool calls an iteration a spike from half as long again on.
constexpr double kSpike = 0.5;
// A level has changed from a tenth on, if both sides hold still enough to tell.
constexpr double kShift = 0.10, kShiftTail = 1e-4;
constexpr size_t kLeastSide = 4;

SweepOutlier FromIterations(const SweepPoint& point) {
  SweepOutlier out;
  out.bytes = point.bytes;
  out.of = point.iterations_us.size();
  if (const auto shift = FindLevelShift(point.iterations_us); shift && shift->after > shift->before) {
    out.kind = OutlierKind::lasting;
    out.iteration = static_cast<int64_t>(shift->first);
    out.factor = shift->after / shift->before;
    out.slow = out.of - shift->first;
    return out;
  }
  const std::vector<size_t> spikes = FindSpikes(point.iterations_us, kSpike);
  if (spikes.empty()) return out;
  out.kind = OutlierKind::passing;
  out.iteration = static_cast<int64_t>(spikes.front());
  out.slow = spikes.size();
  const double middle = Median(point.iterations_us);
  for (const size_t i : spikes) out.factor = std::max(out.factor, point.iterations_us[i] / middle);
  return out;
}

// What the sizes on both sides lead one to expect of each size: a straight line through logarithms, above which a
// message of alpha + m / bandwidth never lies. A fit alone would bend towards a size that is slow in all measurements.
std::map<int64_t, double> ExpectedByNeighbours(const Sweep& sweep) {
  std::map<int64_t, std::vector<double>> times;
  for (const SweepPoint& point : sweep.points)
    times[point.bytes].insert(times[point.bytes].end(), point.times_us.begin(), point.times_us.end());
  std::erase_if(times, [](const auto& one) { return one.second.empty() || Median(one.second) <= 0; });
  std::map<int64_t, double> expected;
  for (auto at = times.begin(); at != times.end(); ++at) {
    const auto next = std::next(at);
    if (at == times.begin() || next == times.end()) continue;
    const auto before = std::prev(at);
    const double x0 = std::log(static_cast<double>(before->first)), x1 = std::log(static_cast<double>(next->first));
    const double share = (std::log(static_cast<double>(at->first)) - x0) / (x1 - x0);
    const double y0 = std::log(Median(before->second)), y1 = std::log(Median(next->second));
    expected[at->first] = std::exp(y0 + share * (y1 - y0));
  }
  return expected;
}

// The fit changes its line where NCCL changes its algorithm or protocol, or where messages fill a link.
bool IsAtChange(const PiecewiseFit& fit, int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  for (size_t i = 0; i + 1 < fit.segments.size(); ++i)
    if (size == fit.segments[i].last_bytes || size == fit.segments[i + 1].first_bytes) return true;
  return false;
}

}  // namespace

std::optional<LevelShift> FindLevelShift(std::span<const double> values) {
  if (values.size() < 2 * kLeastSide) return std::nullopt;
  // The split that leaves least over; sums run along.
  double total = 0, squares = 0;
  for (const double value : values) total += value, squares += value * value;
  double left = 0, best = INFINITY;
  size_t at = 0;
  for (size_t i = 0; i + kLeastSide < values.size(); ++i) {
    left += values[i];
    if (i + 1 < kLeastSide) continue;
    const auto a = static_cast<double>(i + 1), b = static_cast<double>(values.size()) - a;
    const double rest = squares - left * left / a - (total - left) * (total - left) / b;
    if (rest < best) best = rest, at = i + 1;
  }
  const std::span<const double> first = values.first(at), second = values.subspan(at);
  LevelShift shift{at, Median({first.begin(), first.end()}), Median({second.begin(), second.end()})};
  if (shift.before <= 0 || shift.after <= 0) return std::nullopt;
  if (std::fabs(std::log(shift.after / shift.before)) < std::log(1 + kShift)) return std::nullopt;
  if (TestWelch(first, second).p > kShiftTail) return std::nullopt;
  // Most values of a side must be on its side: a few spikes at the end are no new level.
  const double middle = (shift.before + shift.after) / 2;
  const bool up = shift.after > shift.before;
  const auto strays = [&](std::span<const double> side, bool above) {
    return static_cast<double>(
        std::count_if(side.begin(), side.end(), [&](double v) { return (v > middle) == above; }));
  };
  if (strays(first, up) > 0.2 * static_cast<double>(first.size()) ||
      strays(second, !up) > 0.2 * static_cast<double>(second.size()))
    return std::nullopt;
  return shift;
}

std::vector<size_t> FindSpikes(std::span<const double> values, double share) {
  std::vector<size_t> spikes;
  if (values.size() < 4) return spikes;
  const std::vector<double> all(values.begin(), values.end());
  const double middle = Median(all), noise = RobustDeviation(all);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] > middle * (1 + share) && values[i] > middle + 5 * noise) spikes.push_back(i);
  // Where a quarter is so, this is how the machine is.
  if (spikes.size() * 4 > values.size()) spikes.clear();
  return spikes;
}

std::vector<SweepOutlier> FindSweepOutliers(const Sweep& sweep) {
  std::vector<SweepOutlier> outliers;
  std::map<int64_t, std::vector<double>> factors;  // measured over fitted, by size
  const std::map<int64_t, double> neighbours = ExpectedByNeighbours(sweep);
  std::set<int64_t> by_neighbours;
  const double limit = 1 + std::max(kOutOfLine, kOutlierDeviations * sweep.fit.noise);
  for (const SweepPoint& point : sweep.points) {
    if (const SweepOutlier one = FromIterations(point); one.slow > 0) outliers.push_back(one);
    double expected = sweep.fit.TimeAt(static_cast<double>(point.bytes));
    if (expected <= 0) continue;
    if (const auto near = neighbours.find(point.bytes); near != neighbours.end() && near->second < expected) {
      expected = near->second;
      by_neighbours.insert(point.bytes);
    }
    for (const double time : point.times_us) factors[point.bytes].push_back(time / expected);
  }
  for (const auto& [bytes, measured] : factors) {
    const auto slow =
        static_cast<size_t>(std::count_if(measured.begin(), measured.end(), [&](double f) { return f > limit; }));
    const bool told =
        std::any_of(outliers.begin(), outliers.end(), [size = bytes](const auto& one) { return one.bytes == size; });
    if (slow == 0 || told) continue;
    SweepOutlier one;
    one.bytes = bytes;
    one.slow = slow;
    one.of = measured.size();
    one.factor = *std::max_element(measured.begin(), measured.end());
    one.by_neighbours = by_neighbours.contains(bytes);
    one.at_change = IsAtChange(sweep.fit, bytes);
    one.kind = measured.size() == 1      ? OutlierKind::once
               : slow == measured.size() ? OutlierKind::lasting
                                         : OutlierKind::passing;
    outliers.push_back(one);
  }
  std::sort(outliers.begin(), outliers.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return outliers;
}

}  // namespace tacet
