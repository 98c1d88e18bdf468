// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// The text says that the job hangs and shows stacks of some processes; nothing else is known of their calls.

// The stacks stand in different collectives.
std::optional<Finding> ToldStacksFinding(const Case& facts);

// One stack is outside of communication, and the text says that the others wait.
std::optional<Finding> AwaitedStackFinding(const Case& facts);

}  // namespace tacet
