// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/shifted_wait_finding.h"

#include <cstdint>
#include <string>

#include "analysis/printed/printed_steps.h"
#include "analysis/printed/shifted_wait.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string TimeWords(double seconds) { return DurationWords(static_cast<int64_t>(seconds * 1e9)); }

}  // namespace

void TellShiftedWait(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  if (facts.analyses.printed_laggard) return;  // names whose meaning is known tell more
  const auto wait = FindShiftedWait(facts.incident);
  if (!wait || cause != (wait->persistent() ? "straggler-host" : "straggler-intermittent")) return;
  const std::string who = RankWords({wait->rank}),
                    how_often = "in " + std::to_string(wait->events) + " of " + std::to_string(wait->steps) + " steps";
  Finding finding;
  finding.cause = std::string(cause);
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.ranks = {wait->rank};
  const bool grows = wait->grows_to > 0;
  finding.headline = who + " spends " +
                     (grows ? "more and more time in '" + wait->own_name + "' (first " + TimeWords(wait->grows_from) +
                                  ", at last " + TimeWords(wait->grows_to) + ")"
                            : TimeWords(wait->own) + " in '" + wait->own_name + "' " + how_often) +
                     ", the other " + (wait->ranks == 2 ? "rank" : std::to_string(wait->ranks - 1) + " ranks") + " " +
                     (wait->others < 1e-6 ? std::string("none") : "typically " + TimeWords(wait->others)) +
                     "; the time that they spend in '" + wait->wait_name +
                     "' grows by the same amount in those steps, so they most likely wait for " + who;
  finding.evidence.push_back({wait->last->source, "", "the last such step of " + who});
  if (wait->persistent()) finding.title = "A rank is slower than the others in one part of the step";
  finding.fix = {grows ? "Look for what grows in '" + wait->own_name + "' on " + who +
                             " only: a list, a table or a cache that is searched in each step and never emptied."
                       : "Look for what only " + who + " does in '" + wait->own_name +
                             "' of these steps (saving, logging, evaluation, loading data, cleaning up).",
                 grows ? std::string("Bound its size, or use a structure whose cost does not grow (a set or a dict "
                                     "instead of a list).")
                       : "Do it less often, in the same steps on all ranks, in the background, or outside the step.",
                 "torch.profiler traces of a few steps on all ranks show where the time goes: tacet profile."};
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
