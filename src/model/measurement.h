// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/source_ref.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// One finished operation with its measured time (NCCL Inspector). Unlike a Call it says nothing of order or state.
struct Measurement {
  uint32_t speaker = 0;
  Rank rank;                        // filled by the assembly
  uint64_t comm = 0;
  int32_t comm_size = -1;
  GroupRank group_rank;
  OpKind op = OpKind::unknown;
  GroupRank peer;
  int64_t seq = -1;                 // number per communicator and kind
  int64_t bytes = -1;
  int64_t duration_ns = -1;
  int64_t start_wall_ns = kNoTime;  // of the GPU kernel, as the host noticed it
  int64_t finish_wall_ns = kNoTime;
  int64_t enter_wall_ns = kNoTime;
  double bus_gbs = -1;
  SourceRef source;
  bool host_timed = false;          // duration by the host's clock, because the GPU's was not to be had
  bool enter_is_estimate = false;   // only between which two writes of the record it lies is known
};

}  // namespace tacet
