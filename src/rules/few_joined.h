// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Processes print as which rank of how many they start or join, each once, and the text ends there: of the others there
// is no line. Where the text around it says that the job hangs, or nearly all are there, the rest did not start, or
// prints elsewhere.
std::optional<Finding> FindFewJoined(const Case& facts);

}  // namespace tacet
