// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// Several processes ended by the same fault of their own (SIGSEGV, SIGBUS, SIGILL, SIGFPE), and no clock tells which
// was first: they have the fault in common, and none of them is to blame for the others.
void JudgeCommonEnd(const Case& facts, RuleAnswer& answer);

}  // namespace tacet
