// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// Where all ranks share one output, nobody can tell whose line it was; a file of a rank's own that has the same words
// can. What stands in both happened once: the copy without a rank is left out.
void DropEchoes(Incident& incident);

}  // namespace tacet
