// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// Each process's traceback shows where Ctrl-C met it. One that was elsewhere while the others had a collective under
// way is what they waited for, if the job had stopped before; otherwise the places are what can be told.
void AddWhereInterrupted(const Incident& incident, const Event& kill, Finding& finding);

// Ctrl-C met all ranks but one in a barrier, or in the setup, and that one in code of its own: they waited for it.
std::optional<Finding> InterruptedFinding(const Case& facts);

}  // namespace tacet
