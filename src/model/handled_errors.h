// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// Ranks train together: where one of them makes progress and comes to its end after an exception that another printed,
// and no file tells of a process that ended badly, the program handled that exception. Logs of one file settle this
// when they are read; this is for ranks with a file each, of which most print nothing after it.
void ForgiveHandledErrors(Incident& incident);

}  // namespace tacet
