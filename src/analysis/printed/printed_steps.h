// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/incident.h"

namespace tacet {

// By the times that the job itself prints for each rank and step: the part of a step that one rank (or one stage of a
// pipeline) does for itself takes far longer than on the others, in most steps or again and again, and the others wait
// meanwhile.
struct PrintedLaggard {
  enum class Part : uint8_t { work, data };
  Part part = Part::work;
  std::vector<Rank> ranks;             // empty where the lines name stages only
  int32_t stage = -1;                  // where what differs is a stage of a pipeline
  double own = 0, others = 0;          // seconds: the median of its long steps; of the others, the longest
  double whole = 0;                    // seconds of such a step
  double wait = -1;                    // seconds that the others wait in it, where they tell it
  size_t long_steps = 0, steps = 0;    // in how many of its steps it takes so long
  size_t compared = 0;                 // ranks or stages
  const StepShare* last = nullptr;     // the last long step
  bool persistent() const { return long_steps * 2 > steps; }
};
std::optional<PrintedLaggard> FindPrintedLaggard(const Incident& incident);

}  // namespace tacet
