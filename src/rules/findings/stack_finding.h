// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Nobody's calls are recorded, and no limit was over, but there is a stack of every rank: all but one are at one line,
// and the one is elsewhere, or all wait for a lock. Whoever takes the stacks of all ranks suspects a hang; whether the
// job made progress they do not show.
std::optional<Finding> FindingByStacks(const Case& facts);

}  // namespace tacet
