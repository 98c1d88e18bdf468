// SPDX-License-Identifier: Apache-2.0
#include "rules/words/own_way_words.h"

#include <algorithm>

#include "rules/words/message_words.h"

namespace tacet {

std::string WayWords(const OwnWay& way) {
  switch (way.kind) {
    case OwnWay::Kind::went_on:
      return "its process was still working on the host: it printed " + QuotedLine(*way.own) +
             " and continued after the others had given up and ended";
    case OwnWay::Kind::in_barrier: return "its process was alive and in a barrier, as its last line shows";
    case OwnWay::Kind::at_work:
      return "its process was alive and printed " + std::to_string(way.lines) +
             " lines that no other rank prints, the last one " + QuotedLine(*way.own);
    case OwnWay::Kind::between:
      return "its process was alive: its last line is " + QuotedLine(*way.own) + ", and " + QuotedLine(*way.next) +
             " or a similar line, which followed each time before, is missing";
    case OwnWay::Kind::communicates:
      return "its process was alive and most likely waits in another operation: its last line is " +
             QuotedLine(*way.own) + ", which no other rank has printed";
    case OwnWay::Kind::other_branch:
      return "its process was alive and took another path: its last line is " + QuotedLine(*way.own) +
             ", and it has not printed " + QuotedLine(*way.other) + " as all others have";
    case OwnWay::Kind::same_line:
      return "its process was alive: its last line is " + QuotedLine(*way.own) +
             ", the same as on all other ranks, so it is most likely stuck in what follows this line, or slow there";
    default: return "";
  }
}

void CiteWay(const OwnWay& way, const std::string& who, Finding& finding) {
  const bool cited = std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
    return item.source.file == way.own->source.file && item.source.line == way.own->source.line;
  });
  const bool barrier = way.kind == OwnWay::Kind::in_barrier;  // in a warning that begins with a long path
  if (!cited)
    finding.evidence.push_back({way.own->source, way.own->text,
                                "the last line of " + who + (barrier ? ", printed by its call of barrier()" : "")});
  if (way.next) finding.evidence.push_back({way.next->source, way.next->text, "what followed such a line before"});
  if (way.other) finding.evidence.push_back({way.other->source, way.other->text, "the last line of the others"});
  if (way.elsewhere()) {
    finding.fix.front() = "Find the branch that " + who +
                          " took and the others did not (a condition on the rank, on its data, on a file or on a "
                          "signal): every collective in it, and every one that it skips, must be issued by all ranks.";
  } else {
    finding.fix.front() =
        (way.next                              ? "Look at what " + who + " does between these two lines"
         : way.kind == OwnWay::Kind::same_line ? "Look at what " + who + " does between this line and the operation"
                                               : "Look at the last lines of " + who) +
        ": what does it wait for (a server, a file, another process), or is it work that takes "
        "longer than the others' time limit?";
  }
}

}  // namespace tacet
