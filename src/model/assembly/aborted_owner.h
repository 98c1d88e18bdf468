// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// All ranks print into one text, and the launcher lists how each of them ended. Whoever lost a peer raised that, and
// exited with the code of an exception; where there is one such traceback for each rank that exited so, all other
// errors of that text are of the one rank that is left on the list, which SIGABRT ended.
void GiveErrorsToTheAborted(Incident& incident);

}  // namespace tacet
