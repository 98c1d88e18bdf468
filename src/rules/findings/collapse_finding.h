// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// All processes are gone, and none of them waited for another.
void JudgeCollapse(const Case& facts, RuleAnswer& answer);

// The finding names a rank that is gone. Where all others then ended with an error, and nobody's time was up, nobody
// waits anymore, and the headline says so. `waits`: the end of the headline, which says who waits.
void TellFailedPeers(const Case& facts, std::string_view waits, Finding& finding);

}  // namespace tacet
