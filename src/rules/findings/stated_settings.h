// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// One rank prints another setting, or another value, than all others where all print the same words. By itself that is
// no fault. Where the job failed in communication and nobody else is to blame, it says who is apart: a finding that
// names nobody names this rank, one that names it cites the lines, and where there is none this is the answer.
std::optional<Finding> TellStatedDifference(const Case& facts, std::vector<Finding>& findings);

}  // namespace tacet
