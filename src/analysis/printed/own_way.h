// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/printed/printed_lines.h"
#include "analysis/process/signs_of_life.h"

namespace tacet {

// What the lines that a rank itself printed show of why it has not come to the operation that the others wait in: its
// process was alive then.
struct OwnWay {
  enum class Kind {
    none,
    went_on,       // it printed further lines behind the loss of the others, who had given up by then
    in_barrier,    // PyTorch's warning, its last words, shows that it called barrier()
    at_work,       // line after line of a kind that no other rank prints
    between,       // its last line was always followed by another one of its own before: `next`
    communicates,  // its last line says that it communicates with the others, and no other rank prints it
    same_line,     // its last line is that of all others, who went on to the operation behind it
    other_branch,  // all others printed that they communicate; it printed another line instead
  };
  Kind kind = Kind::none;
  const OwnLine* own = nullptr;
  const OwnLine* next = nullptr;   // of between: an earlier one of the line that did not come
  const OwnLine* other = nullptr;  // of other_branch: where the others are
  int64_t lines = 0;               // of at_work
  explicit operator bool() const { return kind != Kind::none; }
  // It issues another call than the others, or none where they issue one.
  bool elsewhere() const {
    return kind == Kind::in_barrier || kind == Kind::communicates || kind == Kind::other_branch;
  }
};

OwnWay FindOwnWay(const PrintedLines& printed, const RankLife& life);

}  // namespace tacet
