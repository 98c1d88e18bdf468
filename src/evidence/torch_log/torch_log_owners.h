// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/fragment.h"

namespace tacet {

// In a file of all ranks an error often stands without a name. The launcher's summary tells which ranks raised (exit
// code 1), so that errors without owner can be given to them: all to the only one; one each when all say the same; and
// one that names its GPU to the rank with that local rank.
void GiveOwners(Fragment& fragment);

}  // namespace tacet
