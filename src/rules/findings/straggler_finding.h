// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// The finding for all stragglers that `belongs` picks: who is late, by how much, and what it costs everybody.
// `why` completes "rank 2 makes the others wait: ...", `why_many` the same of several.
RuleAnswer JudgeStragglers(const Case& facts, bool (*belongs)(const Straggler&), std::string_view cause,
                           std::string_view why, std::string_view why_many);

// The program itself prints how the time of each rank's steps is shared out: one rank, or one stage, does its part far
// longer than the others, in most of its steps or now and then. Told by the rule of this cause alone.
void TellPrintedStraggler(const Case& facts, std::string_view cause, RuleAnswer& answer);

}  // namespace tacet
