// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include "analysis/timeouts/watchdog_waits.h"

namespace tacet {

// "NET/Socket : message truncated": what one rank sends is not what another one expects.
static const Event* FindMisfit(const Incident& incident) {
  for (const Event& event : incident.events) {
    const std::string_view id = event.As<Warning>().id;
    if (event.kind == EventKind::nccl_warning && (id == "message-truncated" || id == "ib-size-mismatch")) return &event;
  }
  return nullptr;
}

// Transfers between two ranks are counted as work and not as collectives: where a rank has completed the number that it
// waits in, the two are not one count.
static bool IsOneCount(const WatchdogGroup& group) {
  return std::all_of(group.waits.begin(), group.waits.end(), [&](const auto& one) {
    const auto counters = group.at_signal.find(one.first);
    return counters == group.at_signal.end() ||
           counters->second->template As<WorkCounters>().last_completed < one.second->seq;
  });
}

// The waits of all ranks but one: that one waits in nothing, or in a call far behind that of the others.
static std::map<Rank, const Event*> WaitsOfMost(const WatchdogGroup& group, const std::vector<Rank>& all, Rank& left) {
  std::map<Rank, const Event*> waits(group.waits.begin(), group.waits.end());
  for (const Rank rank : all)
    if (!waits.contains(rank)) left = rank;
  if (waits.size() != all.size() || waits.size() < 3) return waits;
  const auto furthest = std::max_element(waits.begin(), waits.end(),
                                         [](const auto& a, const auto& b) { return a.second->seq < b.second->seq; });
  // Whoever began to wait when the time of the others was up came late, and completed what they had given up.
  const Event& last = *furthest->second;
  const int64_t waited = last.As<WatchdogTimeout>().elapsed_ms;
  if (last.wall_ns == kNoTime || waited < 0) return waits;
  const int64_t began = last.wall_ns - waited * 1'000'000;
  for (const auto& [rank, wait] : waits)
    if (wait != furthest->second && (wait->wall_ns == kNoTime || wait->wall_ns < began)) return waits;
  left = furthest->first;
  waits.erase(furthest);
  return waits;
}

WatchdogStranger FindWatchdogStranger(const Incident& incident) {
  constexpr size_t kFewestAlike = 2;
  for (const WatchdogGroup& group : ReadWatchdogGroups(incident)) {
    const std::vector<Rank> all = incident.AllRanks();
    if (!group.whole_job) continue;
    WatchdogStranger found;
    const std::map<Rank, const Event*> waits = WaitsOfMost(group, all, found.rank);
    if (waits.size() < kFewestAlike || waits.size() + 1 != all.size()) continue;
    const Event& wait = *waits.begin()->second;
    const bool alike = std::all_of(waits.begin(), waits.end(), [&](const auto& one) {
      return one.second->seq == wait.seq && one.second->op == wait.op &&
             (!HasEvenSizes(wait.op) || ElementsOf(*one.second) == ElementsOf(wait));
    });
    const auto counters = group.at_signal.find(found.rank);
    if (!alike || counters == group.at_signal.end() || !IsOneCount(group)) continue;
    const auto& told = counters->second->As<WorkCounters>();
    if (told.last_enqueued < wait.seq) continue;  // it came late, and nothing else is known of it
    // Whoever waits in a later one itself has left it behind for sure.
    // A watchdog that tells it long after the limit found a call that ended late: whoever made it wait may have come.
    const bool late = std::any_of(waits.begin(), waits.end(), [](const auto& one) {
      const auto& limit = one.second->template As<WatchdogTimeout>();
      return limit.timeout_ms > 0 && limit.elapsed_ms / 3 > limit.timeout_ms / 2;
    });
    if (late && group.waits.contains(found.rank)) continue;
    const bool passed = group.waits.contains(found.rank) && told.last_completed > wait.seq;
    const bool completed = passed || (told.last_completed >= wait.seq && EndsForAllAtOnce(wait.op));
    found.misfit = FindMisfit(incident);
    if (!completed && !found.misfit) continue;
    if (completed) found.misfit = nullptr;
    for (const auto& [rank, one] : waits) found.others.push_back(rank);
    found.wait = &wait;
    found.counters = counters->second;
    return found;
  }
  return {};
}

}  // namespace tacet
