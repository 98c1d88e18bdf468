// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analysis/calls/group_calls.h"
#include "analysis/calls/p2p_match.h"

namespace tacet {

// Between two collectives of all, a pipeline's ranks exchange what belongs to the steps between: on every link as many
// messages were sent as received when the collective is issued. A rank that left a step out has fewer on all its links.
//     before all_reduce #3: 0->1 sent 56, received 48; 1->2 sent 48, received 56; 2->3 sent 56, received 56: rank 1
struct ShortExchange {
  Rank rank;
  const Call* collective = nullptr;  // the first at which the counts differ, as the rank issued it
  const CallStream* stream = nullptr;
  const Call* message = nullptr;  // a peer's first one that has no counterpart before that collective
  const CallStream* peer_stream = nullptr;
  Rank peer;
  size_t own = 0, theirs = 0;  // messages of that link
};
std::optional<ShortExchange> FindShortExchange(const std::vector<GroupCalls>& groups,
                                               const std::vector<P2pLink>& links);

}  // namespace tacet
