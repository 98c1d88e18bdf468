// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/lone_witness.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/process/stopped_heartbeat.h"
#include "analysis/process/testimony.h"

namespace tacet {
namespace {

bool WaitsInAStandstill(const StackReading& reading) {
  return reading.place == StackReading::Place::communication || reading.place == StackReading::Place::device_wait ||
         (reading.in_library && reading.whole);
}

// A watchdog fired, or gloo, which has none, gave up waiting.
bool TimeWasUp(const Scene& scene) {
  const auto& ranks = scene.analyses.life.ranks;
  return scene.analyses.outcome.hangs() || scene.analyses.end.looked_at ||
         std::any_of(ranks.begin(), ranks.end(), [](const auto& one) { return one.second.gloo_timeout != nullptr; });
}

// Where most ranks stand at one line of the program: C calls have no Python frame, so they may wait there for the GPU
// or in a collective.
std::string_view PlaceOfMost(const Scene& scene) {
  std::map<std::string_view, size_t> places;
  for (const auto& [rank, reading] : scene.stacks)
    if (reading->place == StackReading::Place::host && !reading->certain && !WaitsForALock(scene.incident, *reading))
      ++places[reading->where];
  for (const auto& [where, ranks] : places)
    if (ranks >= 2 && ranks * 2 > scene.stacks.size()) return where;
  return {};
}

// A circle of waits or calls that differ: a better answer than any lone witness has.
bool CallsTellMore(const Scene& scene) {
  return std::any_of(scene.analyses.sources.begin(), scene.analyses.sources.end(), [](const SourceAnalysis& source) {
    return !source.waits.cycles.empty() || !source.differences.empty();
  });
}

// What its own output says of the end of a rank that only others' reports name.
void ClaimByEnd(const Scene& scene, const RankLife& life, std::vector<Claim>& claims) {
  ClaimByOwnOutput(life, claims);
  if (life.vanished)
    Say(claims, Liveness::gone, Strength::strong,
        "all its files end without a message, and its peers lost the connection");
  else if (scene.EndedFirst(life))
    Say(claims, Liveness::gone, Strength::proof, "its process ended on its own, before any other rank gave up",
        life.exited);
  // A monitor that still spoke tells of a living process, not of where it is: it may wait in another operation.
}

// Nobody's calls are recorded, but somebody who looked saw the process stopped or gone, while others wait by their
// stacks. A process that a list shows as stopped or dead is waited for, whatever the others left.
void FindBySight(const Scene& scene, StandstillView& view) {
  const bool hangs = scene.analyses.outcome.hangs();
  const bool others_wait = hangs && std::any_of(scene.stacks.begin(), scene.stacks.end(),
                                                [](const auto& one) { return WaitsInAStandstill(*one.second); });
  for (const Silence& silence : scene.analyses.silences) {
    const bool by_list = !silence.pulse && (silence.lasts() || hangs);
    if (!others_wait && !by_list) continue;
    const RankLife* life = scene.analyses.life.Of(silence.rank);
    if (!silence.sight || (!silence.frozen() && !silence.dead()) || (life && IsExplained(*life))) continue;
    Standstill& still = view.ranks.emplace_back();
    still.rank = silence.rank;
    still.silence = &silence;
    ClaimByHeartbeat(silence, still.claims);
    Settle(still);
  }
}

// Everybody issued the same, but one rank fell silent in the middle of it: its transfers stand still.
void FindBySilence(const Scene& scene, StandstillView& view) {
  if (!scene.analyses.outcome.hangs()) return;
  if (CallsTellMore(scene)) return;
  for (const auto& [rank, life] : scene.analyses.life.ranks) {
    if (!scene.IsOnlySilentRank(rank)) continue;
    Standstill& still = view.ranks.emplace_back();
    still.rank = rank;
    ClaimByMissingStack(still.claims);
    Settle(still);
  }
}

// Nobody's calls are recorded, but somebody's watchdog fired: the rank that is not waiting while all others are.
void FindByStackAlone(const Scene& scene, StandstillView& view) {
  if (!TimeWasUp(scene) || scene.stacks.empty()) return;
  if (CallsTellMore(scene)) return;
  std::vector<const StackReading*> outside;
  // A rank whose own time was up waits in an operation, whether or not somebody took its stack.
  size_t waiting = 0;
  for (const auto& [rank, life] : scene.analyses.life.ranks)
    waiting += life.timeout != nullptr && !scene.stacks.contains(rank);
  if (scene.stacks.size() + waiting < 3 && scene.stacks.size() < 2) return;
  const std::string_view most = scene.analyses.end.looked_at ? PlaceOfMost(scene) : std::string_view();
  for (const auto& [rank, reading] : scene.stacks) {
    const RankLife* life = scene.analyses.life.Of(rank);
    if (scene.stacks.size() < 2 && life && life->timeout) continue;  // it has issued what it waits in
    const bool of_most = !most.empty() && reading->where == most;
    if (reading->place == StackReading::Place::host && reading->whole && !of_most) outside.push_back(reading);
    waiting += WaitsInAStandstill(*reading) || of_most;
  }
  // Who waits in an operation by its own record was caught at another moment, and so were all stacks. The ends of
  // sends and receives get lost in boxes.
  const bool stale = std::any_of(outside.begin(), outside.end(), [&](const StackReading* reading) {
    return std::any_of(scene.analyses.sources.begin(), scene.analyses.sources.end(), [&](const SourceAnalysis& source) {
      const auto own = source.waits.blocked_in.find(reading->rank);
      return own != source.waits.blocked_in.end() &&
             (source.source != CallSource::black_box || !own->second->has(kPointToPoint));
    });
  });
  if (stale) return;
  // However many they are: those who are in one lock together are held up there, and who communicates waits for them.
  const bool in_a_lock = waiting > 0 && std::all_of(outside.begin(), outside.end(), [&](const StackReading* reading) {
                           return reading->where == outside.front()->where && WaitsForALock(scene.incident, *reading);
                         });
  if (outside.empty() || (!in_a_lock && outside.size() * 2 > waiting)) return;
  for (const StackReading* reading : outside) {
    Standstill& still = view.ranks.emplace_back();
    still.rank = reading->rank;
    still.by_stack_alone = true;
    if (const RankLife* life = scene.analyses.life.Of(reading->rank)) still.alive = life->asked_to_dump;
    ClaimByHostStack(*reading, still.claims);
    Settle(still);
  }
}

// The job hangs, and the kernel says that few of its processes are blocked inside it.
void FindByKernel(const Scene& scene, StandstillView& view) {
  if (!scene.analyses.outcome.hangs()) return;
  if (CallsTellMore(scene)) return;
  for (const auto& [rank, life] : scene.analyses.life.ranks)
    if (life.hung_task && !IsExplained(life) && !life.timeout) {
      Standstill& still = view.ranks.emplace_back();
      still.rank = rank;
      ClaimByKernel(*life.hung_task, still.claims);
      Settle(still);
    }
  if (view.ranks.size() * 2 > scene.analyses.life.ranks.size()) view.ranks.clear();
}

// No record shows it, but RAS or PyTorch's own report names who lags.
void FindByReport(const Scene& scene, StandstillView& view) {
  const auto world =
      std::max(static_cast<size_t>(std::max<int64_t>(scene.incident.world_size, 1)), scene.analyses.life.ranks.size());
  if (scene.analyses.told.empty() || !scene.analyses.outcome.may_hang()) return;
  // Who reports is somebody else: where nothing tells how many there are, the named are not all.
  const auto& ranks = scene.analyses.life.ranks;
  std::set<Rank> named;
  for (const ToldLaggard& told : scene.analyses.told) named.insert(told.rank);
  const bool all_named =
      std::all_of(ranks.begin(), ranks.end(), [&](const auto& one) { return named.contains(one.first); });
  const bool size_known = scene.incident.world_size > 0 && !all_named;
  if (size_known && scene.analyses.told.size() * 2 > world) return;
  if (CallsTellMore(scene)) return;
  // Numbers of sends and collectives are not one count: who waits in a send or receive of its own is behind nobody.
  const auto waits_itself = [&](Rank rank) {
    return std::any_of(scene.analyses.sources.begin(), scene.analyses.sources.end(),
                       [&](const SourceAnalysis& source) { return source.waits.blocked_in.contains(rank); });
  };
  for (const ToldLaggard& told : scene.analyses.told) {
    if (waits_itself(told.rank)) continue;
    Standstill& still = view.ranks.emplace_back();
    still.rank = told.rank;
    still.told = &told;
    const auto stack = scene.stacks.find(told.rank);
    if (stack != scene.stacks.end() && stack->second->place == StackReading::Place::host &&
        !scene.IsWhereOthersWait(told.rank)) {
      SayByStack(still.claims, *stack->second, HostPlace::own_code, Strength::strong,
                 "its stack is not in a collective");
    } else if (const RankLife* life = scene.analyses.life.Of(told.rank)) {
      still.alive = life->asked_to_dump;
      ClaimByEnd(scene, *life, still.claims);
    }
    Settle(still);
    for (const Rank rank : told.waiters) view.waiters.push_back(rank);
  }
}

}  // namespace

void FindByLoneWitness(const Scene& scene, StandstillView& view) {
  for (const auto find : {FindByStackAlone, FindBySight, FindBySilence, FindByKernel, FindByReport})
    if (view.ranks.empty()) find(scene, view);
}

}  // namespace tacet
