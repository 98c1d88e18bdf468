// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// All ranks but one gave up waiting for a key that the program itself puts into the store; that one neither waited nor
// failed: it is the one that had to write it.
std::optional<Finding> AwaitedWriterFinding(const Case& facts);

// One rank of several alone waits for the others of a group that all ranks must create together.
std::optional<Finding> LoneCreatorFinding(const Case& facts);

}  // namespace tacet
