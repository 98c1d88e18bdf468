// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/printed/printed_lines.h"

namespace tacet {

// The last lines of two ranks name each other, "turn 4: sending 7 chunks to rank 1" and "turn 4: expecting 5 chunks
// from rank 0": the two halves of one exchange. They agreed in all rounds before, and in this one a number differs.
struct ToldExchange {
  const OwnLine *one = nullptr, *other = nullptr;
  Rank of_one, of_other;
  int64_t number = -1, expected = -1;  // of one, of the other
  Rank odd;                            // whose number is unlike its own of all rounds before; unknown: both, or neither
  int64_t usual = -1;                  // of the odd one, in the rounds before
  explicit operator bool() const { return one != nullptr; }
};

ToldExchange FindToldExchange(const PrintedLines& printed);

}  // namespace tacet
