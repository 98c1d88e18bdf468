// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// The finding for all stragglers that `belongs` picks: who is late, by how much, and what it costs everybody.
// `why` completes "rank 2 makes the others wait: ...", `why_many` the same of several.
RuleAnswer JudgeStragglers(const Case& facts, bool (*belongs)(const Straggler&), std::string_view cause,
                           std::string_view why, std::string_view why_many);

// The program itself prints how long each rank computes: one that does so far longer than the others, in most of its
// steps or now and then.
void TellPrintedStraggler(const Case& facts, bool now_and_then, RuleAnswer& answer);

}  // namespace tacet
