// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "analysis/process/standstill.h"

namespace tacet {

// What a heartbeat that stopped says of its process.
void ClaimByHeartbeat(const Silence& silence, std::vector<Claim>& claims);

// A process that is dead or stopped holds up everybody, even in an operation that it had issued before; whatever else
// seems to hold them up is a consequence. Not so one that fell silent long after the others began to wait. `closing` is
// the first connection that somebody saw close, null when none did.
void ReadStoppedHeartbeats(const Incident& incident, const Analyses& analyses, const Event* closing,
                           StandstillView& view);

// Every process that left a box is gone, and not all of them in order.
struct Collapse {
  std::vector<Rank> first;       // fell before all others; several where their beats cannot tell who of them
  std::vector<Rank> lost;        // all that are gone without an orderly end, in the order in which they fell
  const Pulse* pulse = nullptr;  // of the first
  int64_t spread_ns = 0;         // from the first fall to the last
  bool seen = false;             // all of them were seen gone; else of some only the heartbeat stopped
};

// Nothing where a process may still run, and where the job had stood still before: then its end explains nothing.
std::optional<Collapse> FindCollapse(const Incident& incident, const Analyses& analyses);

// Where silence tells who, the operation is the one somebody else has been in for longest.
void ChooseOperationOfStoppedHeartbeats(const Incident& incident, const Analyses& analyses, StandstillView& view,
                                        std::set<Rank>& waiters);

}  // namespace tacet
