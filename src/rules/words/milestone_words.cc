// SPDX-License-Identifier: Apache-2.0
#include "rules/words/milestone_words.h"

#include <algorithm>
#include <set>

#include "rules/words/words.h"

namespace tacet {
namespace {

bool StandsBefore(const SourceRef& a, const SourceRef& b) { return a.file == b.file && a.line < b.line; }

// A rank that failed, ended or waits itself is not the one that works on.
bool MayWorkOn(const Case& facts, Rank rank) {
  const RankLife* life = facts.analyses.life.Of(rank);
  return life && !life->exception && !life->consequence && !life->gpu_error && !life->cuda_oom && !life->oom_killed &&
         !life->segfault && !life->timeout && !life->finished && !life->left;
}

}  // namespace

const Milestone* SavedBefore(const Incident& incident, const SourceRef& line) {
  for (const LogOutline& outline : incident.outlines)
    if (outline.saved && StandsBefore(outline.saved.source, line)) return &outline.saved;
  return nullptr;
}

const Milestone* SavedAfter(const Incident& incident, const SourceRef& line) {
  for (const LogOutline& outline : incident.outlines)
    if (outline.saved && StandsBefore(line, outline.saved.source)) return &outline.saved;
  return nullptr;
}

bool IsOwnWord(const Incident& incident, const SourceRef& line) {
  return std::any_of(incident.outlines.begin(), incident.outlines.end(), [&](const LogOutline& outline) {
    return outline.stopped && outline.stopped.source.file == line.file && outline.stopped.source.line == line.line;
  });
}

std::string StoodWords(const Incident& incident, const SourceRef& line) {
  for (const LogOutline& outline : incident.outlines) {
    if (!outline.trained || !StandsBefore(outline.trained.source, line)) continue;
    const Milestone* saved = SavedBefore(incident, line);
    return outline.trained.words + (saved ? " and " + saved->words + " was saved" : "");
  }
  return "";
}

std::vector<std::string> StepsAfterTheWork(bool gone) {
  std::vector<std::string> steps;
  steps.reserve(3);
  steps.push_back(std::string("The training need not be repeated: check that what it saved is complete") +
                  (gone ? "." : ", and end the processes that are left."));
  steps.push_back(
      "Let all ranks reach the end together: a barrier after the last save, then destroy_process_group() on every rank "
      "before the program ends.");
  steps.push_back(
      "If it hangs there again: take the stacks of all ranks with native frames (py-spy dump --native --pid PID) while "
      "it hangs.");
  return steps;
}

std::optional<RankAtWork> FindRankAtWork(const Case& facts) {
  RankAtWork found;
  found.census = CountTimeouts(facts.incident);
  if (!found.census || found.census.calls.size() != 1) return std::nullopt;
  const TimedOutCall& call = found.census.calls.front();
  std::vector<Rank> others = facts.incident.AllRanks();
  std::erase_if(others, [&](Rank rank) { return std::binary_search(call.ranks.begin(), call.ranks.end(), rank); });
  if (others.size() != 1 || call.ranks.size() < 2 || !MayWorkOn(facts, others.front())) return std::nullopt;
  if (call.group_size > 0 && call.group_size != static_cast<int64_t>(call.ranks.size() + 1)) return std::nullopt;
  const Event* timeout = facts.analyses.outcome.first_timeout;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::watchdog_timeout && timeout && event.source.file == timeout->source.file &&
        event.source.line < timeout->source.line)
      timeout = &event;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const LineOfRank& line : outline.at_work)
      if (line.rank == others.front().value && timeout && StandsBefore(timeout->source, line.source))
        found.source = line.source, found.text = line.text;
  // Where lines name the ranks that print them, this one may be of any other.
  for (const LogOutline& outline : facts.incident.outlines)
    if (found.text.empty() && timeout && outline.saved && StandsBefore(timeout->source, outline.saved.source) &&
        outline.at_work.empty() && outline.last_of_ranks.empty())
      found.source = outline.saved.source, found.text = outline.saved.words + " was saved", found.by_checkpoint = true;
  found.rank = others.front();
  if (found.text.empty()) return std::nullopt;
  return found;
}

}  // namespace tacet
