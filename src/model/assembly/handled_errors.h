// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// Ranks run the same program: an exception that one of them printed and survived, printed by another at the same place,
// is handled there as well, unless some file tells of a process that ended badly. Most ranks print nothing after it, so
// that their own files cannot show this.
void ForgiveHandledErrors(Incident& incident);

}  // namespace tacet
