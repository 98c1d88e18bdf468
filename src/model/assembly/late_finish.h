// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/call.h"

namespace tacet {

// A collective that took longer than its time limit reads as ended by the abort. Where a member came to it only then,
// and ended it well, it ended well for everybody: that mark is taken away again.
void ForgiveLateFinishes(std::vector<CallStream>& streams);

}  // namespace tacet
