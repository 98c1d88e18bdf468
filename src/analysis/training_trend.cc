// SPDX-License-Identifier: Apache-2.0
#include "analysis/training_trend.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tacet {
namespace {

// A scale that starts at 65536 or above falls for some steps until it fits: that is how it is found. Below this nothing
// is left to try, and the run ends at its minimum soon.
constexpr double kLowScale = 128;
constexpr int64_t kDropsInARow = 3;

bool IsLost(const TrainingValue& value, bool is_loss) {
  // A gradient norm is infinite in every step that a scaler skips; the loss of a running job is not.
  return value.run >= (is_loss ? 1 : 2) && (value.run >= 2 || value.lines >= 4);
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
  for (const TrainingRecord& record : incident.training)
    if (record.loss.lines > record.loss.run && record.loss.run == 0 && record.source.file == last->run_source.file &&
        record.source.line > last->run_source.line)
      return std::nullopt;
  return found;
}

const StepTime* Median(std::vector<const StepTime*> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end(),
                   [](const StepTime* a, const StepTime* b) { return a->seconds < b->seconds; });
  return *middle;
}

std::optional<SlowingSteps> SlowingOf(const TrainingRecord& record, const Patience& patience) {
  const std::vector<StepTime>& times = record.times;
  const size_t least = record.exact_times ? patience.few_exact_steps : patience.few_steps;
  if (times.size() < least) return std::nullopt;
  const bool rises = std::is_sorted(times.begin(), times.end(),
                                    [](const StepTime& a, const StepTime& b) { return a.seconds < b.seconds; });
  SlowingSteps found{.record = &record, .before = &times.front(), .after = &times.back(), .grows = rises};
  if (rises && found.factor() >= patience.growing_steps) return found;
  if (times.size() < patience.few_steps) return std::nullopt;
  std::vector<const StepTime*> early, late;
  for (size_t i = 0; i < times.size(); ++i) {
    if (i < times.size() / 2) early.push_back(&times[i]);
    if (i >= times.size() - times.size() / 3) late.push_back(&times[i]);
  }
  found.grows = false;
  found.before = Median(early);
  found.after = Median(late);
  const bool stays = std::all_of(late.begin(), late.end(), [&](const StepTime* time) {
    return time->seconds >= patience.slower_steps * found.before->seconds;
  });
  if (!stays) return std::nullopt;
  return found;
}

}  // namespace

std::optional<NonFiniteTraining> FindNonFiniteTraining(const Incident& incident) {
  for (const TrainingRecord& record : incident.training) {
    if (IsLost(record.loss, true)) return NonFiniteTraining{&record, &record.loss, "loss"};
    if (IsLost(record.gradient, false)) return NonFiniteTraining{&record, &record.gradient, "gradient norm"};
    if (record.scale.drops >= kDropsInARow && record.scale.to < kLowScale)
      return NonFiniteTraining{&record, nullptr, ""};
    if (IsAtFloor(record.scale)) return NonFiniteTraining{&record, nullptr, ""};
  }
  for (const bool of_loss : {true, false})
    if (auto found = FindReports(incident, of_loss)) return found;
  return std::nullopt;
}

std::optional<SlowingSteps> FindSlowingSteps(const Incident& incident) {
  for (const TrainingRecord& record : incident.training)
    if (auto found = SlowingOf(record, incident.patience)) return found;
  return std::nullopt;
}

}  // namespace tacet
