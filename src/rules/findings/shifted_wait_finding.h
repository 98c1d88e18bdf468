// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// A rank that the others wait for, by figures whose names say nothing: added where the cause is the fitting one.
void TellShiftedWait(const Case& facts, std::string_view cause, RuleAnswer& answer);

}  // namespace tacet
