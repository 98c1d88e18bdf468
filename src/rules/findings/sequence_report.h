// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// PyTorch's DETAIL check found equal calls with different numbers: a rank left a collective out (`skipped`), or issued
// one that the others did not. Where two ranks alone are told of nobody knows which; that is answered as skipped.
void JudgeSequenceReports(const Case& facts, bool skipped, std::string_view cause, RuleAnswer& answer);

}  // namespace tacet
