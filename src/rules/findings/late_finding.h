// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Nobody's calls are recorded, and all who waited for one rank gave up, by gloo's limit or by one of the program's own:
// what that rank printed, or how it ended, shows what it did meanwhile. Empty where nothing of that is known.
std::optional<Finding> LateFinding(const Case& facts);

}  // namespace tacet
