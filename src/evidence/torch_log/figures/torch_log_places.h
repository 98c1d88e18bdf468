// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

// "[ep2] capacity factor 1.5", "relay 2: version 0", "ring attention, position 3: keys go to 0": a number behind a few
// words at the front. It is a rank where all numbers from 0 on take turns through the whole text; those of epochs
// follow each other. Empty words: there is none.
struct FrontNumber {
  std::string words;
  int32_t number = -1;
};
FrontNumber FindFrontNumber(std::string_view text);

// Keeps the first and the last lines that the program itself prints on each rank: no line of PyTorch or NCCL, and no
// traceback.
class PlaceReader {
 public:
  // text: without the labels of launchers and loggers; rank: as they tell it, -1 where they do not.
  void Read(std::string_view text, int32_t rank, bool local, const SourceRef& source);
  void Finish(LogOutline& out);

 private:
  struct Tail {
    std::vector<OwnLine> lines, first;
    std::map<uint64_t, int64_t> shapes;  // how often
    bool in_trace = false, failed = false, in_warning = false;
    uint32_t begins = 0, ends = 0;  // lines of the file
    int64_t count = 0;
  };
  // tails: of how many ranks lines are kept.
  void ReadInto(Tail& tail, size_t tails, std::string_view text, int32_t rank, bool local, const SourceRef& source);
  void Emit(Tail& tail, LogOutline& out);

  std::map<int32_t, Tail> tails_;
  std::map<std::string, std::map<int32_t, Tail>> maybe_marked_;  // by the words before a number
  std::vector<OwnLine> barriers_, outsiders_;
};

// A line of PyTorch's or NCCL's own, or of an error: not the program's.
bool IsLibraryLine(std::string_view text);

}  // namespace tacet
