// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/stacks/stacks_parse.h"
#include "model/fragment.h"

namespace tacet {

// Threads, speakers and the fatal errors of one file into `out`.
void ImportStacks(const StackDump& dump, std::string_view path, Fragment& out);

}  // namespace tacet
