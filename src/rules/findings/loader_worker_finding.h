// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// A data loader's worker was killed: a child of the rank, which lives to raise an error.
void JudgeKilledLoaderWorker(const Case& facts, RuleAnswer& answer);

}  // namespace tacet
