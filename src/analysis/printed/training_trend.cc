// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/training_trend.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// A scale that starts at 65536 or above falls for some steps until it fits: that is how it is found. Below this nothing
// is left to try, and the run ends at its minimum soon.
constexpr double kLowScale = 128;
constexpr int64_t kDropsInARow = 3;

bool IsLost(const TrainingValue& value, bool is_loss) {
  // A gradient norm is infinite in every step that a scaler skips; the loss of a running job is not.
  return value.run >= (is_loss ? 1 : 2);
}

// {'loss': 0.0, 'grad_norm': nan}: a loss of exactly 0 is none.
bool IsLostBehindZero(const TrainingRecord& record) {
  return record.gradient.run > 0 && record.loss.lines > record.loss.run && record.loss.last == 0;
}

// Loss and gradients of one line: no scaler does that.
bool AreBothLost(const TrainingRecord& record) {
  return record.loss.run > 0 && record.loss.lines > record.loss.run && record.gradient.run > 0 &&
         record.gradient.lines > record.gradient.run;
}

// At its minimum the scale cannot fall: most steps since the first one there were skipped, so nothing is learnt.
bool IsAtFloor(const LossScaleDrop& scale) {
  const bool steps_known = scale.floor_step >= 0 && scale.last_step >= scale.floor_step;
  return scale.at_floor >= kDropsInARow &&
         (!steps_known || scale.last_step - scale.floor_step + 1 <= 2 * scale.at_floor);
}

// Lines that say no more than that a value is not finite: two processes that tell it confirm each other, unless
// somebody prints a finite value later.
std::optional<NonFiniteTraining> FindReports(const Incident& incident, bool of_loss) {
  NonFiniteTraining found{.name = of_loss ? "loss" : "gradient norm", .processes = 0};
  const TrainingValue* last = nullptr;
  for (const TrainingRecord& record : incident.training) {
    const TrainingValue& value = of_loss ? record.loss : record.gradient;
    if (value.reports == 0) continue;
    if (!found.record) found.record = &record, found.value = &value;
    if (!last || last->run_source.line < value.run_source.line) last = &value;
    ++found.processes;
  }
  if (found.processes < 2) return std::nullopt;
  found.last = found.record->source;
  for (const TrainingRecord& record : incident.training)
    if (record.loss.lines > record.loss.run && record.loss.run == 0 && record.source.file == last->run_source.file &&
        record.source.line > last->run_source.line)
      return std::nullopt;
  return found;
}

// Only the last stage of a pipeline has a loss: what others print in its place never was a number.
bool IsNobodys(const Incident& incident, const TrainingValue& loss) {
  return loss.run == loss.lines &&
         std::any_of(incident.training.begin(), incident.training.end(), [](const TrainingRecord& other) {
           return other.loss.lines > other.loss.run + 1 && other.loss.run == 0;
         });
}

// It was a number for some lines, and is none any more.
bool IsLostFigure(const FigureSeries& figure, const Patience& patience) {
  const TrainingValue& value = figure.value;
  // The loss itself needs fewer lines than a figure of which nobody knows what it is.
  const bool of_loss = figure.kind == FigureSeries::Kind::loss && !figure.held_out;
  return value.run >= (of_loss ? std::min<int64_t>(2, patience.lost_lines) : patience.lost_lines) &&
         value.lines - value.run >= patience.lines_before_lost;
}

bool IsFiniteLoss(const FigureSeries& figure) {
  // A loss of exactly 0 is that of a model whose outputs are not finite.
  return figure.kind == FigureSeries::Kind::loss && !figure.held_out && figure.value.run == 0 &&
         figure.value.lines > 1 && figure.value.last != 0;
}

// Figures of tables and of other lists, as programs print them beside the number of the step. A part of the loss that
// is not finite, or a metric, harms nothing while the loss itself is.
std::optional<NonFiniteTraining> FindLostFigure(const Incident& incident) {
  for (const LogOutline& outline : incident.outlines) {
    std::vector<const FigureSeries*> lost;
    std::set<int32_t> learns;  // ranks with a loss that is finite to the end
    for (const FigureSeries& figure : outline.series) {
      if (IsFiniteLoss(figure)) learns.insert(figure.rank);
      if (IsLostFigure(figure, incident.patience)) lost.push_back(&figure);
    }
    std::erase_if(lost, [&](const FigureSeries* figure) { return learns.contains(figure->rank); });
    const auto by_kind = [](const FigureSeries* a, const FigureSeries* b) {
      const auto order = [](const FigureSeries& one) {
        return one.kind == FigureSeries::Kind::loss       ? (one.held_out ? 1 : 0)
               : one.kind == FigureSeries::Kind::gradient ? 2
                                                          : 3;
      };
      return std::pair(order(*a), a->value.run_source.line) < std::pair(order(*b), b->value.run_source.line);
    };
    std::stable_sort(lost.begin(), lost.end(), by_kind);
    // One figure without a known meaning may be a metric that is not defined any more.
    const bool unknown = !lost.empty() && lost.front()->kind != FigureSeries::Kind::loss &&
                         lost.front()->kind != FigureSeries::Kind::gradient;
    if (lost.empty() || (unknown && lost.size() < 2)) continue;
    const FigureSeries& first = *lost.front();
    std::set<std::string_view> names;
    for (const FigureSeries* figure : lost) names.insert(figure->name);
    return NonFiniteTraining{nullptr, &first.value, first.name, 1, first.last, names.size() - 1};
  }
  return std::nullopt;
}

const StepTime* MiddleStep(std::vector<const StepTime*> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end(),
                   [](const StepTime* a, const StepTime* b) { return a->seconds < b->seconds; });
  return *middle;
}

// Where a time stands: by the number of its step, else by its place.
double PlaceOf(const std::vector<StepTime>& times, size_t i) {
  return times.front().step >= 0 && times.back().step > times.front().step ? static_cast<double>(times[i].step)
                                                                           : static_cast<double>(i);
}

struct StepRise {
  double slope = 0;      // seconds that one step adds
  double agreement = 0;  // of all pairs, those that rise less those that fall: 1 always, 0 noise
};

// The line through all times that a few peaks (checkpoints, a warm-up) do not move: the middle one of the slopes of all
// pairs.
StepRise RiseOf(const std::vector<StepTime>& times) {
  StepRise rise;
  std::vector<double> slopes;
  double balance = 0;
  for (size_t i = 0; i < times.size(); ++i)
    for (size_t j = i + 1; j < times.size(); ++j) {
      const double apart = PlaceOf(times, j) - PlaceOf(times, i), more = times[j].seconds - times[i].seconds;
      if (apart <= 0) continue;
      slopes.push_back(more / apart);
      balance += more > 0 ? 1 : more < 0 ? -1 : 0;
    }
  if (slopes.empty()) return rise;
  rise.agreement = balance / static_cast<double>(slopes.size());
  rise.slope = Median(std::move(slopes));
  return rise;
}

// Every part of the record is slower than the one before it, none by most of the whole: a jump has parts that are
// alike.
bool RisesInEveryPart(const std::vector<StepTime>& times) {
  constexpr size_t kParts = 5;
  constexpr double kLeast = 0.25, kMost = 0.6;  // of an even share; of the whole
  std::vector<double> middles;
  for (size_t part = 0; part < kParts; ++part) {
    std::vector<double> seconds;
    for (size_t i = part * times.size() / kParts; i < (part + 1) * times.size() / kParts; ++i)
      seconds.push_back(times[i].seconds);
    middles.push_back(Median(std::move(seconds)));
  }
  const double whole = middles.back() - middles.front();
  for (size_t part = 1; part < kParts; ++part) {
    const double more = middles[part] - middles[part - 1];
    if (more < kLeast * whole / (kParts - 1) || more > kMost * whole) return false;
  }
  return whole > 0;
}

// Something accumulates: each step takes a little longer than the one before.
std::optional<SlowingSteps> SteadyRise(const std::vector<StepTime>& times, double least_factor) {
  constexpr size_t kFewest = 15, kEnds = 5;  // three times in each part
  constexpr double kLeastAgreement = 0.6;
  if (times.size() < kFewest || !RisesInEveryPart(times)) return std::nullopt;
  const StepRise rise = RiseOf(times);
  if (rise.agreement < kLeastAgreement) return std::nullopt;
  // What was measured, not where the line through all times begins, which may be near zero.
  std::vector<const StepTime*> early, late;
  for (size_t i = 0; i < times.size() / kEnds; ++i) {
    early.push_back(&times[i]);
    late.push_back(&times[times.size() - 1 - i]);
  }
  SlowingSteps found{.before = *MiddleStep(early), .after = *MiddleStep(late), .grows = true};
  if (found.factor() < least_factor) return std::nullopt;
  // Where it stands in the end: the last time, unless it is a peak of its own (a checkpoint, an evaluation).
  constexpr double kPeak = 1.2;
  const double usual = found.after.seconds;
  for (const StepTime* time : late) {  // the last one first
    if (time->seconds > kPeak * usual || time->seconds < usual / kPeak) continue;
    found.after = *time;
    break;
  }
  if (times.front().step >= 0 && times.back().step > times.front().step) found.per_100_steps = 100 * rise.slope;
  return found;
}

// A rate that is a mean over the run since its beginning, and that counts steps of an earlier run too, falls although
// no step takes longer: "time so far" over "steps so far". Then the time between two lines, which is the difference of
// the products, is the same all along.
bool IsMeanOfTheRun(const std::vector<StepTime>& times) {
  constexpr double kAlike = 1.25;
  std::vector<double> early, late;
  for (size_t i = 1; i < times.size(); ++i) {
    const StepTime &a = times[i - 1], &b = times[i];
    if (a.step <= 0 || b.step <= a.step) return false;
    const double apart = static_cast<double>(b.step - a.step);
    const double own = (b.seconds * static_cast<double>(b.step) - a.seconds * static_cast<double>(a.step)) / apart;
    (i <= times.size() / 2 ? early : late).push_back(own);
  }
  if (early.empty() || late.empty()) return false;
  const double before = Median(std::move(early)), after = Median(std::move(late));
  return before > 0 && after < kAlike * before;
}

// Few lines, most of which are slower than those before them: a trend for whoever says so anyway.
std::optional<SlowingSteps> MildRise(const std::vector<StepTime>& times) {
  constexpr size_t kFewest = 8, kFewestSorted = 4;  // all of them slower than those before
  constexpr double kLeastAgreement = 0.5, kSorted = 0.99, kLeastFactor = 1.1;
  if (times.size() < kFewestSorted) return std::nullopt;
  if (RiseOf(times).agreement < (times.size() < kFewest ? kSorted : kLeastAgreement)) return std::nullopt;
  std::vector<const StepTime*> early, late;
  for (size_t i = 0; i < times.size() / 3; ++i) {
    early.push_back(&times[i]);
    late.push_back(&times[times.size() - 1 - i]);
  }
  SlowingSteps found{.before = *MiddleStep(early), .after = *MiddleStep(late), .grows = true};
  return found.factor() >= kLeastFactor ? std::optional(found) : std::nullopt;
}

// The times of whole steps that lines tell beside other figures, of one rank. Times that count from the beginning of
// the run grow with the number of the step.
std::vector<StepTime> TimesOf(const LogOutline& outline) {
  constexpr double kEven = 1.25;
  std::vector<StepTime> times;
  double least = 0, most = 0;
  for (const StepShare& step : outline.steps) {
    if (!step.told || step.rank != outline.steps.front().rank || step.whole <= 0 || step.place < 0) continue;
    if (!times.empty() && step.place <= times.back().step) continue;
    times.push_back({step.place, step.whole, step.source});
    const double each = step.whole / static_cast<double>(std::max<int64_t>(step.place, 1));
    least = times.size() == 1 ? each : std::min(least, each);
    most = std::max(most, each);
  }
  return most < kEven * least ? std::vector<StepTime>() : times;
}

bool SaysItIsSlow(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(),
                     [](const Event& event) { return event.kind == EventKind::told_slow; });
}

// Without the first ones, where they warm up: one of each rank, in an output that all of them share.
std::vector<StepTime> WithoutWarmUp(const std::vector<StepTime>& times) {
  constexpr double kWarmUp = 2;
  std::vector<double> seconds;
  for (const StepTime& time : times) seconds.push_back(time.seconds);
  const double usual = seconds.empty() ? 0 : Median(std::move(seconds));
  size_t first = 0;
  while (first < times.size() / 10 && times[first].seconds > kWarmUp * usual) ++first;
  return {times.begin() + static_cast<std::ptrdiff_t>(first), times.end()};
}

std::optional<SlowingSteps> SlowingOf(const std::vector<StepTime>& all, bool exact, const Patience& patience) {
  const std::vector<StepTime> times = WithoutWarmUp(all);
  const size_t least = exact ? patience.few_exact_steps : patience.few_steps;
  if (times.size() < least || (!exact && IsMeanOfTheRun(times))) return std::nullopt;
  if (auto found = SteadyRise(times, exact ? patience.steadily_slower_steps : patience.growing_steps)) return found;
  const bool rises = std::is_sorted(times.begin(), times.end(),
                                    [](const StepTime& a, const StepTime& b) { return a.seconds < b.seconds; });
  SlowingSteps found{.before = times.front(), .after = times.back(), .grows = rises};
  if (rises && found.factor() >= patience.growing_steps) {
    if (times.back().step > times.front().step && times.front().step >= 0)
      found.per_100_steps = 100 * RiseOf(times).slope;
    return found;
  }
  if (times.size() < patience.few_steps) return std::nullopt;
  std::vector<const StepTime*> early, late;
  for (size_t i = 0; i < times.size(); ++i) {
    if (i < times.size() / 2) early.push_back(&times[i]);
    if (i >= times.size() - times.size() / 3) late.push_back(&times[i]);
  }
  found.grows = false;
  found.before = *MiddleStep(early);
  found.after = *MiddleStep(late);
  const bool stays = std::all_of(late.begin(), late.end(), [&](const StepTime* time) {
    return time->seconds >= patience.slower_steps * found.before.seconds;
  });
  if (!stays) return std::nullopt;
  return found;
}

// Steps as a profiler marks them. The first one warms up.
std::optional<SlowingSteps> SlowingInTrace(const Timeline& timeline, const Patience& patience) {
  constexpr size_t kMostSteps = 128;
  std::vector<StepTime> times;
  const size_t stride = timeline.steps.size() / kMostSteps + 1;
  for (size_t i = 1; i < timeline.steps.size(); i += stride) {
    const TrainingStep& step = timeline.steps[i];
    times.push_back({step.number, static_cast<double>(step.end_ns - step.start_ns) / 1e9, {timeline.file}});
  }
  return SteadyRise(times, patience.steadily_slower_steps);
}

}  // namespace

std::optional<NonFiniteTraining> FindNonFiniteTraining(const Incident& incident) {
  for (const TrainingRecord& record : incident.training) {
    if ((IsLost(record.loss, true) || AreBothLost(record)) && !IsNobodys(incident, record.loss))
      return NonFiniteTraining{&record, &record.loss, "loss", 1, record.source};
    if (IsLost(record.gradient, false) || IsLostBehindZero(record))
      return NonFiniteTraining{&record, &record.gradient, "gradient norm", 1, record.source};
    if (record.scale.drops >= kDropsInARow && record.scale.to < kLowScale)
      return NonFiniteTraining{&record, nullptr, ""};
    if (IsAtFloor(record.scale)) return NonFiniteTraining{&record, nullptr, ""};
  }
  for (const bool of_loss : {true, false})
    if (auto found = FindReports(incident, of_loss)) return found;
  return FindLostFigure(incident);
}

std::optional<SlowingSteps> FindSlowingSteps(const Incident& incident) {
  const bool told = SaysItIsSlow(incident);
  for (const TrainingRecord& record : incident.training) {
    auto found = SlowingOf(record.times, record.exact_times, incident.patience);
    if (!found && told) found = MildRise(record.times);
    if (found) {
      found->unit = record.unit;
      found->count = record.times.size();
      return found;
    }
  }
  for (const LogOutline& outline : incident.outlines)
    if (auto found = told ? MildRise(TimesOf(outline)) : std::nullopt) {
      found->unit = "step";
      found->count = outline.steps.size();
      return found;
    }
  // Ranks take their steps together: one trace shows what all do.
  for (const Timeline& timeline : incident.timelines)
    if (auto found = SlowingInTrace(timeline, incident.patience)) {
      found->unit = "step";
      found->count = timeline.steps.size();
      found->rank = timeline.rank;
      return found;
    }
  return std::nullopt;
}

}  // namespace tacet
