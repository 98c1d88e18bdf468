// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// A network plugin that cannot set up its device gives up, and NCCL takes the next network: what failed before the same
// process chose its first network ended nobody, and only says why it is slower.
void LowerSurvivedSetups(Incident& incident);

}  // namespace tacet
