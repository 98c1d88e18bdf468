// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tacet {

// The end of the piece of a line that begins at `at` and stays in one line of the output if it fits `width` columns: a
// word, a number with its unit, an interval, an option with its value, a command with its arguments.
size_t PieceEnd(std::string_view line, size_t at, size_t width);

}  // namespace tacet
