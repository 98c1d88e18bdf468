// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rules/rule.h"

namespace tacet {

// What the text says to be set already, or to have been tried in vain, is no first step: it comes last.
void PutTriedStepsLast(const Incident& incident, std::vector<Finding>& findings);

}  // namespace tacet
