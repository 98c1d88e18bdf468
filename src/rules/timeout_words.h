// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/timeout_census.h"

namespace tacet {

// "all_reduce #1580"; "an operation that the log does not name" where the line is cut before it.
std::string TimedOutCallWords(const TimedOutCall& call);

// "ranks 0, 2 and 4 timed out in all_reduce #1580 after 10 min, rank 7 in all_reduce #64: different groups, or rank 7
// is behind; no line is from rank 1".
std::string TimeoutWords(const TimeoutCensus& census);

}  // namespace tacet
