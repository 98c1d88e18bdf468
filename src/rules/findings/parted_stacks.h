// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Nobody's calls are recorded, but there is a stack of every rank, taken when the job stood still: each is in an
// operation with the others, and not all in the same one.
std::optional<Finding> PartedStacksFinding(const Case& facts);

}  // namespace tacet
