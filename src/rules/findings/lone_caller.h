// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// By the stacks of all ranks of a job that stands still one rank alone is in a collective, and all others are at one
// other place, where they wait for the GPU or may do so: the call is most likely that rank's alone.
std::optional<Finding> LoneCallerFinding(const Case& facts);

// One rank printed an error, went on after it, and is now elsewhere than all others: it most likely left out the calls
// that the others made.
std::optional<Finding> WentOnFinding(const Case& facts);

}  // namespace tacet
