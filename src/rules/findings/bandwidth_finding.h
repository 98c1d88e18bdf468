// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// What benchmarks prove of one cause: the worst as a finding, the others as its evidence.
RuleAnswer AnswerFromBenchmarks(const Case& facts, std::string_view cause);

}  // namespace tacet
