// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/standstill.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "analysis/process/lone_witness.h"
#include "analysis/process/scene.h"
#include "analysis/process/stopped_heartbeat.h"
#include "analysis/process/testimony.h"
#include "analysis/process/wait_ends.h"

namespace tacet {
namespace {

// A rank on record that waits in nothing and has not ended: it may be what a rank without files waits for.
bool SomebodyIdles(const Scene& scene) {
  return std::any_of(scene.incident.streams.begin(), scene.incident.streams.end(), [&](const CallStream& stream) {
    const RankLife* life = scene.analyses.life.Of(stream.rank);
    if (!life || !life->has_dump || life->finished || stream.calls.empty()) return false;
    return std::none_of(scene.analyses.sources.begin(), scene.analyses.sources.end(),
                        [&](const SourceAnalysis& source) { return source.waits.blocked_in.contains(stream.rank); });
  });
}

void DropAbsentCrowd(const Scene& scene, StandstillView& view) {
  const auto world = static_cast<size_t>(std::max<int64_t>(scene.incident.world_size, 1));
  const auto is_absent = [](const Standstill& s) { return s.kind == StandstillKind::absent; };
  const auto absent = static_cast<size_t>(std::count_if(view.ranks.begin(), view.ranks.end(), is_absent));
  const bool others = absent < view.ranks.size();
  // Whoever was started leaves a log: where logs were collected, a rank without any was not collected.
  const bool logs = scene.analyses.life.nccl_logs + scene.analyses.life.outputs > 0;
  const bool keep = others ? !logs && absent * scene.incident.patience.nearly_all_in <= world &&
                                 world >= scene.incident.patience.nearly_all_in
                           : absent * scene.incident.patience.few_absent_in <= world && !SomebodyIdles(scene);
  if (!keep) std::erase_if(view.ranks, is_absent);
}

// When most ranks lag behind a few, these went on after the others had given up, and nothing more tells why.
void DropLaggingCrowd(const Scene& scene, StandstillView& view) {
  const auto is_unclear = [](const Standstill& s) { return s.kind == StandstillKind::unclear; };
  if (!std::all_of(view.ranks.begin(), view.ranks.end(), is_unclear)) return;
  const size_t absent = scene.analyses.life.ranks.size() - scene.analyses.life.Present();
  const bool crowd = view.ranks.size() > 1 && (view.ranks.size() + absent) * 2 >= scene.analyses.life.ranks.size();
  // Logs tell nothing of ends: beside a rank whose log is missing, one that is a few calls behind proves nothing.
  const auto by_log = [](const Standstill& s) {
    return s.root && s.root->stream && s.root->stream->source == CallSource::nccl_log;
  };
  const bool logs_with_gaps = scene.analyses.life.nccl_logs < static_cast<int>(scene.analyses.life.ranks.size()) &&
                              std::any_of(view.ranks.begin(), view.ranks.end(), by_log);
  const bool by_absence = std::all_of(view.ranks.begin(), view.ranks.end(),
                                      [](const Standstill& s) { return s.root && s.root->kind == RootKind::silent; });
  if (crowd || logs_with_gaps || (by_absence && SomebodyIdles(scene))) view.ranks.clear();
}

// Whoever has been in an operation for long waits in it, although all its partners have issued it: behind a GPU that
// does not go on, senders and receivers further up a pipeline are in theirs together.
void AddThoseInOperations(const Scene& scene, std::set<Rank>& waiters) {
  const int64_t lasting = scene.incident.patience.overdue_ns;
  for (const SourceAnalysis& source : scene.analyses.sources) {
    int64_t latest = kNoTime, earliest = kNoTime;  // that the records know; since when somebody is in an operation
    for (const auto& [rank, call] : source.waits.blocked_in) {
      const CallStream* stream = scene.incident.StreamOf(rank, source.source);
      if (stream && stream->captured_wall_ns != kNoTime && (latest == kNoTime || latest < stream->captured_wall_ns))
        latest = stream->captured_wall_ns;
      if (call->enter_wall_ns != kNoTime && (earliest == kNoTime || call->enter_wall_ns < earliest))
        earliest = call->enter_wall_ns;
    }
    for (const auto& [rank, call] : source.waits.blocked_in) {
      const CallStream* stream = scene.incident.StreamOf(rank, source.source);
      if (!stream || !stream->knows_finish || scene.IsMomentary(call, stream)) continue;
      // A record may end with its last call and know nothing of the time since: only beside older ones it is young.
      const bool timed = latest != kNoTime && call->enter_wall_ns != kNoTime;
      const bool young =
          timed && latest - call->enter_wall_ns < lasting && call->enter_wall_ns - earliest > 2 * lasting;
      if (!young) waiters.insert(rank);
    }
  }
}

// By its stack it is in communication: where it is known who stands still, that one waits.
bool IsInCommunication(const Scene& scene, Rank rank) {
  const auto stack = scene.stacks.find(rank);
  return stack != scene.stacks.end() && stack->second->place == StackReading::Place::communication;
}

void ChooseOperation(const Scene& scene, StandstillView& view) {
  const auto is_open = [](const Standstill& still) {
    return still.kind == StandstillKind::unclear || still.kind == StandstillKind::absent;
  };
  const bool settled = std::any_of(view.ranks.begin(), view.ranks.end(), [&](const Standstill& still) {
    return !is_open(still) && still.root && still.root->call;
  });
  std::set<Rank> waiters, guilty;
  for (const Standstill& still : view.ranks)
    (settled && is_open(still) && IsInCommunication(scene, still.rank) ? waiters : guilty).insert(still.rank);
  if (!guilty.empty()) AddThoseInOperations(scene, waiters);
  for (const SourceAnalysis& source : scene.analyses.sources)
    for (const BlockedOperation& operation : source.waits.operations)
      if (!scene.IsMomentary(operation.call, operation.stream))
        waiters.insert(operation.waiters.begin(), operation.waiters.end());
  for (const Standstill& still : view.ranks) {
    const WaitRoot* root = still.root;
    // Who only lags may do so behind the one that stands still: the operation is one that this one owes.
    if (!root || !root->call || (settled && is_open(still))) continue;
    const bool earlier =
        !view.operation || (root->call->enter_wall_ns != kNoTime && view.operation->enter_wall_ns != kNoTime &&
                            root->call->enter_wall_ns < view.operation->enter_wall_ns);
    if (!earlier) continue;
    view.operation = root->call;
    view.stream = root->stream;
    view.group = root->group;
  }
  ChooseOperationOfStoppedHeartbeats(scene.incident, scene.analyses, view, waiters);
  waiters.insert(view.waiters.begin(), view.waiters.end());
  view.waiters.clear();
  for (const Rank rank : waiters)
    if (!guilty.contains(rank)) view.waiters.push_back(rank);
}

}  // namespace

void Settle(Standstill& still) {
  still.state = JoinClaims(still.claims);
  const bool issued = still.root && HasIssued(still.root->kind);
  const ProcessState& state = still.state;
  size_t by = SIZE_MAX;
  const auto decide = [&](StandstillKind kind, size_t claim) {
    still.kind = kind;
    by = claim;
  };
  if (state.process.value == Liveness::gone)
    decide(still.claims[state.process.by].told_why ? StandstillKind::explained : StandstillKind::dead,
           state.process.by);
  else if (state.process.value == Liveness::stopped)
    decide(StandstillKind::frozen, state.process.by);
  else if (state.host.value == HostPlace::inside_nccl)
    decide(StandstillKind::host, state.host.by);
  else if (issued && state.gpu.value != GpuPlace::unknown)
    decide(StandstillKind::gpu, state.gpu.by);
  else if (!issued && state.host.value == HostPlace::own_code)
    decide(StandstillKind::host, state.host.by);
  else if (!issued && state.host.value == HostPlace::waiting_for_gpu)
    decide(StandstillKind::gpu, state.host.by);
  else if (!issued && state.host.value == HostPlace::in_kernel)
    decide(StandstillKind::frozen, state.host.by);
  else if (state.process.value == Liveness::unseen)
    decide(StandstillKind::absent, state.process.by);
  else
    still.kind = StandstillKind::unclear;
  const Claim none{};
  const Claim& decisive = by == SIZE_MAX ? none : still.claims[by];
  still.stack = decisive.stack;
  still.closing = decisive.closing;
  still.inside = decisive.inside;
  still.hung_task = state.host.value == HostPlace::in_kernel ? decisive.event : nullptr;
}

StandstillView FindStandstills(const Incident& incident, const Analyses& analyses) {
  const Scene scene(incident, analyses);
  StandstillView view;
  // Somebody came to the end, and nobody tells of trouble: whoever's files end earlier was not waited for.
  const Outcome& outcome = scene.analyses.outcome;
  if (outcome.somebody_finished && !outcome.hangs() && !outcome.first_failure && !scene.closing) return view;
  const auto roots = FindWaitEnds(scene.incident, scene.analyses);
  view.lasts = scene.Lasts() || std::any_of(roots.begin(), roots.end(),
                                            [&](const auto& root) { return scene.IsFarBehind(*root.second); });
  // Who lost a peer stopped because of it, as long as somebody else lost none.
  const auto lost_a_peer = [&](Rank rank) {
    const RankLife* life = scene.analyses.life.Of(rank);
    return life && life->lost_peer;
  };
  const auto is_here = [&](Rank rank) {
    const RankLife* life = scene.analyses.life.Of(rank);
    return life && life->any();
  };
  const bool somebody_lost_none =
      std::any_of(roots.begin(), roots.end(), [&](const auto& r) { return is_here(r.first) && !lost_a_peer(r.first); });
  for (const auto& [rank, root] : roots) {
    if (somebody_lost_none && lost_a_peer(rank)) continue;
    if (scene.IsConnecting(rank, *root))
      view.connecting.push_back(rank);
    else
      view.ranks.push_back(ReadStandstill(scene, rank, *root));
  }
  // Who is waited for since a moment ago is no reason for a wait that is older; a process that is gone or stopped is
  // told all the same.
  std::erase_if(view.ranks, [&](const Standstill& still) {
    const Liveness process = still.state.process.value;
    return process != Liveness::gone && process != Liveness::stopped && still.root->kind != RootKind::gpu_behind &&
           scene.IsMomentary(still.root->call, still.root->stream);
  });
  // Who crashed over memory that another process took away with it is no reason for anything.
  std::erase_if(view.ranks, [&](const Standstill& still) {
    const RankLife* life = scene.analyses.life.Of(still.rank);
    return still.kind == StandstillKind::unclear && life && life->shared_gpu_error;
  });
  DropAbsentCrowd(scene, view);
  DropLaggingCrowd(scene, view);
  ReadStoppedHeartbeats(scene.incident, scene.analyses, scene.closing, view);
  if (view.ranks.empty()) FindByLoneWitness(scene, view);
  ChooseOperation(scene, view);
  return view;
}

}  // namespace tacet
