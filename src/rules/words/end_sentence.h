// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// How a job came to its end, by the event that tells it: "rank 3 timed out in all_reduce #812", "process 4121 on gpu17
// exited with code 1".
std::string EndSentence(const Case& facts, const Event& event);

// The last warning of the process before NCCL gave up, which this tool has no word of its own for.
const Event* WarningBehind(const Case& facts, const Event& error);

}  // namespace tacet
