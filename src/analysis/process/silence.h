// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"

namespace tacet {

// A process whose heartbeat stopped while those of others went on: it is not merely busy, nothing in it runs any more.
// Or one that a list of processes (ps) shows stopped, blocked or dead.
struct Silence {
  Rank rank;
  const Pulse* pulse = nullptr;  // null: nothing beats, and only a list shows it
  const Sight* sight = nullptr;  // what a sibling or a list saw of it; null when nobody looked
  TaskState state = TaskState::unknown;
  bool exited = false;  // it ended by itself
  bool dead() const { return exited || state == TaskState::zombie || state == TaskState::gone; }
  // A list shows a moment: any wait for a disk is state D, but nobody is stopped or dead for a moment.
  bool lasts() const { return pulse != nullptr || state != TaskState::uninterruptible; }
  bool frozen() const { return state == TaskState::stopped || state == TaskState::uninterruptible; }
};

// Sorted by rank. Late beats of a busy machine, processes that never had one, and copies of living boxes are none.
std::vector<Silence> FindSilences(const Incident& incident);

}  // namespace tacet
