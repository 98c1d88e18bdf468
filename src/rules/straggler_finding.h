// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// The finding for all stragglers that `belongs` picks: who is late, by how much, and what it costs everybody.
RuleAnswer JudgeStragglers(const Case& facts, bool (*belongs)(const Straggler&), std::string_view cause,
                           std::string_view why);

}  // namespace tacet
