// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "live/box_state.h"

namespace tacet {

// A group of one job in which operations are in flight and nothing has moved for longer than is normal.
struct HangSuspicion {
  std::string job;
  uint64_t comm = 0;
  std::string group;              // the communicator's name, may be empty
  OpKind kind = OpKind::unknown;  // of the oldest operation in flight
  uint64_t seq = 0;
  int64_t still_ns = 0;  // nothing has moved for so long
  int64_t limit_ns = 0;  // so much would have been normal
  int64_t since_wall_ns = 0;
  int32_t waiting = 0, members_seen = 0, size = -1;
  std::vector<int32_t> lost_ranks;  // whose process is gone without having said so
};

}  // namespace tacet
