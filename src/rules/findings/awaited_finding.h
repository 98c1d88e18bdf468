// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Ranks whose last line says what they wait for, which is no other rank: a debugger, a file, a lock. Either it is the
// last that anybody printed, or the others said that they wait for this rank.
std::optional<Finding> AwaitedFinding(const Case& facts);

}  // namespace tacet
