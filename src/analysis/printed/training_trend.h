// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/incident.h"

namespace tacet {

// A job whose numbers are no longer finite. One NaN that finite values follow is none: mixed precision tries scales
// that overflow, and skips those steps.
struct NonFiniteTraining {
  const TrainingRecord* record = nullptr;  // null: a table or another list of figures tells it
  const TrainingValue* value = nullptr;    // null: no step gives finite gradients, the scale of the loss tells it
  std::string name;                        // "loss", "gradient norm", or what the program calls it
  size_t processes = 1;                    // that report it
  SourceRef last;                          // the last line that tells such values
  size_t others = 0;                       // other figures that are not finite since then
};
std::optional<NonFiniteTraining> FindNonFiniteTraining(const Incident& incident);

// Steps that take longer and longer, or that became slower at some moment and stayed so.
struct SlowingSteps {
  std::string unit;          // of what is counted: "step", "sample", "token"
  size_t count = 0;          // of times that were compared
  StepTime before, after;    // typical ones
  bool grows = false;        // steadily, over all of the record
  double per_100_steps = 0;  // seconds that 100 steps add to one; 0 where no step numbers are told
  Rank rank;                 // whose trace shows it; unknown: the job's own lines do
  double factor() const { return after.seconds / before.seconds; }
};
std::optional<SlowingSteps> FindSlowingSteps(const Incident& incident);

}  // namespace tacet
