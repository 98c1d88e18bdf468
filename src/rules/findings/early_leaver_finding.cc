// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/early_leaver_finding.h"

#include <string>

#include "analysis/process/early_leaver.h"
#include "rules/suspects.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// The last line of its own that a rank printed: it often says that it is done.
const OwnLine* LastWord(const PrintedLines& printed, Rank rank) {
  const auto& lines = printed.LastOf(rank);
  return lines.empty() ? nullptr : lines.back();
}

std::string WaitWords(const Case& facts) {
  if (facts.standstill.operation) return " in " + OperationWords(facts.incident, *facts.standstill.operation);
  const std::string told = ToldOperationWords(facts);
  return told.empty() ? "" : " in " + told;
}

}  // namespace

std::optional<Finding> FindingOfEarlyLeavers(const Case& facts) {
  const EarlyLeavers left = FindEarlyLeavers(facts.analyses.life, facts.analyses.outcome, facts.analyses.printed,
                                             facts.analyses.front, facts.analyses.nameless);
  if (!left) return std::nullopt;
  const bool one = left.ranks.size() == 1;
  const std::string who = RankWords(left.ranks);
  Finding finding;
  finding.cause = "rank-dead";
  finding.title = "A rank's program ended before the others";
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = left.ranks;
  finding.affected_ranks = left.waiters;
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
  } else {
    finding.operation = ToldOperation(facts.incident);
  }
  const OwnLine* last = LastWord(facts.analyses.printed, left.ranks.front());
  finding.headline = (one ? "The program of " + who + " ended" : "The programs of " + who + " ended") +
                     " without an error while " + RankWords(left.waiters) + " still waited" + WaitWords(facts) +
                     (last ? "; the last line of " + RankWords({left.ranks.front()}) + " is " + QuotedLine(*last) : "");
  if (left.left) finding.evidence.push_back(CiteEvent(*left.left, "the program of " + who + " ends"));
  if (last) finding.evidence.push_back({last->source, last->text, "the last line that the program itself printed"});
  finding.evidence.push_back(CiteEvent(*left.felt, "what the others report after that"));
  finding.explanation =
      (left.left ? std::string("PyTorch prints this warning when a program ends. ")
                 : "All other ranks report only that a connection closed" +
                       std::string(left.listed ? ", and the launcher does not list " + who + " among those that failed"
                                               : "") +
                       ": the first connection that closed was that of " + who + ". ") +
      "A rank that ends while others are in a collective has issued fewer collectives than they have.";
  finding.fix = {
      "Find out why " + who +
          " finished before the others: fewer batches in the data of this rank, an early return, early stopping "
          "on a value local to that rank, sys.exit() on one rank?",
      "Give all ranks the same number of steps (DistributedSampler with drop_last, or the smallest number "
      "of batches of all ranks), or use torch's Join context manager for uneven inputs.",
      "Decide together when to stop: all_reduce or broadcast the condition."};
  return finding;
}

}  // namespace tacet
