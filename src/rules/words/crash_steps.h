// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The launcher names the process of this end as the first that failed.
bool IsNamedFirst(const Event& end);
// The line by which the launcher names this very rank as the first that failed; nullptr: it does not.
const Event* NamedFirst(const Case& facts, const Event& told);
// Somebody outside ended the job behind this line of the same output: an interruption, a scheduler. nullptr: nobody.
const Event* EndedFromOutsideAfter(const Incident& incident, const Event& told);

// What to do about a crash that no rule explains, by the line that tells its end.
std::vector<std::string> StepsOfACrash(const Case& facts, const Event& told);

}  // namespace tacet
