// SPDX-License-Identifier: Apache-2.0
#include "rules/few_joined.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules/words.h"

namespace tacet {
namespace {

constexpr uint32_t kLinesOfTheEnd = 3;

struct Joined {
  std::vector<Rank> came, missing;
};

// Of each rank one line, and nothing behind them.
std::optional<Joined> ReadJoined(const LogOutline& outline) {
  std::set<int32_t> joined;
  for (const LineOfRank& one : outline.joining) joined.insert(one.rank);
  if (joined.empty() || joined.size() != outline.joining.size()) return std::nullopt;
  const auto lacking = static_cast<int64_t>(outline.world) - static_cast<int64_t>(joined.size());
  if (lacking <= 0 || outline.last_source.line > outline.joining.back().source.line + kLinesOfTheEnd)
    return std::nullopt;
  Joined out;
  for (int32_t rank = 0; rank < outline.world && rank < 65536; ++rank)
    (joined.contains(rank) ? out.came : out.missing).push_back(Rank{rank});
  if (out.came.size() != joined.size()) return std::nullopt;
  return out;
}

// Nothing else is here: another file may hold the lines of those that lack, and an error tells more than this.
bool IsAlone(const Case& facts, const LogOutline& outline) {
  return facts.incident.outlines.size() == 1 && facts.incident.files.size() == 1 && facts.incident.events.empty() &&
         outline.ranks.size() == outline.joining.size();
}

}  // namespace

std::optional<Finding> FindFewJoined(const Case& facts) {
  const auto& events = facts.incident.events;
  const auto told =
      std::find_if(events.begin(), events.end(), [](const Event& event) { return event.kind == EventKind::told_hang; });
  const bool hangs = told != events.end();
  for (const LogOutline& outline : facts.incident.outlines) {
    const auto joined = ReadJoined(outline);
    if (!joined) continue;
    const auto& [came, missing] = *joined;
    // Without a word of a hang only few may be missing: of many the lines were not collected.
    const bool few = came.size() >= 3 && missing.size() * 4 <= came.size() + missing.size();
    if (!hangs && (!few || !IsAlone(facts, outline))) continue;
    const bool one = missing.size() == 1;
    Finding finding;
    finding.cause = "init-rank-missing";
    finding.status = hangs ? Status::hang : Status::undetermined;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::possible;
    finding.headline = "only " + RankWords(came) + " of " + std::to_string(outline.world) +
                       (came.size() == 1 ? " prints that it joins" : " print that they join") + " the setup; " +
                       RankWords(missing) + (one ? " did not start, or prints" : " did not start, or print") +
                       " elsewhere";
    if (!hangs) finding.ranks = missing;
    finding.affected_ranks = came;
    finding.evidence.push_back(
        {outline.joining.back().source, outline.joining.back().text, "the last rank that says that it joins"});
    if (hangs) finding.evidence.push_back(CiteEvent(*told, "the text around the log says that the job hangs"));
    if (!hangs)
      finding.evidence.push_back(
          CiteAbsence("no line is of " + RankWords(missing) + ", and no rank prints anything more"));
    finding.fix = {
        "Check that the launcher starts as many processes as the program expects: with Slurm --ntasks-per-node must be "
        "the number of GPUs per node, with srun before the program; ps shows what runs.",
        "If they run: read the output of " + std::string(one ? "that rank" : "those ranks") +
            ", and see from every node that MASTER_ADDR and MASTER_PORT of rank 0 can be reached (nc -zv)."};
    return finding;
  }
  return std::nullopt;
}

}  // namespace tacet
