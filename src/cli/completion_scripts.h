// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tacet {

// Completions of commands, options and values, made from the commands' help.
std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace tacet
