// SPDX-License-Identifier: Apache-2.0
#include "rules/few_joined.h"

#include <set>

#include "rules/words.h"

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
  few.last = &last;
  few.words = "only " + RankWords(few.came) + " of " + std::to_string(outline.world);
  return few;
}

}  // namespace tacet
