// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/own_exit.h"

#include <algorithm>
#include <string>

#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

// 1 is Python's for any exception; from 126 on the shell and signals speak.
static bool IsCodeOfTheProgram(int64_t code) { return code >= 2 && code <= 125; }

// The last line of this rank, if no other rank prints one of its kind.
static const OwnLine* LastWordOf(const PrintedLines& printed, Rank rank) {
  const auto& own = printed.LastOf(rank);
  if (own.empty() || printed.last.size() < 2) return nullptr;
  const OwnLine* last = own.back();
  for (const auto& [other, lines] : printed.last)
    if (other != rank &&
        std::any_of(lines.begin(), lines.end(), [&](const OwnLine* line) { return line->shape == last->shape; }))
      return nullptr;
  return last;
}

bool TellOwnExit(const Case& facts, Finding& finding) {
  if (finding.cause != "rank-dead" || finding.ranks.size() != 1) return false;
  const RankLife* life = facts.analyses.life.Of(finding.ranks.front());
  if (!life || !life->exited || life->segfault || !IsCodeOfTheProgram(life->exited->As<ProcessEnd>().code))
    return false;
  const OwnLine* last = LastWordOf(facts.analyses.printed, life->rank);
  if (!last) return false;
  const std::string who = RankWords(finding.ranks), line = QuotedLine(*last);
  finding.cause = "application-exception";
  finding.confidence = Confidence::likely;
  finding.headline = who + " ended itself with exit code " + std::to_string(life->exited->As<ProcessEnd>().code) +
                     "; its last line is " + line + ", which no other rank has printed";
  finding.explanation.clear();
  finding.prevent.clear();
  finding.fix = {"Read the last lines of " + who + ": the program ends with this code on purpose.",
                 "If only this rank ends so: compare its settings, its data and its environment with those of the "
                 "others."};
  finding.evidence.insert(finding.evidence.begin(), {last->source, last->text, "the last line of " + who});
  return true;
}

}  // namespace tacet
