// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Ranks whose program ended without an error while others still waited for them: they issued fewer collectives.
std::optional<Finding> FindingOfEarlyLeavers(const Case& facts);

}  // namespace tacet
