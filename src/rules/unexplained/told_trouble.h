// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// The first sentence of this kind in the text around the log; null where there is none.
const Event* FindToldWords(const Incident& incident, EventKind kind);

// The text around the log says that the job is slow, or that it stops.
bool IsTroubleTold(const Incident& incident);

// Whoever pasted the log says that the job is slow, or that it stops, and the lines show no fault: the answer keeps
// what the lines show, says whose words these are, and is never "healthy".
void AddToldTrouble(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
