// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"

namespace tacet {

// Ctrl-C: a person ended what ran, whether it stood still or not, and neither the launcher nor another node did. No
// failure leads to it.
bool IsInterrupt(const Event& event);
// ... and it met a process in a barrier, or where the ranks of a job find each other. In a job that goes on nobody
// waits there for long.
bool IsInterruptedMeeting(const Event& event);

// Where all ranks print into one text, their tracebacks have no names: what these tell of others, one by one.
struct NamelessWaits {
  std::vector<const Event*> timeouts, losses;  // gloo waited until its time was up; gloo lost a peer
  std::vector<const Event*> of_threads;        // each ended a thread beside the main one, and not its process
  bool error = false;                          // any other exception stands without a name
  bool interrupted = false;                    // by Ctrl-C: what ranks tell of others then came of that
};

NamelessWaits ReadNamelessWaits(const Incident& incident);

}  // namespace tacet
