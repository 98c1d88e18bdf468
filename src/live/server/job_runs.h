// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "live/agent/box_state.h"

namespace tacet {

// The boxes of one run among those that carry a job's name, by their index. The name may have been used before
// (torchrun starts anew, old boxes stay) or be used twice at this moment (TACET_JOB, or none at all): then the same
// rank is there twice, in processes that share no communicator. `comm` says which run is meant; 0: the one with most
// live processes. Boxes that share nothing with it and take no rank of it are taken along.
std::vector<size_t> FindRun(const std::vector<const BoxState*>& boxes, uint64_t comm);

}  // namespace tacet
