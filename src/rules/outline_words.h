// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// "no line reports a fault: 8 ranks (0-7) print these lines; the last one is '...'": of a log whose lines no reader
// knows. Empty where there is none, or where a line of it is marked as an error.
std::string OutlineWords(const Case& facts);

// A line is printed as its program exits, or tells how it ended: nobody need be asked whether it did.
bool TellsItsEnd(const Incident& incident);

// Sets the verdict to healthy where a line tells of an end with exit code 0 and nothing speaks against it.
void SettleToldEnd(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
