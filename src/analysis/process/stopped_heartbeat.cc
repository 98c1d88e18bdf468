// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/stopped_heartbeat.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/process/testimony.h"

namespace tacet {
namespace {

const Silence* SilenceOf(const Analyses& analyses, Rank rank) {
  for (const Silence& silence : analyses.silences)
    if (silence.rank == rank) return &silence;
  return nullptr;
}

bool IsEarlier(const Call& call, const Call* other) {
  if (!other) return true;
  return call.enter_wall_ns != kNoTime && other->enter_wall_ns != kNoTime && call.enter_wall_ns < other->enter_wall_ns;
}

// Those whose heartbeats go on and that wait. Who ended by itself waits no more.
struct Survivors {
  const Call* wait = nullptr;           // the first operation that one of them began to wait in and never left
  int64_t last_beat_wall_ns = kNoTime;  // the last one of any
};

Survivors FindSurvivors(const Incident& incident, const Analyses& analyses, const SourceAnalysis& boxes) {
  std::map<Rank, const Pulse*> pulses;
  for (const Pulse& pulse : incident.pulses) pulses[pulse.rank] = &pulse;
  Survivors survivors;
  for (const auto& [rank, call] : boxes.waits.blocked_in) {
    const auto pulse = pulses.find(rank);
    if (pulse == pulses.end() || pulse->second->ended || SilenceOf(analyses, rank)) continue;
    if (IsEarlier(*call, survivors.wait)) survivors.wait = call;
    survivors.last_beat_wall_ns = std::max(survivors.last_beat_wall_ns, pulse->second->last_beat_wall_ns);
  }
  return survivors;
}

// A job that is ended as a whole, or that breaks down at once, leaves heartbeats that stop in any order.
bool IsOutlived(const Patience& limits, const SourceAnalysis& boxes, const Silence& silence,
                const Survivors& survivors) {
  const bool owes = silence.exited && !boxes.waits.blocked_in.contains(silence.rank);
  const int64_t margin = owes ? 0 : limits.together_ns;
  return survivors.last_beat_wall_ns >= silence.pulse->last_beat_wall_ns + margin;
}

// Others hold the rank up in what it was in.
bool IsHeldUp(const SourceAnalysis& boxes, Rank rank) {
  return std::any_of(boxes.waits.operations.begin(), boxes.waits.operations.end(), [&](const auto& operation) {
    return std::find(operation.waiters.begin(), operation.waiters.end(), rank) != operation.waiters.end() &&
           std::any_of(operation.missing.begin(), operation.missing.end(),
                       [&](const Missing& missing) { return missing.rank != rank; });
  });
}

// An end that holds nobody up, or that others brought about.
bool IsNoCause(const SourceAnalysis& boxes, const Silence& silence, const Call& wait) {
  if (!silence.exited) return false;
  if (boxes.waits.blocked_in.contains(silence.rank)) return IsHeldUp(boxes, silence.rank);
  // Ended in order, with a call too few: its program is wrong, not its end.
  return IsPointToPoint(wait.kind) || !boxes.divergences.empty() || !boxes.differences.empty();
}

// How far a rank had got with what the others wait in.
enum class Reached : uint8_t { nothing, issued, begun };

Reached ReachedBy(const SourceAnalysis& boxes, Rank rank) {
  const auto own = boxes.waits.blocked_in.find(rank);
  if (own == boxes.waits.blocked_in.end()) return Reached::nothing;
  return own->second->start_wall_ns == kNoTime ? Reached::issued : Reached::begun;
}

// When a process fell: after the last thing in its box, before the beat that did not come.
struct Fall {
  int64_t after_ns, before_ns, slack_ns;
};

Fall FallOf(const Incident& incident, const Silence& silence) {
  const Pulse& pulse = *silence.pulse;
  if (silence.exited) return {pulse.last_beat_wall_ns, pulse.last_beat_wall_ns, 0};
  const CallStream* stream = incident.StreamOf(silence.rank, CallSource::black_box);
  const int64_t after = std::max(pulse.last_beat_wall_ns, stream ? stream->captured_wall_ns : kNoTime);
  return {after, std::max(after, pulse.last_beat_wall_ns + pulse.interval_ns), pulse.interval_ns / 5};
}

// Of processes that fell together one pulled the others along: a connection closed, memory that they shared went away.
// The one that had got least far with the operation had no time to begin it; of equals, the one that missed a beat that
// the other still gave.
void KeepTheFirst(const Incident& incident, const SourceAnalysis& boxes, std::vector<Standstill>& known) {
  Reached least = Reached::begun;
  for (const Standstill& still : known) least = std::min(least, ReachedBy(boxes, still.rank));
  std::erase_if(known, [&](const Standstill& still) { return ReachedBy(boxes, still.rank) > least; });
  std::vector<Rank> later;
  for (const Standstill& one : known) {
    const Fall own = FallOf(incident, *one.silence);
    const bool pulled = std::any_of(known.begin(), known.end(), [&](const Standstill& other) {
      return other.rank != one.rank && other.kind == StandstillKind::dead &&
             FallOf(incident, *other.silence).before_ns <= own.after_ns + own.slack_ns;
    });
    if (pulled && one.kind == StandstillKind::dead) later.push_back(one.rank);
  }
  if (later.size() == known.size()) return;
  std::erase_if(
      known, [&](const Standstill& still) { return std::find(later.begin(), later.end(), still.rank) != later.end(); });
}

Standstill ReadKnown(const Analyses& analyses, const Silence& silence, const StandstillView& view) {
  Standstill still{.rank = silence.rank};
  for (const Standstill& before : view.ranks)
    if (before.rank == silence.rank) still.root = before.root;
  if (const RankLife* life = analyses.life.Of(silence.rank)) ClaimByOwnOutput(*life, still.claims);
  ClaimByHeartbeat(silence, still.claims);
  still.silence = &silence;
  Settle(still);
  return still;
}

// Dead or frozen, and nobody saw which. Peers that lost a connection say dead.
void ReadUnseen(const Analyses& analyses, const std::vector<const Silence*>& early, const Event* closing,
                StandstillView& view) {
  const bool alone = view.ranks.empty();
  for (const Silence* silence : early) {
    const auto at = std::find_if(view.ranks.begin(), view.ranks.end(),
                                 [&](const Standstill& still) { return still.rank == silence->rank; });
    if (at == view.ranks.end() && !alone) continue;
    Standstill& still = at != view.ranks.end() ? *at : view.ranks.emplace_back(Standstill{.rank = silence->rank});
    if (still.kind == StandstillKind::explained || still.kind == StandstillKind::dead) continue;
    const RankLife* life = analyses.life.Of(silence->rank);
    const bool closed = closing && life && !life->lost_peer && !life->asked_to_dump;
    still.silence = silence;
    still.alive = false;
    // Wherever its host was before, nothing in it runs any more.
    still.claims.clear();
    ClaimByHeartbeat(*silence, still.claims);
    if (closed)
      Say(still.claims, Liveness::gone, Strength::strong, "a peer saw its connection close", closing).closing = closing;
    Settle(still);
  }
  std::sort(view.ranks.begin(), view.ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

}  // namespace

void ClaimByHeartbeat(const Silence& silence, std::vector<Claim>& claims) {
  const std::string_view seen = silence.pulse ? "its heartbeat stopped, and another process saw it in this state"
                                              : "a list of processes shows it in this state";
  if (!silence.lasts()) {
    Say(claims, HostPlace::in_kernel, Strength::strong, seen);
    return;
  }
  if (silence.exited)
    Say(claims, Liveness::gone, Strength::proof, "its record ends with its own exit");
  else if (silence.dead())
    Say(claims, Liveness::gone, Strength::proof, seen).witness = Witness::peer;
  else if (silence.frozen())
    Say(claims, Liveness::stopped, Strength::proof, seen).witness = Witness::peer;
  else
    Say(claims, Liveness::running, Strength::strong, "its heartbeat stopped before the others began to wait").holds =
        false;
}

void ReadStoppedHeartbeats(const Incident& incident, const Analyses& analyses, const Event* closing,
                           StandstillView& view) {
  const SourceAnalysis* boxes = analyses.Of(CallSource::black_box);
  if (!boxes || analyses.silences.empty() || !analyses.outcome.hangs()) return;
  const Survivors survivors = FindSurvivors(incident, analyses, *boxes);
  const Call* wait = survivors.wait;
  if (!wait) return;  // nobody waits for it
  std::vector<const Silence*> early;
  int64_t first_known = INT64_MAX;
  for (const Silence& silence : analyses.silences) {
    if (!silence.pulse) continue;
    const int64_t last_beat = silence.pulse->last_beat_wall_ns;
    if (wait->enter_wall_ns != kNoTime && last_beat - incident.patience.part_of_wait_ns > wait->enter_wall_ns) continue;
    if (IsNoCause(*boxes, silence, *wait) || !IsOutlived(incident.patience, *boxes, silence, survivors)) continue;
    early.push_back(&silence);
    if (silence.dead() || silence.frozen()) first_known = std::min(first_known, last_beat);
  }
  if (first_known == INT64_MAX) return ReadUnseen(analyses, early, closing, view);
  std::vector<Standstill> known;
  for (const Silence* silence : early) {
    const bool first = silence->pulse->last_beat_wall_ns - first_known <= incident.patience.together_ns;
    if (first && (silence->dead() || silence->frozen())) known.push_back(ReadKnown(analyses, *silence, view));
  }
  KeepTheFirst(incident, *boxes, known);
  view.ranks = std::move(known);
}

std::optional<Collapse> FindCollapse(const Incident& incident, const Analyses& analyses) {
  if (analyses.outcome.stands() || incident.pulses.empty()) return std::nullopt;
  struct Fallen {
    Rank rank;
    Fall fall;
    const Pulse* pulse;
  };
  Collapse collapse;
  std::vector<Fallen> fallen;
  size_t seen_gone = 0;
  for (const Pulse& pulse : incident.pulses) {
    if (pulse.ended) continue;
    const Silence* silence = SilenceOf(analyses, pulse.rank);
    if (silence && silence->frozen()) return std::nullopt;
    const bool seen = silence && silence->dead();
    // The last of all had no witness. A box that was written to its last beat may be a copy of a running one.
    const int64_t written = incident.files[static_cast<uint32_t>(pulse.source.file)].modified_wall_ns;
    const int64_t limit = std::max(incident.patience.missed_beats * pulse.interval_ns, incident.patience.silence_ns);
    const bool stopped = pulse.interval_ns > 0 && pulse.last_beat_wall_ns != kNoTime && written != kNoTime &&
                         written - pulse.last_beat_wall_ns > limit;
    if (!seen && !stopped) return std::nullopt;
    seen_gone += seen;
    fallen.push_back({pulse.rank, FallOf(incident, {.rank = pulse.rank, .pulse = &pulse}), &pulse});
  }
  // Files that were copied look as if they had been put away long after: somebody must have seen somebody gone.
  if (seen_gone == 0) return std::nullopt;
  collapse.seen = seen_gone == fallen.size();
  std::stable_sort(fallen.begin(), fallen.end(),
                   [](const Fallen& a, const Fallen& b) { return a.fall.after_ns < b.fall.after_ns; });
  const Fallen& first = fallen.front();
  for (const Fallen& one : fallen) {
    collapse.lost.push_back(one.rank);
    if (one.fall.after_ns <= first.fall.before_ns + first.fall.slack_ns) collapse.first.push_back(one.rank);
  }
  collapse.pulse = first.pulse;
  collapse.spread_ns = fallen.back().fall.after_ns - first.fall.after_ns;
  return collapse;
}

void ChooseOperationOfStoppedHeartbeats(const Incident& incident, const Analyses& analyses, StandstillView& view,
                                        std::set<Rank>& waiters) {
  const SourceAnalysis* boxes = analyses.Of(CallSource::black_box);
  const bool silent = std::any_of(view.ranks.begin(), view.ranks.end(), [](const auto& s) { return s.silence; });
  if (!boxes || !silent) return;
  for (const auto& [rank, call] : boxes->waits.blocked_in) {
    if (SilenceOf(analyses, rank)) continue;
    waiters.insert(rank);
    if (!IsEarlier(*call, view.operation)) continue;
    view.operation = call;
    view.stream = incident.StreamOf(rank, CallSource::black_box);
    view.group = call->group;
  }
}

}  // namespace tacet
