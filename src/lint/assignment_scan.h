// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "lint/environment_lint.h"

namespace tacet {

// Assignments of variables of NCCL, PyTorch and the libraries below them, in whatever language the text is. `any` tells
// whether the text assigns anything at all.
std::vector<GivenVariable> ScanAssignments(std::string_view text, size_t most, bool* any);

}  // namespace tacet
