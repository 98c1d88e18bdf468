// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "rules/diagnosis.h"

namespace tacet {

// Where waiting ends is known, why is not: the ranks are suspects. Puts that finding first; false where nobody is
// suspected.
bool AddSuspects(const Case& facts, Diagnosis& diagnosis);

// Where no call is recorded a report or the watchdogs may still tell the operation. Empty where nothing does.
std::string ToldOperationWords(const Case& facts);
// The one in which all watchdogs that report a timeout were waiting.
std::optional<OperationRef> ToldOperation(const Incident& incident);

}  // namespace tacet
