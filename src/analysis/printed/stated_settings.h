// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/printed/printed_lines.h"

namespace tacet {

// All ranks print one line of the same words, and one of them prints another value in it: "relay 2: protocol version
// starts at 6" where the others start at 0.
struct StatedDifference {
  enum class Kind {
    none,
    setting,  // in a line that each rank prints once, when it begins
    value,    // in the line that all print last, in which they agreed in all rounds before
  };
  Kind kind = Kind::none;
  Rank rank;
  std::vector<Rank> others;
  const OwnLine* own = nullptr;
  const OwnLine* other = nullptr;
  std::string own_value, other_value;  // as printed, without punctuation
  bool must_agree = false;             // by what it is called: the world's size, the address or the port of rank 0
  explicit operator bool() const { return kind != Kind::none; }
};

// Needs such a line of every rank, and at least three ranks. Empty where lines set different ranks apart.
StatedDifference FindStatedDifference(const PrintedLines& printed);

}  // namespace tacet
