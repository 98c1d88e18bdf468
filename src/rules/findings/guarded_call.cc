// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/guarded_call.h"

#include <algorithm>
#include <optional>
#include <string>

#include "rules/unexplained/told_trouble.h"
#include "rules/words/words.h"

namespace tacet {

std::optional<Finding> GuardedCallFinding(const Case& facts) {
  const Event* guard = FindToldWords(facts.incident, EventKind::told_guard);
  const bool hangs = facts.analyses.end.kind == JobEnding::hung || facts.analyses.outcome.hangs();
  if (!guard || !hangs || !facts.analyses.sources.empty() || !facts.analyses.told.empty()) return std::nullopt;
  const auto& call = guard->As<GuardedCall>();
  Finding finding;
  finding.cause = "collective-skipped";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.headline = "the program in the text calls " + call.call + " only where " + call.condition +
                     " holds: all ranks must call it, so those that do wait for the others";
  finding.evidence.push_back(CiteEvent(*guard, "the call that only some ranks make"));
  const auto& events = facts.incident.events;
  const auto timeout = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::watchdog_timeout && !event.Means(Meaning::in_prose);
  });
  if (timeout != events.end()) {
    finding.evidence.push_back(
        CiteEvent(*timeout, (timeout->rank.known() ? RankWords({timeout->rank}) : std::string("a rank")) +
                                " waited in a collective until it timed out"));
    if (timeout->rank.known()) finding.affected_ranks = {timeout->rank};
  }
  const bool saves = call.call.find("save") != std::string::npos;
  finding.fix = {"Call " + call.call + " on all ranks: move it out of the condition." +
                     (saves ? " It chooses itself which ranks write." : ""),
                 "Keep only what is not a collective under such a condition: print, logging, creating a directory.",
                 "If it still hangs then: take the stack of every rank (py-spy dump --pid PID)."};
  return finding;
}

}  // namespace tacet
