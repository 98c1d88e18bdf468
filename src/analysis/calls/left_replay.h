// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analysis/calls/wait_graph.h"

namespace tacet {

// One rank ran a CUDA graph less often than its peers and went on: it waits in a call of the same communicator, while
// they hang in a replay of their own.
//     ranks 1-3: replay #26 begun, call #7 begun       rank 0: replay #25 ended, call #7 begun
struct LeftReplay {
  Rank rank;
  const Call* replay = nullptr;  // of a peer
  const CallStream* stream = nullptr;
  const Call* waits_in = nullptr;  // the rank's own
  const CallStream* own_stream = nullptr;
  int64_t own_replays = 0;
};
std::optional<LeftReplay> FindLeftReplay(const Incident& incident, const std::vector<GroupCalls>& groups);

}  // namespace tacet
