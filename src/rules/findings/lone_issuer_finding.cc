// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/lone_issuer_finding.h"

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/timeouts/watchdog_waits.h"
#include "rules/findings/side_stacks.h"
#include "rules/words/hang_capture.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

void CiteCounters(const LoneIssuer& lone, const std::string& who, const std::string& others, Finding& finding) {
  if (lone.wait) finding.evidence.push_back(CiteEvent(*lone.wait, who + " waited in this call until it timed out"));
  const auto &own = lone.own->As<WorkCounters>(), &theirs = lone.theirs->As<WorkCounters>();
  finding.evidence.push_back(CiteEvent(*lone.own, who + " had issued calls up to #" +
                                                      std::to_string(own.last_enqueued) + " and completed #" +
                                                      std::to_string(own.last_completed)));
  finding.evidence.push_back(CiteEvent(
      *lone.theirs, others + " had issued and completed calls up to #" + std::to_string(theirs.last_enqueued)));
}

}  // namespace

void TellLoneIssuer(const Case& facts, Diagnosis& diagnosis) {
  const auto is_proven = [](const Finding& one) { return one.severity == Severity::critical; };
  if (!facts.analyses.sources.empty() || std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), is_proven))
    return;
  const LoneIssuer lone = FindLoneIssuer(facts.incident);
  if (!lone) return;
  const std::string who = RankWords({lone.rank}), others = RankWords(lone.others);
  const bool named = lone.wait && lone.wait->op != OpKind::unknown;
  const std::string place = lone.wait ? CallerPlaceWords(*lone.wait) : std::string();
  Finding finding;
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.affected_ranks = {lone.rank};
  if (named) finding.operation = OperationRef{lone.wait->op, lone.number, -1};
  finding.headline = who + " alone has issued " + (named ? std::string(Name(lone.wait->op)) : "operation") + " #" +
                     std::to_string(lone.number) + (place.empty() ? "" : ", in " + place) +
                     "; when it timed out there, " + others + " had completed all that they had issued, up to #" +
                     std::to_string(lone.number - 1) +
                     ". Either it issued one call too many, or something keeps the others from this one";
  CiteCounters(lone, who, others, finding);
  finding.explanation =
      "The watchdogs print how many operations each rank has issued and completed. These numbers show who waits for "
      "whom, but not why the others have not issued the operation.";
  finding.fix = {"Look at that call" + (place.empty() ? std::string() : " in " + place) + ": is " + who +
                     " the only one that runs it (an evaluation, a metric, a barrier, logging)? Then let all ranks "
                     "issue it, or none.",
                 "If all ranks should issue it: does " + who +
                     " hold what the others wait for before it (a lock, a file, a transaction, a queue)? Release it "
                     "before the collective."};
  if (!HasAllStacks(facts))
    finding.fix.push_back("When it hangs again, take the stack of every rank (" + StackCommand(facts.incident) +
                          "): where are " + others + "?");
  diagnosis.open.push_back({"Why have " + others + " not issued it?", HangCapture(facts)});
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace tacet
