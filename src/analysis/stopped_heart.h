// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "analysis/standstill.h"

namespace tacet {

// Its own output, or the kernel, says what ended it.
bool IsExplained(const RankLife& life);

// A process that is dead or stopped holds up everybody, even in an operation that it had issued before; whatever else
// seems to hold them up is a consequence. Not so one that fell silent long after the others began to wait. `closing` is
// the first connection that somebody saw close, null when none did.
void ReadStoppedHearts(const Incident& incident, const Analyses& analyses, const Event* closing, StandstillView& view);

// Where silence tells who, the operation is the one somebody else has been in for longest.
void ChooseOperationOfStoppedHearts(const Incident& incident, const Analyses& analyses, StandstillView& view,
                                    std::set<Rank>& waiters);

}  // namespace tacet
