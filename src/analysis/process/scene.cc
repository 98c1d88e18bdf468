// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/scene.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/calls/overdue.h"
#include "analysis/process/stopped_heartbeat.h"

namespace tacet {

// How long a wait has lasted, by the box of the one who waits; -1 where no box tells.
static int64_t WaitAge(const Call* call, const CallStream* stream) {
  if (!call || !stream || stream->source != CallSource::black_box) return -1;
  if (call->enter_wall_ns == kNoTime || stream->captured_wall_ns == kNoTime) return -1;
  return std::max<int64_t>(stream->captured_wall_ns - call->enter_wall_ns, 0);
}

static bool HasOpenSetUp(const Incident& incident) {
  std::map<Rank, int> open;
  for (const Event& event : incident.events) {
    if (event.kind == EventKind::init_started) ++open[event.rank];
    if (event.kind == EventKind::init_completed) --open[event.rank];
  }
  return std::any_of(open.begin(), open.end(), [](const auto& one) { return one.first.known() && one.second > 0; });
}

Scene::Scene(const Incident& job, const Analyses& answers)
    : incident(job), analyses(answers), some_log_ends_in_set_up_(HasOpenSetUp(job)) {
  for (const StackReading& reading : analyses.stacks) stacks.emplace(reading.rank, &reading);
  for (const auto& [rank, life] : analyses.life.ranks) {
    if (!life.lost_peer || ClosedByTheEnd(*life.lost_peer)) continue;
    if (!closing || IsBefore(*life.lost_peer, *closing)) closing = life.lost_peer;
  }
  for (const SourceAnalysis& source : analyses.sources)
    for (const BlockedOperation& operation : source.waits.operations)
      longest_wait_ns_ = std::max(longest_wait_ns_, WaitAge(operation.call, operation.stream));
}

bool Scene::ClosedByTheEnd(const Event& lost) const {
  const Event* timeout = analyses.outcome.first_timeout;
  return timeout && timeout->wall_ns != kNoTime && lost.wall_ns != kNoTime &&
         lost.wall_ns > timeout->wall_ns + incident.patience.clean_up_ns;
}

bool Scene::EndedFirst(const RankLife& life) const {
  if (life.segfault) return true;
  if (!life.exited) return false;
  const Outcome& outcome = analyses.outcome;
  if (outcome.first_timeout && IsBefore(*outcome.first_timeout, *life.exited)) return false;
  if (IsFirstHandEnd(*life.exited)) return true;
  return outcome.first_end == life.exited && outcome.first_timeout && IsBefore(*life.exited, *outcome.first_timeout);
}

bool Scene::IsWhereOthersWait(Rank rank) const {
  const StackReading& own = *stacks.at(rank);
  if (own.certain || own.innermost_user.line == 0) return false;
  return std::any_of(stacks.begin(), stacks.end(), [&](const auto& other) {
    return other.first != rank && !other.second->certain && other.second->innermost_user == own.innermost_user;
  });
}

bool Scene::InCommunication(Rank rank) const {
  const auto stack = stacks.find(rank);
  return stack != stacks.end() && stack->second->place == StackReading::Place::communication;
}

bool Scene::Lasts() const {
  return analyses.outcome.hangs() || std::any_of(analyses.told.begin(), analyses.told.end(),
                                                 [](const ToldLaggard& told) { return !told.momentary; });
}

bool Scene::IsFarBehind(const WaitRoot& root) const {
  if (root.kind != RootKind::not_entered) return false;
  for (const SourceAnalysis& source : analyses.sources) {
    for (const GroupCalls& group : source.groups) {
      if (group.group != root.group) continue;
      size_t own = 0, least = SIZE_MAX;
      for (const MemberCalls& member : group.members) {
        if (member.rank == root.rank)
          own = member.calls.size();
        else
          least = std::min(least, member.calls.size());
      }
      if (least != SIZE_MAX && least >= own + incident.patience.far_behind) return true;
    }
  }
  return false;
}

bool Scene::OthersWait(Rank rank) const {
  const auto own = stacks.find(rank);
  size_t others = 0;
  for (const auto& [other, reading] : stacks) {
    if (other == rank) continue;
    if (reading->place == StackReading::Place::host) return false;
    ++others;
    if (own == stacks.end() || own->second->innermost_user.line == 0) continue;
    const std::vector<Frame>& frames = incident.stacks.Get(reading->thread->stack);
    if (std::find(frames.begin(), frames.end(), own->second->innermost_user) != frames.end()) return false;
  }
  return others >= 2;
}

bool Scene::HasNoCallOfItsOwn(Rank rank, const WaitRoot& root) const {
  if (root.kind == RootKind::silent) return true;
  return root.kind == RootKind::not_entered && root.stream && root.stream->source == CallSource::nccl_log &&
         incident.StreamOf(rank, CallSource::nccl_log);
}

bool Scene::SomeLogIsCut() const {
  return std::any_of(incident.streams.begin(), incident.streams.end(),
                     [](const CallStream& stream) { return stream.source == CallSource::nccl_log && stream.cut; }) ||
         SomeLogEndsInSetUp();
}

bool Scene::HasCutFile(Rank rank) const {
  return std::any_of(incident.streams.begin(), incident.streams.end(),
                     [&](const CallStream& stream) { return stream.rank == rank && stream.cut; });
}

bool Scene::ShowsWhereItIs(const StackReading& own) const {
  if (own.certain && own.place == StackReading::Place::host) return true;
  return !HasCutFile(own.rank) && StandsApart(own);
}

bool Scene::StandsApart(const StackReading& own) const {
  if (own.place == StackReading::Place::communication) return false;
  bool compared = false;
  for (const auto& [other, theirs] : stacks) {
    if (other == own.rank || theirs->place == StackReading::Place::unknown) continue;
    if (theirs->innermost_user == own.innermost_user && theirs->innermost == own.innermost) return false;
    compared = true;
  }
  return compared && own.whole;
}

const InFlight* Scene::HostInside(Rank rank, const WaitRoot& root) const {
  for (const InFlight& flight : incident.in_flight) {
    if (flight.rank != rank || !root.call || flight.group != root.group || flight.seq != root.call->seq) continue;
    if (IsPointToPoint(flight.kind) != root.call->has(kPointToPoint)) continue;
    const bool inside = flight.host == HostStage::in_group || flight.host == HostStage::in_group_end ||
                        flight.host == HostStage::in_launch;
    if (inside) return &flight;
  }
  return nullptr;
}

bool Scene::Diverged(const WaitRoot& root) const {
  const SourceAnalysis* source = root.stream ? analyses.Of(root.stream->source) : nullptr;
  return source && (!source->divergences.empty() || !source->differences.empty());
}

bool Scene::IsConnecting(Rank rank, const WaitRoot& root) const {
  if (root.kind != RootKind::gpu_not_started) return false;
  const InFlight* inside = HostInside(rank, root);
  if (!inside || inside->stream >= incident.streams.size()) return false;
  const CallStream& stream = incident.streams[inside->stream];
  return inside->call < stream.calls.size() && IsFirstOfItsShape(stream, stream.calls[inside->call]);
}

bool Scene::IsMomentary(const Call* call, const CallStream* stream) const {
  const int64_t age = WaitAge(call, stream), lasting = incident.patience.overdue_ns;
  return age >= 0 && age < lasting && longest_wait_ns_ >= lasting && age < longest_wait_ns_ / 2;
}

bool Scene::LivedOn(Rank rank, const WaitRoot& root) const {
  for (const Pulse& pulse : incident.pulses) {
    if (pulse.rank != rank || pulse.interval_ns <= 0 || pulse.last_beat_wall_ns == kNoTime) continue;
    if (!root.call || root.call->enter_wall_ns == kNoTime) continue;
    if (pulse.last_beat_wall_ns < root.call->enter_wall_ns + incident.patience.lived_on_ns) return false;
  }
  return true;
}

bool Scene::SpokeSinceOthersWait(const RankLife& life, const WaitRoot* root) const {
  int64_t since = root && root->call ? root->call->enter_wall_ns : kNoTime;
  // A watchdog says how long it has waited.
  if (const Event* timeout = analyses.outcome.first_timeout; timeout && timeout->wall_ns != kNoTime)
    since = timeout->wall_ns - std::clamp<int64_t>(timeout->As<WatchdogTimeout>().elapsed_ms, 0, INT32_MAX) * 1'000'000;
  return since != kNoTime && life.last_wall_ns != kNoTime &&
         life.last_wall_ns > since + incident.patience.stack_margin_ns;
}

bool Scene::IsOnlySilentRank(Rank rank) const {
  if (closing || SomeLogIsCut()) return false;
  if (!Lasts() && !(analyses.outcome.may_hang() && OthersWait(rank))) return false;
  if (const RankLife* own = analyses.life.Of(rank); own && SpokeSinceOthersWait(*own, nullptr)) return false;
  for (const auto& [other, life] : analyses.life.ranks) {
    if (other == rank ? life.has_voice() || !life.has_nccl_log : !life.has_stack || !life.has_nccl_log) return false;
  }
  return analyses.life.ranks.size() >= 2;
}

bool Scene::ClosedFirst(Rank rank) const {
  const RankLife* life = analyses.life.Of(rank);
  return life && !life->lost_peer && !life->asked_to_dump && !life->shared_gpu_error;
}

}  // namespace tacet
