// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// The line by which a job, its launcher or its scheduler says that it came to its end: every output that is here holds
// one, and nothing bad comes after it. nullptr where that is not so.
const Event* FindToldFinish(const Case& facts, const Diagnosis& diagnosis);

void SettleFinished(const Case& facts, const Event& finish, Diagnosis& diagnosis);

}  // namespace tacet
