// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// What to do about a process that ended in this way: what fits its signal or code, and nothing about others.
std::vector<std::string> EndAdvice(const Event& end);

}  // namespace tacet
