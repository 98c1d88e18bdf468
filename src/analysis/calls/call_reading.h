// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/calls/call_difference.h"
#include "analysis/calls/group_calls.h"

namespace tacet {

// How the order of the odd one goes on behind a difference: a call left out, one too many, or another in its place.
void ReadCallContinuation(const GroupCalls& group, CallDifference& difference);

// Moves a difference to the first call that was too many, where that looked like what the others issued.
void BeginWhereItBegan(const GroupCalls& group, CallDifference& difference);

}  // namespace tacet
