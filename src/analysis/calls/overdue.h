// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// A box tells when each operation ended, so it also tells how long is normal: a wait far longer than any before it is
// no ordinary one, even where the job was ended a few seconds into it. Weaker than a watchdog's limit: work that is
// done for the first time (an evaluation, a checkpoint) looks the same.
bool IsOverdue(const Incident& incident);

// Nothing at all has ended on this rank: it starts up.
bool HasEndedNothing(const CallStream& stream);

// Nothing of this shape has ended on the rank's group before: NCCL may still be making connections for it, which takes
// seconds and waits for the other members.
bool IsFirstOfItsShape(const CallStream& stream, const Call& call);

}  // namespace tacet
