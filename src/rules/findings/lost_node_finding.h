// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// The scheduler or Ray lost nodes: all of their ranks are gone, and nothing they did is the reason.
void JudgeLostNodes(const Case& facts, RuleAnswer& answer);

}  // namespace tacet
