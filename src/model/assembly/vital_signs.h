// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// Ties what beats, what is in flight and what siblings saw to the records that were kept: one pulse a rank, operations
// in flight only of kept streams, sights only of processes that have a pulse here (a pid may have been another job's,
// or an earlier attempt's). To be called when the streams stand in their final order.
void SettleVitalSigns(Incident& incident);

}  // namespace tacet
