// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The launcher names this very rank as the first that failed.
bool IsNamedFirst(const Case& facts, const Event& told);

// What to do about a crash that no rule explains, by the line that tells its end.
std::vector<std::string> StepsOfACrash(const Case& facts, const Event& told);

}  // namespace tacet
