// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// One process that nothing ties to a job of several: no rank, no launcher, no word of communication.
bool IsPlainProgram(const Case& facts, const Event& raised);

}  // namespace tacet
