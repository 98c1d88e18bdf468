// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "rules/rule.h"

namespace tacet {

// The finding of `cause` for a job that hangs and that, as the text around the log says, runs with a setting that
// leaves the suspected path out.
std::optional<Finding> RemedyFinding(const Case& facts, std::string_view cause);

// Cites the setting that is said to help, and says what it points to, in a finding that has another reason.
void TellRemedy(const Case& facts, Finding& finding);

}  // namespace tacet
