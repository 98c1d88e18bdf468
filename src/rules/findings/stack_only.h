// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// The job hangs, nobody's calls are on record (gloo keeps none), no sign of NCCL is there, and every rank of it has a
// whole stack.
bool OnlyStacksTell(const Case& facts);

// "send" or "recv" where the stack ends in one of them; empty elsewhere.
std::string_view PointToPointCallOf(const Case& facts, const StackReading& reading);

// Inside communication, or in PyTorch's own code, which in a job that stands still waits, too.
bool WaitsByStack(const StackReading& reading);

}  // namespace tacet
