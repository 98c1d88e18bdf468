// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "base/log_outline.h"

namespace tacet {

// The rank by which a logger marks its lines, and what stands behind the mark: "[rank0] text", "[Rank 0] text",
// "(RANK 0) text", "[rank=0] text", "[INFO|RANK=0] text", "rank 0: text", "Rank 0 | text", also behind a time and a
// level. The rank within a group ("[PG 1 Rank 0]") and "[local_rank 0]" are others.
struct RankMark {
  int32_t rank = -1;
  std::string_view rest{};
};
RankMark FindRankMark(std::string_view line);

// Also of "rank=0 finished all 40 steps", where no mark stands behind the number; -1 where the line begins otherwise.
int32_t FindRankAtFront(std::string_view line);

// What lines tell of how far the job came. Read takes them one by one, in their order.
class MilestoneReader {
 public:
  // rank: of whoever printed the line; -1 where it does not say so.
  void Read(std::string_view text, int32_t rank, const SourceRef& source, LogOutline& out);

 private:
  std::map<int32_t, int64_t> progress_of_;
};

}  // namespace tacet
