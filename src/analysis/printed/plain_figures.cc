// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/plain_figures.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/text_scan.h"

namespace tacet {
namespace {

// Of the time of all steps: with half of it in data, the loader is what the job waits for.
constexpr double kMostlyData = 0.5;
// Single loads that take so much of the time are worth a word, though most steps have their data at once.
constexpr double kPartlyData = 0.25;
// So few lines show nothing, unless they tell of this many seconds.
constexpr size_t kFewShares = 5;
constexpr double kLongTime = 10;
// A batch so many times longer than the median is another thing than the rest.
constexpr double kFarAbove = 10;
// A load that takes so many times a usual step.
constexpr double kLongLoad = 5;
// Below this a GPU does next to nothing, whatever model it runs; small models on many GPUs reach 10 to 20 %.
constexpr double kLowPercent = 5;
// NVLink within a host against one adapter of 200 Gb/s between hosts is a factor of 10: less is by design.
constexpr double kSpanFactor = 10;
// Two pairs of hosts with the same adapters measure the same within some percent.
constexpr double kPairFactor = 1.25;

double MedianOf(const std::vector<const StepShare*>& steps, double StepShare::*part) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepShare* step : steps) values.push_back(step->*part);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
double MedianWhole(const std::vector<const StepShare*>& steps) { return MedianOf(steps, &StepShare::whole); }

struct BatchSplit {
  std::vector<const StepShare*> first, later;  // batches of an epoch
  size_t epochs = 0;                           // with a first batch that is shown
};

BatchSplit SplitBatches(const std::vector<const StepShare*>& steps) {
  BatchSplit split;
  std::set<int64_t> epochs;
  for (const StepShare* step : steps) {
    const bool is_first = step->place == 0 && step->epoch >= 0;
    (is_first ? split.first : split.later).push_back(step);
    if (is_first) epochs.insert(step->epoch);
  }
  split.epochs = epochs.size();
  return split;
}

// More than one epoch begins so: the first batch of a run is always slow.
bool AreFirstSlow(const BatchSplit& split) {
  if (split.epochs < 2 || split.later.empty()) return false;
  const double usual = MedianWhole(split.later);
  return std::all_of(split.first.begin(), split.first.end(),
                     [&](const StepShare* step) { return step->whole >= kFarAbove * usual && step->whole >= 1; });
}

std::vector<const StepShare*> StepsOf(const LogOutline& outline, bool with_data) {
  std::vector<const StepShare*> steps;
  for (const StepShare& step : outline.steps)
    if (!with_data || step.data >= 0) steps.push_back(&step);
  return steps;
}

// A line every 50 steps tells of all of them, as their mean or as a sample.
double StepsSince(const StepShare& before, const StepShare& now) {
  const bool same = now.epoch >= 0 && now.epoch == before.epoch && before.place >= 0 && now.place > before.place;
  return same ? static_cast<double>(now.place - before.place) : 1;
}

}  // namespace

std::optional<DataWait> FindDataWait(const Incident& incident) {
  for (const LogOutline& outline : incident.outlines) {
    const std::vector<const StepShare*> all = StepsOf(outline, true);
    if (all.size() < 3) continue;
    const BatchSplit split = SplitBatches(all);
    DataWait wait{.outline = &outline, .lines = all.size(), .each_epoch = AreFirstSlow(split)};
    double whole = 0, data = 0, stood_for = 0;
    // The first line holds the start of the loader's workers and of everything else.
    for (size_t i = 1; i < all.size(); ++i) {
      whole += all[i]->whole;
      data += all[i]->data;
      stood_for += all[i]->data * StepsSince(*all[i - 1], *all[i]);
    }
    wait.usual = MedianWhole(all);
    // One load that stops everybody for a long time, among steps that have their data: not the first of an epoch.
    const bool one_stops = std::any_of(all.begin() + 1, all.end(), [&](const StepShare* step) {
      return step->data >= kLongTime && step->data >= kLongLoad * wait.usual && step->place > 1;
    });
    const double least = one_stops && all.size() >= kFewShares ? kPartlyData : kMostlyData;
    if (whole <= 0 || data < least * whole || (all.size() < kFewShares && stood_for < kLongTime)) continue;
    wait.share = data / whole;
    if (wait.each_epoch) {
      wait.longest = split.first;
      wait.usual = MedianWhole(split.later);
      return wait;
    }
    for (const StepShare* step : all)
      if (step->data >= kLongLoad * wait.usual && step != all.front()) wait.longest.push_back(step);
    // What these few cost, of all that is shown.
    if (!wait.longest.empty()) {
      wait.longest_share = 0;
      for (const StepShare* step : wait.longest) wait.longest_share += step->data / (whole + all.front()->whole);
    }
    return wait;
  }
  return std::nullopt;
}

std::optional<SlowFirstBatches> FindSlowFirstBatches(const Incident& incident) {
  for (const LogOutline& outline : incident.outlines) {
    const BatchSplit split = SplitBatches(StepsOf(outline, false));
    if (AreFirstSlow(split)) return SlowFirstBatches{split.first, split.later};
  }
  return std::nullopt;
}

std::optional<LowUtilization> FindLowUtilization(const Incident& incident) {
  LowUtilization found;
  for (const LogOutline& outline : incident.outlines)
    for (const Utilization& one : outline.utilizations) {
      ++found.lines;
      if (!found.lowest || one.percent < found.lowest->percent) found.lowest = &one;
      if (!found.highest || one.percent > found.highest->percent) found.highest = &one;
    }
  if (found.lines < 2 || found.highest->percent >= kLowPercent || found.highest->percent <= 0) return std::nullopt;
  return found;
}

std::optional<SlowSpan> FindSlowSpan(const Incident& incident) {
  std::optional<SlowSpan> found;
  for (const LogOutline& outline : incident.outlines)
    for (const GroupRate& wide : outline.rates)
      for (const GroupRate& narrow : outline.rates) {
        if (wide.operation != narrow.operation || wide.members <= narrow.members) continue;
        if (narrow.gbs < kSpanFactor * wide.gbs) continue;
        if (!found || wide.gbs < found->wide->gbs) found = SlowSpan{&wide, &narrow};
      }
  return found;
}

std::optional<UnequalPairs> FindUnequalPairs(const Incident& incident) {
  for (const LogOutline& outline : incident.outlines)
    for (const PairRate& slow : outline.pairs)
      for (const PairRate& fast : outline.pairs) {
        if (fast.gbs < kPairFactor * slow.gbs || fast.unit_told != slow.unit_told) continue;
        for (const auto& [shared, suspect] : {std::pair{slow.one, slow.other}, std::pair{slow.other, slow.one}}) {
          if (fast.one == shared && fast.other != suspect)
            return UnequalPairs{&slow, &fast, shared, suspect, fast.other};
          if (fast.other == shared && fast.one != suspect) return UnequalPairs{&slow, &fast, shared, suspect, fast.one};
        }
      }
  return std::nullopt;
}

}  // namespace tacet
