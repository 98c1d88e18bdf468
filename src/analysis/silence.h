// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"

namespace tacet {

// A process whose heartbeat stopped while those of others went on: it is not merely busy, nothing in it runs any more.
struct Silence {
  Rank rank;
  const Pulse* pulse = nullptr;
  const Sight* sight = nullptr;  // what a sibling saw of it; null when nobody looked
  TaskState state = TaskState::unknown;
  bool exited = false;  // it ended by itself
  bool dead() const { return exited || state == TaskState::zombie || state == TaskState::gone; }
  bool frozen() const { return state == TaskState::stopped || state == TaskState::uninterruptible; }
};

// Sorted by rank. Late beats of a busy machine, processes that never had one, and copies of living boxes are none.
std::vector<Silence> FindSilences(const Incident& incident);

}  // namespace tacet
