// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "model/fragment.h"

namespace tacet {

// Counts lines as understood that nobody but AddToldWords could read: sentences around a log, and the one that a cut
// traceback's error is taken from. `first`: the number of events before it. In a text of no known format any line that
// tells something counts.
void CountToldLines(std::string_view bytes, size_t first, Fragment& fragment);

}  // namespace tacet
