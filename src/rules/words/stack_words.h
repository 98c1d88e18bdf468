// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// Where the processes are, of evidence that is stacks and nothing else: "rank 0 waits for the next batch of its data
// loader (__next__, iterators.py:648); ranks 1-3 are in barrier (distributed_c10d.py:5030)". Empty where there are
// none, or other files.
std::string StackWords(const Case& facts);

}  // namespace tacet
