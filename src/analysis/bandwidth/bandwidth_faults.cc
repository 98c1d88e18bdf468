// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/bandwidth_faults.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

std::string Rate(double gbs) {
  char text[32];
  std::snprintf(text, sizeof text, gbs < 10 ? "%.2f GB/s" : "%.1f GB/s", gbs);
  return text;
}
std::string Time(double us) {
  char text[32];
  const bool in_ms = us >= 1e3;
  const double shown = in_ms ? us / 1e3 : us;
  std::snprintf(text, sizeof text, "%.*f %s",
                shown >= 100            ? 0
                : shown >= 10 || !in_ms ? 1
                                        : 2,
                shown, in_ms ? "ms" : "µs");
  return text;
}
std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && value != std::floor(value) ? "%.1f" : "%.0f", value);
  return text;
}
std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

// Sentences begin with the benchmark's own words.
BandwidthFault SlowLink(const PairMatrixView& view) {
  BandwidthFault fault;
  fault.cause = "slow-link";
  fault.source = view.matrix.source;
  fault.incident = view.incident;
  const std::vector<SlowPart> parts = SlowPartsOf(view);
  const SlowPart& worst = *std::min_element(parts.begin(), parts.end(),
                                            [](const SlowPart& a, const SlowPart& b) { return a.share < b.share; });
  std::string names;
  size_t shown = 0;
  for (const SlowPart& part : parts) {
    if (shown++ == 3) break;
    names += (names.empty() ? "" : ", ") + part.name;
  }
  if (parts.size() > 3) names += " and " + std::to_string(parts.size() - 3) + " more";
  fault.headline = names + (parts.size() == 1 ? " reaches " : " reach ") + (parts.size() == 1 ? "" : "as little as ") +
                   Percent(worst.share) + " of what comparable pairs reach (" + Rate(worst.value) + " instead of " +
                   Rate(worst.expected) + ", " + view.operation + " of " + view.tool + ")";
  fault.excerpt = view.matrix.title;
  fault.says = "the matrix that shows it; comparable cells have " + Rate(worst.expected);
  fault.severity = 1 - worst.share;
  for (const SlowPart& part : parts) fault.hosts.insert(fault.hosts.end(), part.members.begin(), part.members.end());
  return fault;
}

BandwidthFault BelowModel(const BandwidthView& view, const ModelCheck& check) {
  const Sweep& sweep = view.sweeps[check.sweep];
  BandwidthFault fault;
  fault.cause = "bandwidth-below-model";
  fault.op = sweep.kind;
  fault.bytes = check.waterfall.bytes;
  fault.incident = sweep.incident;
  // The size that stands for the large ones: the lower of the two in the middle. The best may lie far above it.
  const ModelPoint *at = nullptr, *best = nullptr;
  for (const ModelPoint& point : check.points) {
    if (!point.bandwidth_bound) continue;
    const bool lower_half = point.Share() <= check.share;
    if (lower_half && (!at || point.Share() > at->Share())) at = &point;
    if (!best || point.Share() > best->Share()) best = &point;
  }
  if (at) fault.bytes = at->bytes;
  fault.headline = SweepSubject(sweep) + " reaches " + Percent(at ? at->Share() : check.share) +
                   " of the bus bandwidth that NCCL's model predicts for the graph in its log";
  if (at)
    fault.headline += " (" + Rate(at->measured_gbs) + " instead of " + Rate(at->predicted_gbs) + " at " +
                      BenchmarkSizeWords(at->bytes) + ")";
  constexpr double kMuchBetter = 1.5;
  if (best && at && best->Share() > kMuchBetter * at->Share())
    fault.headline +=
        "; the sizes differ widely: it reaches " + Percent(best->Share()) + " at " + BenchmarkSizeWords(best->bytes);
  for (const SweepPoint& point : sweep.points) {
    if (!at || point.in_place || point.bytes != at->bytes) continue;
    fault.source = point.source;
    fault.excerpt = BenchmarkSizeWords(point.bytes) + ": " + Time(point.time_us) + ", " + Rate(point.bus_gbs);
  }
  fault.says = "a typical large size";
  fault.severity = 1 - check.share;
  return fault;
}

BandwidthFault Misfit(const BandwidthView& view, const BetterWay& way) {
  const Sweep& sweep = view.sweeps[way.sweep];
  const BetterCell& best = *std::max_element(
      way.cells.begin(), way.cells.end(), [](const BetterCell& a, const BetterCell& b) { return a.Gain() < b.Gain(); });
  BandwidthFault fault;
  fault.cause = "algorithm-misfit";
  fault.op = sweep.kind;
  fault.bytes = best.bytes;
  fault.incident = sweep.incident;
  for (const SweepPoint& point : sweep.points)
    if (point.bytes == best.bytes && fault.excerpt.empty()) {
      fault.source = point.source;
      fault.excerpt = BenchmarkSizeWords(point.bytes) + ": " + Time(point.time_us);
    }
  double lost_us = 0;
  uint64_t calls = 0;
  for (const BetterCell& cell : way.cells)
    lost_us += static_cast<double>(cell.calls) * (cell.chosen_us - cell.better_us), calls += cell.calls;
  const std::string better =
      best.algorithm + (best.algorithm.empty() || best.protocol.empty() ? "" : " ") + best.protocol;
  fault.headline = SweepWords(sweep) + ": " + better + " takes " + Time(best.better_us) + " at " +
                   BenchmarkSizeWords(best.bytes) + " where " +
                   (best.chosen.empty() ? "NCCL's choice" : best.chosen + ", which NCCL chooses,") + " takes " +
                   Time(best.chosen_us) + ": " + Percent(best.Gain()) + " of each call is lost, at " +
                   std::to_string(way.cells.size()) + (way.cells.size() == 1 ? " size" : " sizes");
  double per_step = 0, step_lost_us = 0;
  for (const BetterCell& cell : way.cells)
    per_step += cell.calls_per_step, step_lost_us += cell.calls_per_step * (cell.chosen_us - cell.better_us);
  if (per_step > 0)
    fault.headline += "; a training step makes " + Number(per_step) + " such calls and loses " + Time(step_lost_us) +
                      " of " + Time(way.step_us);
  else if (calls > 0)
    fault.headline += "; over the " + std::to_string(calls) + " calls on record that is " + Time(lost_us);
  fault.says = "the run in which NCCL chose for itself";
  fault.severity = best.Gain();
  return fault;
}

bool IsWrong(const BenchmarkLine& line) { return line.out_of_place.wrong > 0 || line.in_place.wrong > 0; }

// "256 KiB", "256 KiB and 1 MiB", "4 sizes from 256 KiB on"
std::string WrongSizes(const std::set<int64_t>& sizes) {
  if (sizes.size() > 2)
    return std::to_string(sizes.size()) + " sizes, the smallest " + BenchmarkSizeWords(*sizes.begin());
  return BenchmarkSizeWords(*sizes.begin()) + (sizes.size() == 2 ? " and " + BenchmarkSizeWords(*sizes.rbegin()) : "");
}

BandwidthFault WrongResults(const Sweep& sweep) {
  BandwidthFault fault;
  fault.cause = "wrong-results";
  fault.op = sweep.kind;
  fault.incident = sweep.incident;
  fault.severity = 2;
  std::set<int64_t> sizes;
  for (const BenchmarkRun* run : sweep.runs) {
    for (const BenchmarkLine& line : run->lines) {
      if (!IsWrong(line) || line.type != sweep.type) continue;
      sizes.insert(line.bytes);
      if (*sizes.begin() == line.bytes) fault.bytes = line.bytes, fault.source = line.source;
    }
    if (run->failed_checks > 0 && sizes.empty()) fault.source = run->summary;
  }
  fault.headline = SweepSubject(sweep) + " gives wrong results" + (sizes.empty() ? "" : " at " + WrongSizes(sizes)) +
                   "; its bandwidth means nothing until that is fixed (tacet explain wrong-results)";
  fault.excerpt = sizes.empty() ? "Out of bounds values" : BenchmarkSizeWords(*sizes.begin());
  fault.says = "the benchmark checked its results and found wrong ones";
  return fault;
}

}  // namespace

bool HasWrongResults(const Sweep& sweep) {
  for (const BenchmarkRun* run : sweep.runs) {
    bool told = false;  // by a line; else the summary is of all lines of the run
    for (const BenchmarkLine& line : run->lines) {
      told = told || IsWrong(line);
      if (IsWrong(line) && line.type == sweep.type) return true;
    }
    if (run->failed_checks > 0 && !told) return true;
  }
  return false;
}

std::string BenchmarkSizeWords(int64_t bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, ++unit;
  return std::to_string(bytes) + kUnits[unit];
}

std::vector<SlowPart> SlowPartsOf(const PairMatrixView& view) {
  std::vector<SlowPart> parts;
  const double expected =
      view.levels.empty() ? (view.matrix.is_latency ? view.typical : view.most) : view.levels.front();
  const auto add = [&](std::string name, double share, std::vector<std::string> members) {
    const double typical = view.matrix.is_latency ? expected / share : expected * share;
    parts.push_back({std::move(name), share, typical, expected, std::move(members)});
  };
  for (size_t i = 0; i < view.slow_members.size(); ++i)
    add(view.RowName(view.slow_members[i]), view.member_shares[i], {view.RowName(view.slow_members[i])});
  for (size_t i = 0; i < view.slow_rows.size(); ++i)
    add(view.RowName(view.slow_rows[i]) + " as the source", view.row_shares[i], {view.RowName(view.slow_rows[i])});
  for (size_t i = 0; i < view.slow_columns.size(); ++i)
    add(view.ColumnName(view.slow_columns[i]) + " as the target", view.column_shares[i],
        {view.ColumnName(view.slow_columns[i])});
  for (const PairCell& cell : view.slow_cells) {
    const double share = view.matrix.is_latency ? cell.expected / cell.value : cell.value / cell.expected;
    parts.push_back({view.RowName(cell.row) + " -> " + view.ColumnName(cell.column),
                     share,
                     cell.value,
                     cell.expected,
                     {view.RowName(cell.row), view.ColumnName(cell.column)}});
  }
  return parts;
}

const ModelCheck* FindModelBeaten(const BandwidthView& view, const ModelCheck& check) {
  if (check.share > kAboveModel) return &check;
  const Sweep& sweep = view.sweeps[check.sweep];
  for (const ModelCheck& other : view.checks) {
    const Sweep& rival = view.sweeps[other.sweep];
    if (other.share > kAboveModel && rival.ranks == sweep.ranks && rival.Nodes() == sweep.Nodes()) return &other;
  }
  return nullptr;
}

std::vector<BandwidthFault> FindBandwidthFaults(const BandwidthView& view) {
  std::vector<BandwidthFault> faults;
  for (const Sweep& sweep : view.sweeps)
    if (HasWrongResults(sweep)) faults.push_back(WrongResults(sweep));
  for (const PairMatrixView& matrix : view.matrices)
    if (!matrix.matrix.is_latency && matrix.HasFault()) faults.push_back(SlowLink(matrix));
  for (const ModelCheck& check : view.checks)
    if (check.large_points >= 2 && check.share > 0 && check.share < kBelowModel &&
        FindModelBeaten(view, check) == nullptr)
      faults.push_back(BelowModel(view, check));
  for (const BetterWay& way : view.better)
    if (!way.cells.empty()) faults.push_back(Misfit(view, way));
  std::stable_sort(faults.begin(), faults.end(),
                   [](const BandwidthFault& a, const BandwidthFault& b) { return a.severity > b.severity; });
  return faults;
}

}  // namespace tacet
