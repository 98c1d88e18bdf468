// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "rules/rule.h"

namespace tacet {

// All ranks of a job over gloo gave up, in different operations: collectives that do not fit, a message that nobody
// takes, or messages alone, of which some wait for each other in a circle. Empty where that is not this cause. Of three
// and more ranks the one is named that is alone in its collective while all others are in one.
std::optional<Finding> PartedFinding(const Case& facts, std::string_view cause);

}  // namespace tacet
