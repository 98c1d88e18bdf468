// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// A file system that is full, or nearly so, by the rows of df alone: /dev/shm, or another one. Nothing says that the
// job met it.
std::optional<Finding> FullSpaceFinding(const Case& facts, bool shared_memory);

}  // namespace tacet
