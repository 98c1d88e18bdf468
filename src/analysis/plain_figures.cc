// SPDX-License-Identifier: Apache-2.0
#include "analysis/plain_figures.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace tacet {
namespace {

// Of the time of all steps: with half of it in data, the loader is what the job waits for.
constexpr double kMostlyData = 0.5;
// A rank whose steps have so little of it does not wait for its own loader.
constexpr double kLittleData = 0.1;
// So few lines show nothing, unless they tell of this many seconds.
constexpr size_t kFewShares = 5;
constexpr double kLongTime = 10;
constexpr size_t kManyRanks = 4;
// A batch so many times longer than the median is another thing than the rest.
constexpr double kFarAbove = 10;
// Ranks with equal shares of the work differ by some percent; one that works half as long again has more of it, or is
// slower.
constexpr double kFarLonger = 0.5, kGoodPart = 0.1;
constexpr size_t kFewLongSteps = 3;
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
double SumOf(const std::vector<const StepShare*>& steps, double StepShare::*part) {
  double sum = 0;
  for (const StepShare* step : steps) sum += step->*part;
  return sum;
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
  const bool same = now.epoch == before.epoch && before.place >= 0 && now.place > before.place;
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
    if (whole <= 0 || data < kMostlyData * whole || (all.size() < kFewShares && stood_for < kLongTime)) continue;
    wait.share = data / whole;
    if (wait.each_epoch) {
      wait.longest = split.first;
      wait.usual = MedianWhole(split.later);
      return wait;
    }
    wait.usual = MedianWhole(all);
    for (const StepShare* step : all)
      if (step->data >= kFarAbove * wait.usual && step != all.front()) wait.longest.push_back(step);
    // What these few cost, of all that is shown.
    if (!wait.longest.empty()) {
      wait.longest_share = 0;
      for (const StepShare* step : wait.longest) wait.longest_share += step->data / (whole + all.front()->whole);
    }
    return wait;
  }
  return std::nullopt;
}

std::optional<OddLoader> FindOddLoader(const Incident& incident) {
  struct Shares {
    double whole = 0, data = 0;
    size_t lines = 0;
    const StepShare* last = nullptr;
  };
  std::map<int32_t, Shares> ranks;
  for (const LogOutline& outline : incident.outlines)
    for (const StepShare& step : outline.steps) {
      if (step.rank < 0 || step.data < 0) continue;
      Shares& own = ranks[step.rank];
      own.last = &step;
      if (own.lines++ == 0) continue;  // the first of a run is always slow
      own.whole += step.whole;
      own.data += step.data;
    }
  OddLoader found{.ranks = ranks.size()};
  // Where one of several ranks waits and none of the others does, two steps are no accident.
  const size_t fewest = ranks.size() >= kManyRanks ? 2 : kFewShares;
  for (const auto& [rank, shares] : ranks) {
    if (shares.lines < fewest || shares.whole <= 0) return std::nullopt;
    const double share = shares.data / shares.whole;
    if (share < kMostlyData) {
      found.others = std::max(found.others, share);
      continue;
    }
    if (found.last) return std::nullopt;
    found.rank = rank;
    found.share = share;
    found.last = shares.last;
  }
  if (!found.last || found.ranks < 2 || found.others > kLittleData) return std::nullopt;
  return found;
}

std::optional<OddWorker> FindOddWorker(const Incident& incident) {
  std::map<int32_t, std::vector<const StepShare*>> ranks;
  for (const LogOutline& outline : incident.outlines)
    for (const StepShare& step : outline.steps)
      if (step.rank >= 0 && step.work >= 0) ranks[step.rank].push_back(&step);
  if (ranks.size() < 2) return std::nullopt;
  OddWorker found{.ranks = ranks.size()};
  const size_t fewest = ranks.size() >= kManyRanks ? 3 : kFewShares;
  double most = 0, others = 0;  // mean work of a step, of the rank that computes longest and of the next
  for (auto& [rank, steps] : ranks) {
    if (steps.size() < fewest) return std::nullopt;
    steps.erase(steps.begin());  // the first of a run is always slow
    const double mean = SumOf(steps, &StepShare::work) / static_cast<double>(steps.size());
    others = std::max(others, std::min(mean, most));
    if (mean > most) most = mean, found.rank = rank;
  }
  if (found.rank < 0) return std::nullopt;
  const std::vector<const StepShare*>& own = ranks[found.rank];
  // What it computes longer is what the others wait: a good part of the time, or it costs nothing.
  const double longer = most - others, whole = SumOf(own, &StepShare::whole) / static_cast<double>(own.size());
  if (longer < kFarLonger * others || longer < kGoodPart * whole) return std::nullopt;
  std::vector<const StepShare*> late;
  for (const StepShare* step : own)
    if (step->work > 2 * others) late.push_back(step);
  // A single pause is a checkpoint or an evaluation.
  if (late.size() < std::min(kFewLongSteps, own.size())) return std::nullopt;
  found.others = others;
  found.work = MedianOf(late, &StepShare::work);
  found.whole = MedianWhole(late);
  found.long_steps = late.size();
  found.steps = own.size();
  found.last = late.back();
  return found;
}

namespace {

// Of all ranks at one step, in the order in which the steps are printed.
using ValuesOfStep = std::map<int32_t, const RankValue*>;
std::vector<ValuesOfStep> ValuesByStep(const Incident& incident, bool losses) {
  std::vector<ValuesOfStep> steps;
  std::map<std::string_view, size_t> place;
  for (const LogOutline& outline : incident.outlines)
    for (const RankValue& value : outline.values) {
      if (value.is_loss != losses) continue;
      const auto [at, is_new] = place.try_emplace(value.at, steps.size());
      if (is_new) steps.emplace_back();
      steps[at->second].try_emplace(value.rank, &value);
    }
  return steps;
}

bool IsFiniteValue(const RankValue& value) {
  return value.value != "nan" && value.value.find("inf") == std::string::npos;
}

}  // namespace

std::optional<FirstNonFinite> FindFirstNonFinite(const Incident& incident) {
  std::optional<FirstNonFinite> found;
  for (const ValuesOfStep& step : ValuesByStep(incident, true)) {
    std::vector<const RankValue*> lost;
    for (const auto& [rank, value] : step)
      if (!IsFiniteValue(*value)) lost.push_back(value);
    // Behind that step the others have it, too: a loss of its own that stays with one rank is another thing.
    if (found) return lost.size() > 1 ? found : std::nullopt;
    if (lost.empty()) continue;
    if (lost.size() != 1 || step.size() < 2) return std::nullopt;
    found = FirstNonFinite{lost.front(), step.size() - 1};
  }
  return std::nullopt;
}

std::optional<DriftedReplica> FindDriftedReplica(const Incident& incident) {
  constexpr size_t kFewSteps = 2;
  DriftedReplica found;
  const ValuesOfStep* before = nullptr;
  for (const ValuesOfStep& step : ValuesByStep(incident, false)) {
    if (step.size() < 3) continue;
    std::map<std::string_view, std::vector<const RankValue*>> by_value;
    for (const auto& [rank, value] : step) by_value[value->value].push_back(value);
    if (by_value.size() == 1) {
      if (found.odd) return std::nullopt;  // they agree again
      before = &step;
      continue;
    }
    if (by_value.size() != 2 || !before) return std::nullopt;
    auto few = by_value.begin(), many = std::next(few);
    if (few->second.size() > many->second.size()) std::swap(few, many);
    const RankValue* odd = few->second.front();
    if (few->second.size() != 1 || (found.odd && found.odd->rank != odd->rank)) return std::nullopt;
    if (!found.odd) {
      const auto earlier = before->find(odd->rank);
      if (earlier == before->end()) return std::nullopt;
      found.odd = odd;
      found.usual = many->second.front();
      found.agreed = earlier->second;
    }
    found.ranks = std::max(found.ranks, step.size());
    ++found.steps;
  }
  return found.odd && found.steps >= kFewSteps ? std::optional(found) : std::nullopt;
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
