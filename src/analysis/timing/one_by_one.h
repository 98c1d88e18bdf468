// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// Operations of a communicator run one after the other on a rank. Lengths that do not fit between the first start and
// the last end were noticed late, or hold what they waited for the operation before.
bool FitOneByOne(const std::vector<CollectiveRound>& rounds);

// The rounds with lengths that fit. An operation on a stream of its own (PyTorch runs blocking ones on that of the
// compute) is measured from when its stream came to it, and its kernel begins when the operation before it on the
// communicator has ended: of its length only that counts which lies behind that end. Else one lateness shows in both.
// For records without starts.
std::vector<CollectiveRound> RunOneByOne(std::vector<CollectiveRound> rounds);

}  // namespace tacet
