// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/printed/printed_lines.h"

namespace tacet {

// How far each rank is, by nothing but the lines that the program itself prints.
struct OutputFront {
  enum class Kind {
    none,       // nothing sets one rank apart
    lags,       // all others printed a line that this rank always prints, too, and has not printed this time
    leads,      // it printed a line that all print at that place, and no other rank has
    apart,      // all others printed the same line last, and this rank another one: no more can be said
    elsewhere,  // all others stopped at one line; it went past that and printed one that no other rank prints
  };
  Kind kind = Kind::none;
  Rank rank;
  std::vector<Rank> others;
  const OwnLine* own = nullptr;    // its last line; of one that leads the line that the others lack
  const OwnLine* other = nullptr;  // where the others are
  explicit operator bool() const { return kind != Kind::none; }
};

// Needs the output of every rank, and at least three. Whose file ends within a line is not judged: the end of it was
// not written.
OutputFront FindOutputFront(const PrintedLines& printed);

}  // namespace tacet
