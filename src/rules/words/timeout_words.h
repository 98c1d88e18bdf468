// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/timeouts/timeout_census.h"

namespace tacet {

// "all_reduce #1580"; "an operation that the log does not name" where the line is cut before it.
std::string TimedOutCallWords(const TimedOutCall& call);

// "all_reduce #210", "all_reduce of grads/dense_1"; empty where a report names neither operation nor tensor.
std::string ReportedCallWords(const Event& report);

// The rank that the only one who timed out names as the one it waited for.
Rank AwaitedRank(const TimeoutCensus& census);

// Some timed out in an operation that others have completed: the ranks issue different collectives.
bool HaveDiverged(const TimeoutCensus& census);

// "EXPERT_MODEL_PARALLEL_GROUP", "group 21": that of the call of the most ranks, by the most telling of its names.
std::string GroupInWords(const TimeoutCensus& census);

// "ranks 0, 2 and 4 timed out in all_reduce #1580 after 10 min, rank 7 in all_reduce #64: different groups, or rank 7
// is behind; no line is from rank 1".
std::string TimeoutWords(const Incident& incident, const TimeoutCensus& census);

}  // namespace tacet
