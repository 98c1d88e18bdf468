// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/log_outline.h"

namespace tacet {

// What a program's line says that it waits for.
LineWait WaitToldIn(std::string_view text);

// A question to whoever sits at the terminal does not end its line: what others print, or the answer, stands behind it.
// Where it ends; npos: the line asks nothing.
size_t EndOfQuestion(std::string_view text);

}  // namespace tacet
