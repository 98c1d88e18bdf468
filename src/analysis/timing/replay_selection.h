// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/pipeline_trace.h"

namespace tacet {

// The part of a timeline that can be replayed: data-parallel ranks of which all stages were recorded, numbered without
// gaps.
struct ReplaySelection {
  PipelineTrace trace;
  std::vector<int32_t> dp_ranks;     // of the selection -> as recorded
  int32_t recorded_dp_size = 0;      // largest recorded rank + 1
  std::vector<std::string> missing;  // "data-parallel rank 3", "stage 2 of data-parallel rank 1"
};

ReplaySelection SelectForReplay(const PipelineTrace& trace);

}  // namespace tacet
