// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analysis/calls/call_difference.h"
#include "analysis/calls/group_calls.h"

namespace tacet {

// A batch, or a member of one, has an order of its own.
bool IsComparable(const Call& call);
// In what two calls differ; nothing where all that is known of both agrees.
std::optional<CallAspect> CompareCalls(const Call& a, const Call& b);
bool SameCall(const Call* a, const Call* b);

// Equal-looking calls from different lines of the program are different calls. Where a call has no stack (DDP's own
// reductions, NCCL's log) nothing speaks against it.
bool KnowCallSites(const Call& a, const Call& b);
bool SameCallAtSite(const Call* a, const Call* b);

bool AllAreRecorded(const GroupCalls& group);
const MemberCalls* MemberOfRank(const GroupCalls& group, Rank rank);

}  // namespace tacet
