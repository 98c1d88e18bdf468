// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// A GPU that failed a test of `dcgmi diag`: a fault of the device, whether or not a job was harmed by it. Adds nothing
// where none failed.
void JudgeFailedChecks(const Case& facts, RuleAnswer& answer);

// "no test of dcgmi diag failed (9 passed)"; empty where there is no such table.
std::string CheckWords(const Incident& incident);

}  // namespace tacet
