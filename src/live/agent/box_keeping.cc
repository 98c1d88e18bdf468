// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_keeping.h"

namespace tacet {

std::vector<std::string> BoxKeeping::FindExpired(const HostState& state, const std::set<std::string>& evidence) const {
  std::vector<std::string> expired;
  for (const BoxState& box : state.boxes) {
    // Of a pod that the agent cannot look into only the heartbeat tells.
    const bool unseen =
        box.sight == ProcessSight::unknown && box.same_boot && (box.ended || box.heartbeat_interval_ns > 0);
    const bool over = box.trouble.empty() && (HasEnded(box.sight) || unseen);
    if (!over || box.suspected || evidence.contains(box.name)) continue;
    // A heartbeat comes every half second, so the last one is when the process ended.
    if (box.heartbeat_age_ns > (box.ended ? rule_.orderly_ns : rule_.other_ns)) expired.push_back(box.name);
  }
  return expired;
}

}  // namespace tacet
