// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "model/timeline.h"

namespace tacet {

// A rank may have left several traces: a profiler that records every hundredth step writes a file each time. Those that
// follow each other in time and mark their steps become one; of those that record the same time the one with most GPU
// work stays. Says what it did. `timelines` are sorted by rank; the sources of the remarks are the files.
void JoinTracesOfOneRank(std::vector<Timeline>& timelines, std::vector<Diagnostic>& diagnostics);

// Puts the events of `later` behind those of `first`; indices and names are made to fit. Its devices are taken to be
// the same.
void AppendTimeline(Timeline& first, Timeline&& later);

}  // namespace tacet
