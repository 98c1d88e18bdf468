// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// Where waiting ends is known, why is not: the ranks are suspects. Puts that finding first; false where nobody is
// suspected.
bool AddSuspects(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
