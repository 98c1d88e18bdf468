// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// All processes are gone, and none of them waited for another.
void JudgeCollapse(const Case& facts, RuleAnswer& answer);

}  // namespace tacet
