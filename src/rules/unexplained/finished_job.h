// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// Sets the verdict to healthy where the output says that the job came to its end (JobEnd::said) and no finding is above
// a note; says whether it did.
bool SettleFinished(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
