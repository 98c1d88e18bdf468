// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/late_finding.h"

#include <algorithm>
#include <string>

#include "analysis/printed/own_way.h"
#include "rules/findings/output_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/own_way_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// How the first of those who waited says that its time was up.
const Event* FirstWait(const Case& facts, const ToldLaggard& told) {
  const Event* first = nullptr;
  bool nameless = !told.waiters.empty();
  for (const Rank rank : told.waiters) {
    const RankLife* life = facts.analyses.life.Of(rank);
    const Event* up = !life ? nullptr : life->gave_up ? life->gave_up : life->gloo_timeout;
    if (up && !first) first = up;
    nameless = nameless && !(life && (life->timeout || life->consequence));
  }
  if (first || !nameless) return first;
  const auto& timeouts = facts.analyses.nameless.timeouts;
  return timeouts.empty() ? nullptr : timeouts.front();
}

// The launcher ended it when the others had failed: it was there until then.
bool WasEndedByTheLauncher(const Case& facts, const ToldLaggard& told) {
  const RankLife* own = facts.analyses.life.Of(told.rank);
  if (own && own->exited) return own->exited->As<ProcessEnd>().code == -15;
  const auto& events = facts.incident.events;
  const auto killed = std::count_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::process_killed && (!event.rank.known() || event.rank == told.rank);
  });
  return killed == 1 && std::all_of(told.waiters.begin(), told.waiters.end(), [&](Rank rank) {
           const RankLife* life = facts.analyses.life.Of(rank);
           return life && life->exited;
         });
}

std::string WaitWords(const ToldLaggard& told, const Event& first) {
  const CodePlace& at = first.As<Raised>().place;
  const std::string place = at.file.empty() ? "" : CodePlaceWords(at);
  return RankWords(told.waiters) + " gave up waiting" + (place.empty() ? "" : " in " + place) + " (" +
         first.As<Raised>().type + ": " + MessageWords(first.text) + ")";
}

Finding FindingOf(const ToldLaggard& told, const Event& first) {
  const std::string who = RankWords({told.rank});
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {told.rank};
  finding.affected_ranks = told.waiters;
  finding.headline = WaitWords(told, first) + ", and " + who;
  finding.fix = {"Look at what " + who + " does after its last line: how long can it take, and why on this rank only?",
                 "Split this work across all ranks, do it outside the job, or raise the limit (init_process_group("
                 "timeout=...), or the program's own)."};
  return finding;
}

void CiteWait(const ToldLaggard& told, const Event& first, Finding& finding) {
  finding.evidence.push_back(CiteEvent(first, RankWords(told.waiters) + " gave up waiting with this error"));
}

}  // namespace

std::optional<Finding> LateFinding(const Case& facts) {
  if (facts.analyses.told.size() != 1) return std::nullopt;
  const ToldLaggard& told = facts.analyses.told.front();
  const Event* first = FirstWait(facts, told);
  const RankLife* life = facts.analyses.life.Of(told.rank);
  if (!first || !life || life->vanished || told.momentary) return std::nullopt;
  const OutputFront& front = facts.analyses.front;
  const std::string who = RankWords({told.rank});
  Finding finding = FindingOf(told, *first);
  const bool apart = front && front.rank == told.rank;
  if (apart && front.kind != OutputFront::Kind::leads && front.kind != OutputFront::Kind::apart) {
    finding.headline +=
        std::string(life->gloo_loss ? "" : ", which raised nothing,") + " was elsewhere: " + OutputWords(front);
    CiteOutputFront(facts, finding);
    CiteWait(told, *first, finding);
    return finding;
  }
  // Who leads has passed the call that the others wait in.
  const bool leads = apart && front.kind == OutputFront::Kind::leads;
  if (leads || !first->Means(Meaning::gloo_timeout)) return std::nullopt;
  if (const OwnWay way = FindOwnWay(facts.analyses.printed, *life)) {
    finding.cause = way.kind == OwnWay::Kind::other_branch ? "collective-skipped"
                    : way.elsewhere()                      ? "collective-mismatch-operation"
                                                           : "rank-stuck-on-host";
    finding.headline += " did not wait with them: " + WayWords(way);
    CiteWay(way, who, finding);
    CiteWait(told, *first, finding);
    return finding;
  }
  const bool lost = life->gloo_loss != nullptr;
  if (!lost && !WasEndedByTheLauncher(facts, told)) return std::nullopt;
  const CodePlace& place = first->As<Raised>().place;
  const bool same = lost && !place.file.empty() && life->gloo_loss->As<Raised>().place == place;
  finding.confidence = Confidence::possible;
  finding.headline += lost ? " lost the connection to them only after that" +
                                 std::string(same ? ": it came to the same line when they had ended" : "")
                           : " raised nothing until the launcher ended it";
  finding.headline += "; the output does not show what it did before";
  CiteWait(told, *first, finding);
  if (lost) finding.evidence.push_back(CiteEvent(*life->gloo_loss, "what " + who + " raised when they had ended"));
  finding.fix.front() = "Look at what " + who + " does before " +
                        (same ? "this line" : "it comes to where the others wait") +
                        ": does it load data, evaluate, save, or wait for a lock or a server?";
  return finding;
}

}  // namespace tacet
