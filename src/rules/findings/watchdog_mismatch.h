// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// Where no calls are recorded, the watchdogs still tell in what each rank waits. Sizes and operations that differ at
// one number are a mismatch, unless the calls are plainly two: then one of the two below tells it.
void JudgeWatchdogDifference(const Case& facts, CallAspect aspect, std::string_view cause, RuleAnswer& answer);

// A rank that waits in another call than its peers, and has already enqueued the next one, left theirs out.
void JudgeWatchdogSkip(const Case& facts, std::string_view cause, RuleAnswer& answer);

// The call of one side was made by a thread beside the main one: the threads of each rank took turns differently.
void JudgeWatchdogThreads(const Case& facts, std::string_view cause, RuleAnswer& answer);

}  // namespace tacet
