// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rules/rule.h"

namespace tacet {

// Somebody's time was up, and this error, which ends its process, came before: the first fatal event decides that the
// job crashed.
bool EndedBeforeTimeouts(const Case& facts, const Event& error);

// Their programs came to an end of their own, and told no error.
bool AllLeft(const Case& facts, const std::vector<Rank>& ranks);

}  // namespace tacet
