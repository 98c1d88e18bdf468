// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// torchrun restarted the processes of its node after a failure, and the restart failed as well.
struct FailedRestart {
  const Event* error = nullptr;  // what was raised after the restart
  const Event* end = nullptr;    // the process that torchrun then names
};

// After the error of the first attempt. Only of jobs on one node: elsewhere the agents of several nodes may write into
// one output, and the second failure be of the same attempt.
std::optional<FailedRestart> FindFailedRestart(const Case& facts, const Event& first);

// Adds the sentence, the evidence and the step.
void TellFailedRestart(const FailedRestart& restart, Finding& finding);

// torchrun's "first observed failure" is of another rank, of which no error is here; nullptr: it is not.
const Event* FirstFailureElsewhere(const Case& facts, const std::vector<Rank>& ranks);

}  // namespace tacet
