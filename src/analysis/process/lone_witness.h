// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/process/scene.h"

namespace tacet {

// No record of calls shows where the waiting ends: who stands still by one kind of witness alone. The first that knows
// somebody answers: stacks, a look at the processes, silence, the kernel, a report of NCCL or PyTorch.
void FindByLoneWitness(const Scene& scene, StandstillView& view);

}  // namespace tacet
