// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/few_joined.h"

#include <map>
#include <set>

#include "rules/words/words.h"

namespace tacet {

std::optional<FewJoined> FindFewJoined(const LogOutline& outline, uint32_t end) {
  constexpr uint32_t kLinesOfTheEnd = 3;
  std::set<int32_t> joined;
  for (const LineOfRank& one : outline.joining) joined.insert(one.rank);
  if (joined.empty() || joined.size() != outline.joining.size()) return std::nullopt;
  const LineOfRank& last = outline.joining.back();
  const uint32_t ends = end > 0 ? end : outline.last_source.line;
  if (last.source.line > ends || ends > last.source.line + kLinesOfTheEnd) return std::nullopt;
  FewJoined few;
  for (int32_t rank = 0; rank < outline.world && rank < 65536; ++rank)
    (joined.contains(rank) ? few.came : few.missing).push_back(Rank{rank});
  if (few.missing.empty() || few.came.size() != joined.size()) return std::nullopt;
  few.source = last.source;
  few.text = last.text;
  few.words = "only " + RankWords(few.came) + " of " + std::to_string(outline.world);
  return few;
}

std::optional<FewJoined> FindFewWaiting(const Incident& incident) {
  std::map<int32_t, const OwnLine*> lasts;
  const OwnLine* last = nullptr;
  int64_t world = -1;
  for (const LogOutline& outline : incident.outlines) {
    if (outline.world <= 1 || (world >= 0 && outline.world != world)) return std::nullopt;
    world = outline.world;
    for (const OwnLine& line : outline.own_lines) {
      if (line.rank < 0 || line.local) return std::nullopt;
      lasts[line.rank] = last = &line;
    }
  }
  if (lasts.empty() || !last || world > 65536) return std::nullopt;
  for (const auto& [rank, line] : lasts)
    if (line->wait != LineWait::peers || rank >= world) return std::nullopt;
  FewJoined few;
  for (int32_t rank = 0; rank < world; ++rank) (lasts.contains(rank) ? few.came : few.missing).push_back(Rank{rank});
  if (few.missing.empty()) return std::nullopt;
  few.source = last->source;
  few.text = last->text;
  few.words = "only " + RankWords(few.came) + " of " + std::to_string(world);
  return few;
}

}  // namespace tacet
