// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/log_outline.h"

namespace tacet {

// Where in its program a rank is, by a line that it prints: "[r3] step 13 grad 0.0493" is "[r#] step 13 grad #" on all
// ranks, whatever they measure.
struct LinePlace {
  uint64_t place = 0, shape = 0;
};
LinePlace PlaceOf(std::string_view text, int32_t rank);

// "[r3] text", "worker 2 | text", "20:24:53 | 1 | text": marks of ranks that programs make up. -1: there is none.
int32_t RankOfOwnMark(std::string_view text);

// Keeps the last lines that the program itself prints on each rank: no line of PyTorch or NCCL, and no traceback.
class PlaceReader {
 public:
  // text: without the labels of launchers and loggers; rank: as they tell it, -1 where they do not.
  void Read(std::string_view text, int32_t rank, bool local, const SourceRef& source);
  void Finish(LogOutline& out);

 private:
  struct Tail {
    std::vector<OwnLine> lines;
    std::set<uint64_t> shapes;
    bool in_trace = false, failed = false, below_warning = false;
  };
  std::map<int32_t, Tail> tails_;
};

// A line of PyTorch's or NCCL's own, or of an error: not the program's.
bool IsLibraryLine(std::string_view text);

}  // namespace tacet
