// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// A crash that no cause explains: what ended it, and what would show why. Returns the line that tells more than how the
// process ended, if there is one.
const Event* SettleCrash(const Case& facts, const Event* told, Diagnosis& diagnosis);

}  // namespace tacet
