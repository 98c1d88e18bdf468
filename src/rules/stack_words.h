// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// Stacks and nothing else: somebody took them for a reason, and they at least show where the processes are.
// "rank 0 is in poll (libc.so.6), waiting for ..."; empty where there is more than stacks.
std::string StackWords(const Case& facts);

}  // namespace tacet
