// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/log_outline.h"

namespace tacet {

// What a program's line says that it waits for.
LineWait WaitToldIn(std::string_view text);

}  // namespace tacet
