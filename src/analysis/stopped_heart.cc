// SPDX-License-Identifier: Apache-2.0
#include "analysis/stopped_heart.h"

#include <algorithm>

namespace tacet {
namespace {

// A process that fell silent this long after others began to wait had its part in the wait while it lived.
constexpr int64_t kPartOfTheWaitNs = int64_t{10} * 1'000'000'000;
// Processes that fall silent within this time of each other fell for one reason.
constexpr int64_t kTogetherNs = int64_t{3} * 1'000'000'000;

const Silence* SilenceOf(const Analyses& analyses, Rank rank) {
  for (const Silence& silence : analyses.silences)
    if (silence.rank == rank) return &silence;
  return nullptr;
}

bool IsEarlier(const Call& call, const Call* other) {
  if (!other) return true;
  return call.enter_wall_ns != kNoTime && other->enter_wall_ns != kNoTime && call.enter_wall_ns < other->enter_wall_ns;
}

// The first operation that somebody whose heart beat on began to wait in and never left.
const Call* FirstWait(const Analyses& analyses, const SourceAnalysis& boxes) {
  const Call* first = nullptr;
  for (const auto& [rank, call] : boxes.waits.blocked_in)
    if (!SilenceOf(analyses, rank) && IsEarlier(*call, first)) first = call;
  return first;
}

Standstill ReadKnown(const Analyses& analyses, const Silence& silence, const StandstillView& view) {
  Standstill still{.rank = silence.rank, .kind = silence.dead() ? StandstillKind::dead : StandstillKind::frozen};
  for (const Standstill& before : view.ranks)
    if (before.rank == silence.rank) still.root = before.root;
  if (const RankLife* life = analyses.life.Of(silence.rank); life && IsExplained(*life))
    still.kind = StandstillKind::explained;
  still.silence = &silence;
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
    still.kind = closed ? StandstillKind::dead : StandstillKind::unclear;
    if (closed) still.closing = closing;
  }
  std::sort(view.ranks.begin(), view.ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

}  // namespace

bool IsExplained(const RankLife& life) {
  return life.exception || life.unused_parameters || life.cuda_oom || life.oom_killed || life.gpu_error;
}

void ReadStoppedHearts(const Analyses& analyses, const Event* closing, StandstillView& view) {
  const SourceAnalysis* boxes = analyses.Of(CallSource::black_box);
  if (!boxes || analyses.silences.empty() || !analyses.outcome.hangs()) return;
  const Call* wait = FirstWait(analyses, *boxes);
  if (!wait) return;  // nobody waits for it
  std::vector<const Silence*> early;
  int64_t first_known = INT64_MAX;
  for (const Silence& silence : analyses.silences) {
    const int64_t last_beat = silence.pulse->last_beat_wall_ns;
    if (wait->enter_wall_ns != kNoTime && last_beat - kPartOfTheWaitNs > wait->enter_wall_ns) continue;
    // Ended in order, with a send or receive too few: its program is wrong, not its end.
    if (silence.exited && IsPointToPoint(wait->kind)) continue;
    early.push_back(&silence);
    if (silence.dead() || silence.frozen()) first_known = std::min(first_known, last_beat);
  }
  if (first_known == INT64_MAX) return ReadUnseen(analyses, early, closing, view);
  std::vector<Standstill> known;
  for (const Silence* silence : early) {
    const bool first = silence->pulse->last_beat_wall_ns - first_known <= kTogetherNs;
    if (first && (silence->dead() || silence->frozen())) known.push_back(ReadKnown(analyses, *silence, view));
  }
  // Of several that fell together, those that had issued what the others wait in were pulled along by one that had not.
  const auto waits_itself = [&](const Standstill& still) { return boxes->waits.blocked_in.contains(still.rank); };
  if (!std::all_of(known.begin(), known.end(), waits_itself)) std::erase_if(known, waits_itself);
  view.ranks = std::move(known);
}

void ChooseOperationOfStoppedHearts(const Incident& incident, const Analyses& analyses, StandstillView& view,
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
