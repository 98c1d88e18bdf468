// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "analysis/timing/statistics.h"
#include "report/profile/profile_series.h"
#include "report/profile/profile_verdict.h"

namespace tacet {
namespace {

// With fewer steps than this a test rarely sees a change below ten percent.
constexpr size_t kFewSteps = 5;
// Long samples need fewer: their means are nearly normal, and the work must not grow with the square of the input.
constexpr size_t kMostResamples = 4000, kLeastResamples = 400, kResampledValues = 1'000'000;
// Bytes of a usual step that differ by less are the same work.
constexpr double kSameAmount = 0.01;

void Judge(const ComparisonOptions& options, ComparisonLine& line) {
  if (line.kind != ChangeKind::none || line.adjusted_p >= options.alpha) return;
  const bool grew = line.mean_b > line.mean_a;
  if (line.mean_a > 0) {  // from nothing to something is a change of any size
    if (std::fabs(line.change) < options.min_change) return;
    if (line.low <= 0 && line.high >= 0) return;
  }
  if (line.name == kHiddenCommunication)
    line.kind = grew ? ChangeKind::more_overlap : ChangeKind::less_overlap;
  else
    line.kind = grew ? ChangeKind::slower : ChangeKind::faster;
}

const ComparisonLine* LineOf(const ProfileComparison& comparison, std::string_view name) {
  for (const ComparisonLine& line : comparison.lines)
    if (line.name == name && line.kind != ChangeKind::only_a && line.kind != ChangeKind::only_b) return &line;
  return nullptr;
}

// Where both runs move the same amount in enough steps, the transfer time per MiB says the same a second time.
void DropRepeatedTransfers(ProfileComparison& out) {
  std::set<std::string> told;
  for (const ComparisonLine& line : out.lines)
    if (line.kind == ChangeKind::none && std::min(line.count_a, line.count_b) >= kFewSteps)
      told.insert(line.name + std::string(kPerMiB));
  std::erase_if(out.lines, [&](const ComparisonLine& line) { return told.contains(line.name); });
}

// What computes at the same time as communication counts as hidden communication. Computing that takes as long in all
// as before is neither slower nor faster, however much of it now stands alone.
void SettleComputing(ProfileComparison& out) {
  constexpr double kSameTotal = 0.1;  // of the computing of A
  const ComparisonLine *hidden = LineOf(out, kHiddenCommunication), *found = LineOf(out, kComputeWithoutCommunication);
  if (!hidden || !found) return;
  ComparisonLine& computing = out.lines[static_cast<size_t>(found - out.lines.data())];
  const double total_a = hidden->mean_a + computing.mean_a, total_b = hidden->mean_b + computing.mean_b;
  if (computing.kind == ChangeKind::slower && hidden->kind == ChangeKind::less_overlap &&
      total_b <= (1 + kSameTotal) * total_a) {
    computing.kind = ChangeKind::less_overlap;
    --out.slower;
  } else if (computing.kind == ChangeKind::faster && hidden->kind == ChangeKind::more_overlap &&
             total_b >= (1 - kSameTotal) * total_a) {
    computing.kind = ChangeKind::more_overlap;
    --out.faster;
  }
}

std::string Milliseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, std::fabs(ns) < 1e7 ? "%.2f ms" : "%.1f ms", ns / 1e6);
  return text;
}

// The same communication, of which computing hides less (or more) than before: that is what the step pays for.
void ExplainByOverlap(ProfileComparison& out) {
  constexpr double kSameTotal = 0.1;  // of the communication of A
  constexpr double kMostOfIt = 0.5;   // of the change of the step
  const ComparisonLine *step = out.StepTime(), *hidden = LineOf(out, kHiddenCommunication),
                       *exposed = LineOf(out, kExposedCommunication);
  if (!step || !hidden || !exposed) return;
  const bool slower = step->kind == ChangeKind::slower && exposed->kind == ChangeKind::slower &&
                      hidden->kind == ChangeKind::less_overlap;
  const bool faster = step->kind == ChangeKind::faster && exposed->kind == ChangeKind::faster &&
                      hidden->kind == ChangeKind::more_overlap;
  if (!slower && !faster) return;
  const double total_a = hidden->mean_a + exposed->mean_a, total_b = hidden->mean_b + exposed->mean_b;
  if (std::fabs(total_b - total_a) > kSameTotal * total_a) return;
  if ((exposed->mean_b - exposed->mean_a) / (step->mean_b - step->mean_a) < kMostOfIt) return;
  out.remarks.push_back("the step is " + std::string(slower ? "slower because less" : "faster because more") +
                        " communication overlaps with compute: communication takes as long as before (" +
                        Milliseconds(total_a) + " and " + Milliseconds(total_b) + " per step), but " +
                        Milliseconds(exposed->mean_b) + " of it " + (slower ? "are" : "are only") +
                        " exposed instead of " + Milliseconds(exposed->mean_a));
}

void AddRemarks(const ProfileReport& a, const ProfileReport& b, ProfileComparison& out) {
  const ComparisonLine* step = out.StepTime();
  if (!step && !out.nothing_in_common()) {
    out.remarks.push_back("no step time in both runs; only the operations are compared");
  } else if (step && (step->count_a < kFewSteps || step->count_b < kFewSteps)) {
    const bool few_a = step->count_a < kFewSteps, few_b = step->count_b < kFewSteps;
    const size_t few = few_a ? step->count_a : step->count_b;
    out.remarks.push_back((few_a && few_b && step->count_a == step->count_b
                               ? "each run has only " + std::to_string(few) + (few == 1 ? " step" : " steps")
                           : few_a && few_b ? "the runs have only " + std::to_string(step->count_a) + " and " +
                                                  std::to_string(step->count_b) + " steps"
                                            : "run " + std::string(few_a ? "A" : "B") + " has only " +
                                                  std::to_string(few) + (few == 1 ? " step" : " steps")) +
                          ": only large changes stand out from noise; record ten or more");
  }
  if (a.source != b.source)
    out.remarks.push_back("the runs were recorded differently: " + a.source + " and " + b.source);
  if (a.world_size != b.world_size) {
    out.proviso = "; but the numbers of ranks differ (" + std::to_string(a.world_size) + " and " +
                  std::to_string(b.world_size) + ")";
    if (!step)
      out.remarks.push_back("the runs have " + std::to_string(a.world_size) + " and " + std::to_string(b.world_size) +
                            " ranks");
  }
}

// What a straggler that only one run has costs there, beside what the comparison measures in all: the cost is an
// estimate, and no part of a slowdown is larger than the whole.
std::string CostInOneRun(const Straggler& one, bool in_b, const ComparisonLine* step) {
  const std::string run = in_b ? "B" : "A", cost = StepPercent(one.cost);
  const std::string plain = "it costs about " + cost + " of " + run + "'s step";
  if (!step || step->kind == ChangeKind::untested) return plain;
  const std::string other_run = in_b ? "A" : "B";
  if (step->kind == (in_b ? ChangeKind::faster : ChangeKind::slower))
    return plain + ", although " + other_run + " is the slower run";
  if (step->kind != (in_b ? ChangeKind::slower : ChangeKind::faster))
    return plain + ", although " + run + " is not significantly slower than " + other_run;
  const double own = in_b ? step->mean_b : step->mean_a, other = in_b ? step->mean_a : step->mean_b;
  const double lost = 1 - other / own;
  const std::string shorter = other_run + "'s step is " + StepPercent(lost) + " shorter";
  if (one.cost <= lost) return plain + "; " + shorter + " in all";
  return "it explains the whole difference (" + shorter + "; its cost is estimated at " + cost + " of " + run +
         "'s step)";
}

// Who makes the others wait in one run, or in both: often the whole difference.
void CompareStragglers(const StragglerReport& a, const StragglerReport& b, const ComparisonLine* step,
                       std::vector<std::string>& out) {
  if (a.steps < 2 || b.steps < 2) return;
  const auto find = [](const StragglerReport& report, Rank rank) -> const Straggler* {
    for (const Straggler& one : report.stragglers)
      if (one.rank == rank) return &one;
    return nullptr;
  };
  const auto name = [](const Straggler& one) { return "rank " + std::to_string(one.rank.value); };
  for (const Straggler& one : b.stragglers) {
    const Straggler* before = find(a, one.rank);
    out.push_back(name(one) + " makes the others wait in " +
                  (before ? "both runs: it costs about " + StepPercent(before->cost) + " of the step in A, " +
                                StepPercent(one.cost) + " in B"
                          : "B and not in A: " + CostInOneRun(one, true, step)));
  }
  for (const Straggler& one : a.stragglers)
    if (!find(b, one.rank))
      out.push_back(name(one) + " makes the others wait in A and not in B: " + CostInOneRun(one, false, step));
}

}  // namespace

std::string_view Name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::none: return "no significant difference";
    case ChangeKind::slower: return "slower";
    case ChangeKind::faster: return "faster";
    case ChangeKind::more_overlap: return "more overlap";
    case ChangeKind::less_overlap: return "less overlap";
    case ChangeKind::untested: return "too few values";
    case ChangeKind::other_amount: return "different amounts of data";
    case ChangeKind::only_a: return "only in A";
    case ChangeKind::only_b: return "only in B";
  }
  return "";
}

const ComparisonLine* ProfileComparison::StepTime() const {
  for (const ComparisonLine& line : lines)
    if (line.name == "step time" && line.kind != ChangeKind::only_a && line.kind != ChangeKind::only_b) return &line;
  return nullptr;
}

bool ProfileComparison::Regressed(bool any_line) const {
  if (!faults.empty()) return true;
  const ComparisonLine* step = StepTime();
  return any_line || !step ? slower > 0 : step->kind == ChangeKind::slower;
}

ComparisonLine CompareSeries(const ProfileSeries& a, const ProfileSeries& b, const ComparisonOptions& options) {
  ComparisonLine line;
  line.name = a.name;
  line.count_a = a.values.size();
  line.count_b = b.values.size();
  line.mean_a = Mean(a.values);
  line.mean_b = Mean(b.values);
  line.change = line.mean_a > 0 ? line.mean_b / line.mean_a - 1 : std::numeric_limits<double>::quiet_NaN();
  line.low = line.high = line.change;
  if (a.bytes > 0 && b.bytes > 0 && std::fabs(b.bytes / a.bytes - 1) > kSameAmount) {
    line.kind = ChangeKind::other_amount;
    return line;
  }
  if (line.count_a < 2 || line.count_b < 2) return line;
  line.kind = ChangeKind::none;
  const WelchTest test = TestWelch(a.values, b.values);
  line.p = test.p;
  if (line.mean_a > 0) {
    const size_t resamples =
        std::clamp(kResampledValues / (line.count_a + line.count_b), kLeastResamples, kMostResamples);
    const auto interval =
        BootstrapRelativeDifference(a.values, b.values, 1 - options.alpha, static_cast<int>(resamples));
    // A bootstrap of few values is too narrow: the interval would exclude zero where the test finds nothing. It holds
    // that of the test as well.
    const double error = test.t != 0 ? test.difference / test.t / line.mean_a : 0;
    const double reach = error > 0 ? TailPointOfT(options.alpha, test.degrees_of_freedom) * error : 0;
    line.low = std::max(-1.0, std::min(interval.low, line.change - reach));  // nothing takes less than no time
    line.high = std::max(interval.high, line.change + reach);
  }
  return line;
}

bool ProfileComparison::nothing_in_common() const {
  return std::all_of(lines.begin(), lines.end(),
                     [](const ComparisonLine& line) { return line.count_a == 0 || line.count_b == 0; });
}

ComparisonLine LineOfOneSide(const ProfileSeries& series, bool in_a) {
  ComparisonLine line;
  line.name = series.name;
  (in_a ? line.count_a : line.count_b) = series.values.size();
  (in_a ? line.mean_a : line.mean_b) = Mean(series.values);
  line.change = line.low = line.high = std::numeric_limits<double>::quiet_NaN();
  line.kind = in_a ? ChangeKind::only_a : ChangeKind::only_b;
  return line;
}

// Whether the step became slower is asked first and by itself; how many other lines there are must not blunt it. All
// others are a search, and adjusted as one.
void JudgeLines(ProfileComparison& out) {
  std::vector<double> p;
  std::vector<ComparisonLine*> tested;
  const ComparisonLine* step = out.StepTime();
  for (ComparisonLine& line : out.lines) {
    if (line.kind != ChangeKind::none || &line == step) continue;
    tested.push_back(&line);
    p.push_back(line.p);
  }
  std::vector<double> adjusted = AdjustForMultipleTests(p);
  for (ComparisonLine& line : out.lines) {
    if (&line != step || line.kind != ChangeKind::none) continue;
    tested.push_back(&line);
    adjusted.push_back(line.p);
  }
  for (size_t i = 0; i < tested.size(); ++i) {
    tested[i]->adjusted_p = adjusted[i];
    Judge(out.options, *tested[i]);
    out.slower += tested[i]->kind == ChangeKind::slower;
    out.faster += tested[i]->kind == ChangeKind::faster;
  }
  out.tested = tested.size();
}

ProfileComparison CompareProfiles(const ProfileReport& a, const ProfileReport& b, const ComparisonOptions& options) {
  ProfileComparison out;
  out.name_a = a.job;
  out.name_b = b.job;
  out.options = options;
  std::map<std::string_view, const ProfileSeries*> in_b;
  for (const ProfileSeries& series : b.series) in_b.emplace(series.name, &series);
  std::vector<ComparisonLine> single;
  for (const ProfileSeries& series : a.series) {
    const auto at = in_b.find(series.name);
    if (at == in_b.end()) {
      single.push_back(LineOfOneSide(series, true));
      continue;
    }
    const ProfileSeries& other = *at->second;
    in_b.erase(at);
    ComparisonLine line = CompareSeries(series, other, options);
    if (line.mean_a > 0 || line.mean_b > 0) out.lines.push_back(std::move(line));
  }
  // Nothing but the step time in both: the runs do different things, or were recorded differently, and how long a step
  // of each takes compares nothing.
  if (out.lines.size() == 1 && out.StepTime() && !single.empty() && !in_b.empty()) {
    single.insert(single.begin(), LineOfOneSide(a.series.front(), true));
    for (const ProfileSeries& series : b.series)
      if (series.name == out.lines[0].name) single.insert(single.begin() + 1, LineOfOneSide(series, false));
    out.lines.clear();
    out.headline = "not comparable: no operation occurs in both runs";
  }
  for (const ProfileSeries& series : b.series)
    if (in_b.contains(series.name)) single.push_back(LineOfOneSide(series, false));
  DropRepeatedTransfers(out);
  out.lines.insert(out.lines.end(), single.begin(), single.end());
  JudgeLines(out);
  SettleComputing(out);
  ExplainByOverlap(out);
  AddRemarks(a, b, out);
  if (out.headline.empty()) CompareStragglers(a.stragglers, b.stragglers, out.StepTime(), out.stragglers);
  return out;
}

}  // namespace tacet
