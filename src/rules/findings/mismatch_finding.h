// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// The one difference that came first, over all groups and all kinds of record; null when ranks agree everywhere.
const CallDifference* FirstDifferenceOf(const Case& facts);

// What the rules about ranks that issue different things share: fires when the first difference is of this aspect (and
// not better read as a skipped or extra call), or when TORCH_DISTRIBUTED_DEBUG=DETAIL reported one of this aspect.
RuleAnswer JudgeMismatch(const Case& facts, CallAspect aspect, std::string_view cause);

// Whether the job hung, crashed, or went on with wrong numbers after ranks disagreed.
Status StatusAfterDisagreement(const Case& facts);

}  // namespace tacet
