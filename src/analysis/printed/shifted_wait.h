// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "model/incident.h"

namespace tacet {

// By figures whose names say nothing: in some steps one rank spends long in one part, and all others as much longer in
// another part of the same step, which is how waiting for it looks.
struct ShiftedWait {
  Rank rank;
  std::string own_name, wait_name;
  size_t events = 0, steps = 0;  // steps in which it happens, and that were compared
  size_t ranks = 0;              // that were compared
  double own = 0, others = 0;    // seconds in that part, of the rank and of the slowest other; medians of these steps
  double wait = 0;               // what the others spend in the other part then
  double share = 0;              // of the time of all steps
  // The part of the rank grows from step to step, from this to that; 0: it does not.
  double grows_from = 0, grows_to = 0;
  const StepDecimal* last = nullptr;
  bool persistent() const { return 2 * events >= steps; }
};
std::optional<ShiftedWait> FindShiftedWait(const Incident& incident);

}  // namespace tacet
