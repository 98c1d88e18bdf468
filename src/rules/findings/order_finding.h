// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// True when the evidence shows that the job stopped or computed nonsense; a rank that merely does more than others in a
// healthy job is nobody's fault.
bool SomethingIsWrong(const Case& facts);

// The earliest divergence of this kind whose odd ranks are few; null when there is none.
const Divergence* FindDivergence(const Case& facts, Divergence::Kind kind);

// The shared finding of the rules for skipped and extra calls.
std::optional<Finding> OrderFinding(const Case& facts, Divergence::Kind kind, CallDifference::Reading reading,
                                    std::string_view cause);

}  // namespace tacet
