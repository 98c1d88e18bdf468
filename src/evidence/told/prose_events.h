// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// Whoever writes around a log repeats its messages, and the readers of lines take them as a second report. Drops what a
// sentence or the title only repeats ("it gives an error that no space is left on device", above that very error), and
// what it plays down ("the misleading ibv_create_cq error message"). What nothing in the log tells stays.
void DropRepeatedInProse(std::string_view bytes, Fragment& fragment);

// "no error, no timeout", "without any error", "this message is harmless": the words stand there, and nothing failed.
bool PlaysDown(std::string_view low);

}  // namespace tacet
