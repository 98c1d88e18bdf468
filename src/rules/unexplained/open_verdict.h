// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// No rule names a cause: says what happened to the job all the same, whether it is healthy, and what is missing to tell
// more.
void SettleWithoutFinding(const Case& facts, Diagnosis& diagnosis);

// Every rank left files, and none of its logs is cut short.
bool SawAllToTheEnd(const Case& facts);

}  // namespace tacet
