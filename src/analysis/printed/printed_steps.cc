// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/printed_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

using Part = PrintedLaggard::Part;

double PartOf(const StepShare& step, Part part) { return part == Part::data ? step.data : step.work; }

// Whose steps are compared: those of one rank, or of one stage where lines name stages only. In the order of steps,
// without the first of the run, which is always slow.
struct Performer {
  int32_t number = -1;
  int32_t stage = -1;
  std::vector<const StepShare*> steps;
};

// A step counts once, however many files hold the line: launchers copy what ranks print.
std::vector<Performer> PerformersOf(const Incident& incident) {
  size_t by_node = 0;
  bool ranked = false;
  for (const LogOutline& outline : incident.outlines) {
    by_node += outline.local_labels;
    for (const StepShare& step : outline.steps) ranked = ranked || step.rank >= 0;
  }
  std::map<int32_t, Performer> found;
  std::set<std::tuple<int32_t, int64_t, int64_t, size_t>> taken;
  for (const LogOutline& outline : incident.outlines) {
    if (outline.local_labels && by_node > 1) continue;
    std::map<std::tuple<int32_t, int64_t, int64_t>, size_t> times;
    for (const StepShare& step : outline.steps) {
      const int32_t number = ranked ? step.rank : step.stage;
      if (number < 0) continue;
      const size_t repeat = times[{number, step.epoch, step.place}]++;
      if (step.place >= 0 && !taken.insert({number, step.epoch, step.place, repeat}).second) continue;
      Performer& performer = found[number];
      performer.number = number;
      performer.stage = step.stage;
      performer.steps.push_back(&step);
    }
  }
  std::vector<Performer> all;
  for (auto& [number, performer] : found) {
    performer.steps.erase(performer.steps.begin());
    all.push_back(std::move(performer));
  }
  return all;
}

std::vector<double> ValuesOf(const Performer& performer, Part part) {
  std::vector<double> values;
  for (const StepShare* step : performer.steps)
    if (const double value = PartOf(*step, part); value >= 0) values.push_back(value);
  return values;
}

double MedianPart(const std::vector<const StepShare*>& steps, double StepShare::*part) {
  std::vector<double> values;
  for (const StepShare* step : steps)
    if (step->*part >= 0) values.push_back(step->*part);
  return values.empty() ? -1 : Median(std::move(values));
}

// What takes ever less time was a slow start, or a mean over a run with one.
bool Fades(const std::vector<double>& values, double others) {
  constexpr size_t kFewest = 6;
  if (values.size() < kFewest) return false;
  const size_t third = values.size() / 3;
  const auto excess = [&](auto begin, auto end) { return Median(std::vector<double>(begin, end)) - others; };
  const auto end = values.end(), early = values.begin() + static_cast<std::ptrdiff_t>(third);
  const double first = excess(values.begin(), early), last = excess(end - static_cast<std::ptrdiff_t>(third), end);
  if (first <= 0.1 * others || last >= 0.5 * first) return false;
  size_t falls = 0;
  for (size_t i = 1; i < values.size(); ++i) falls += values[i] <= values[i - 1];
  return falls * 5 >= (values.size() - 1) * 4;
}

// One who takes longer than all others, by whatever measure of its steps.
struct Longest {
  size_t at = 0;
  double most = -1, next = -1;
};
template <typename Measure>
Longest FindLongest(const std::vector<Performer>& all, const Measure& measure) {
  Longest found;
  for (size_t i = 0; i < all.size(); ++i) {
    const double value = measure(all[i]);
    found.next = std::max(found.next, std::min(value, found.most));
    if (value > found.most) found.most = value, found.at = i;
  }
  return found;
}

// What its lines leave out of a step that takes so long: all ranks step together.
double UntoldOf(const Performer& one, double whole) {
  const bool told = std::any_of(one.steps.begin(), one.steps.end(), [](const StepShare* step) { return step->told; });
  return told ? 0 : std::max(0.0, whole - MedianPart(one.steps, &StepShare::whole));
}

// What the others tell of their waits in these steps. No: they tell them, and they are too short to be waits for this
// one.
bool DoOthersWait(const std::vector<Performer>& all, const Performer& slow, double longer, double* wait) {
  constexpr double kLeastShare = 0.5;  // of what it takes longer
  const double own = MedianPart(slow.steps, &StepShare::wait), whole = MedianPart(slow.steps, &StepShare::whole);
  std::vector<double> others;
  for (const Performer& one : all) {
    if (&one == &slow || (slow.stage >= 0 && one.stage == slow.stage && one.number != slow.number)) continue;
    if (const double value = MedianPart(one.steps, &StepShare::wait); value >= 0)
      others.push_back(value + UntoldOf(one, whole));
  }
  if (others.empty()) return true;
  *wait = Median(std::move(others));
  return *wait - std::max(own, 0.0) >= kLeastShare * longer;
}

PrintedLaggard LaggardOf(const Performer& slow, const Longest& longest, double limit, Part part, bool ranked) {
  PrintedLaggard found{.part = part, .others = longest.next};
  std::vector<const StepShare*> late;
  for (const StepShare* step : slow.steps) {
    found.steps += PartOf(*step, part) >= 0;
    if (PartOf(*step, part) > limit) late.push_back(step);
  }
  found.long_steps = late.size();
  if (late.empty()) return found;
  found.own = MedianPart(late, part == Part::data ? &StepShare::data : &StepShare::work);
  found.whole = MedianPart(late, &StepShare::whole);
  found.last = late.back();
  if (ranked) found.ranks = {Rank{slow.number}};
  return found;
}

std::optional<PrintedLaggard> FindInPart(std::vector<Performer> all, Part part, bool ranked, const Patience& patience) {
  constexpr size_t kManyRanks = 4, kFewLongSteps = 3;
  // Where one of several ranks differs and the others agree, a few steps are no accident.
  const size_t fewest = all.size() < kManyRanks ? 4 : part == Part::data ? 1 : 2;
  std::erase_if(all, [&](const Performer& one) { return ValuesOf(one, part).size() < fewest; });
  if (all.size() < 2) return std::nullopt;
  std::set<int32_t> stages;
  for (const Performer& one : all)
    if (one.stage >= 0) stages.insert(one.stage);
  const bool staged = stages.size() > 1 || !ranked;
  const double factor = staged ? patience.printed_stage_longer : patience.printed_longer;
  const auto is_far = [&](const Longest& one, double whole) {
    const double longer = one.most - one.next;
    return longer >= factor * one.next && longer >= patience.printed_share * whole;
  };
  // In most of its steps ...
  Longest longest = FindLongest(all, [&](const Performer& one) { return Median(ValuesOf(one, part)); });
  bool far = is_far(longest, MedianPart(all[longest.at].steps, &StepShare::whole));
  double limit = (longest.most + longest.next) / 2;
  if (!far) {
    // ... or again and again, so that it costs as much.
    longest = FindLongest(all, [&](const Performer& one) { return Mean(ValuesOf(one, part)); });
    double whole = 0;
    for (const StepShare* step : all[longest.at].steps)
      whole += step->whole / static_cast<double>(all[longest.at].steps.size());
    far = is_far(longest, whole);
    limit = 2 * longest.next;
  }
  const Performer& slow = all[longest.at];
  if (!far || Fades(ValuesOf(slow, part), longest.next)) return std::nullopt;
  PrintedLaggard found = LaggardOf(slow, longest, limit, part, ranked);
  found.compared = all.size();
  // A single pause is a checkpoint or an evaluation.
  if (found.long_steps < std::min(kFewLongSteps, found.steps)) return std::nullopt;
  if (staged) found.stage = slow.stage;
  if (found.persistent() && !DoOthersWait(all, slow, longest.most - longest.next, &found.wait)) return std::nullopt;
  return found;
}

// Ranks of one stage work alike: where all of them take long, the stage does.
std::vector<Performer> StagesOf(const std::vector<Performer>& ranks) {
  std::map<int32_t, Performer> stages;
  for (const Performer& one : ranks) {
    Performer& stage = stages[one.stage];
    stage.number = stage.stage = one.stage;
    stage.steps.insert(stage.steps.end(), one.steps.begin(), one.steps.end());
  }
  std::vector<Performer> all;
  for (auto& [number, stage] : stages) all.push_back(std::move(stage));
  return all;
}

}  // namespace

std::optional<PrintedLaggard> FindPrintedLaggard(const Incident& incident) {
  const std::vector<Performer> all = PerformersOf(incident);
  if (all.size() < 2) return std::nullopt;
  const bool ranked = std::any_of(
      all.begin(), all.end(), [](const Performer& one) { return !one.steps.empty() && one.steps.front()->rank >= 0; });
  std::optional<PrintedLaggard> worst;
  for (const Part part : {Part::data, Part::work})
    if (auto found = FindInPart(all, part, ranked, incident.patience))
      if (!worst || found->own - found->others > worst->own - worst->others) worst = std::move(found);
  if (worst || !ranked) return worst;
  const std::vector<Performer> stages = StagesOf(all);
  if (stages.size() < 2 || stages.size() == all.size() || stages.front().stage < 0) return std::nullopt;
  auto found = FindInPart(stages, Part::work, false, incident.patience);
  if (found)
    for (const Performer& one : all)
      if (one.stage == found->stage) found->ranks.push_back(Rank{one.number});
  return found;
}

}  // namespace tacet
