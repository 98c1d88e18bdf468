// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// The job hangs, no record shows where its ranks part, and the program in the text calls a collective under a condition
// that only some ranks fulfil.
std::optional<Finding> GuardedCallFinding(const Case& facts);

}  // namespace tacet
