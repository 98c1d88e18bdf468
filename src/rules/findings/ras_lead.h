// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// A RAS report in which a few ranks are ahead of many that it does not name: says so, with the step that tells a moment
// of a running job from a hang. False where there is no such report.
bool SpeakOfRasLead(const Case& facts, Diagnosis& diagnosis);
// A RAS report that lacks the data of a process. False where there is none.
bool SpeakOfRasSilence(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
