// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// Adds the first call of a collective that a program in the text makes under a condition on the rank:
//   if accelerator.is_main_process:
//       accelerator.save_state(path)
// What all ranks must call then hangs. Calls that also stand in the other branch are none.
void AddToldGuard(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
