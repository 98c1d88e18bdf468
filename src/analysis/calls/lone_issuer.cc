// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include "analysis/timeouts/watchdog_waits.h"

namespace tacet {
namespace {

// Counters of the default group as each rank told them first, when somebody's time was up.
std::map<Rank, const Event*> FirstCounters(const Incident& incident) {
  std::map<Rank, const Event*> first;
  for (const Event& event : incident.events) {
    const bool of_job = event.group_name == "0" || event.group_description == "default_pg" || event.group_name.empty();
    if (event.kind == EventKind::dump_signal && of_job && event.rank.known() &&
        event.As<WorkCounters>().last_enqueued >= 0)
      first.try_emplace(event.rank, &event);
  }
  return first;
}

bool IsIdle(const Event& counters) {
  const auto& work = counters.As<WorkCounters>();
  return work.last_enqueued > 0 && work.last_enqueued == work.last_completed;
}

// Sends and receives have numbers of their own.
bool IsCollective(const Event& wait) {
  return wait.op == OpKind::unknown || (wait.op != OpKind::coalesced && !IsPointToPoint(wait.op));
}

}  // namespace

LoneIssuer FindLoneIssuer(const Incident& incident) {
  constexpr size_t kFewestRanks = 3;  // of two nobody knows which of them is right
  const std::map<Rank, const Event*> counters = FirstCounters(incident);
  if (counters.size() < kFewestRanks || counters.size() != incident.AllRanks().size()) return {};
  LoneIssuer found;
  for (const auto& [rank, line] : counters) {
    if (!IsIdle(*line)) {
      if (found) return {};
      found.rank = rank;
      found.own = line;
      continue;
    }
    if (found.theirs && found.theirs->As<WorkCounters>().last_enqueued != line->As<WorkCounters>().last_enqueued)
      return {};
    found.theirs = line;
    found.others.push_back(rank);
  }
  if (!found || !found.theirs) return {};
  const auto &own = found.own->As<WorkCounters>(), &theirs = found.theirs->As<WorkCounters>();
  found.number = theirs.last_enqueued + 1;
  if (own.last_completed != theirs.last_enqueued || own.last_enqueued < found.number) return {};
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::watchdog_timeout) continue;
    // Whoever waits in another group is not idle.
    if (event.rank != found.rank || !IsCollective(event)) return {};
    if (!found.wait && (event.seq < 0 || event.seq == found.number)) found.wait = &event;
  }
  return found;
}

}  // namespace tacet
