// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// A data loader's worker was killed: a child of the rank, which lives to raise an error.
void JudgeKilledLoaderWorker(const Case& facts, RuleAnswer& answer);

// A child of the rank ended, and the rank, "rank 2" or "a rank", tells of it.
void TellLoaderWorker(const Event& event, const std::string& who, Finding& finding);

}  // namespace tacet
