// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// NCCL's own RAS, which asks all processes of a job, counts some of them as dead.
void JudgeRasDead(const Case& facts, RuleAnswer& answer);

}  // namespace tacet
