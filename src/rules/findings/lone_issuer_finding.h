// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// No calls are recorded, and by the counters that the watchdogs print one rank alone has issued what it waits in. That
// blames nobody: it may have issued one call too many, or hold up the others, or be held up by them.
void TellLoneIssuer(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
