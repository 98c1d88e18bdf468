// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rules/rule.h"

namespace tacet {

// A launcher could not start processes on another node over ssh.
bool IsOfSsh(const Event* event);

// Fills the finding with what these events tell of it; leaves it alone where none is of ssh.
void TellSsh(const std::vector<const Event*>& events, Finding& finding);

}  // namespace tacet
