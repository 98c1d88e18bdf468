// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/process/stack_reading.h"

namespace tacet {

// The one reading that is elsewhere while all others are at one place, by what `same` takes for one.
struct OddStack {
  const StackReading* odd = nullptr;
  const StackReading* usual = nullptr;  // one of the others
  explicit operator bool() const { return odd != nullptr; }
};
using SamePlace = bool (*)(const StackReading&, const StackReading&);
inline bool AreAtOneLine(const StackReading& a, const StackReading& b) { return a.where == b.where; }

inline OddStack FindOddStack(const std::vector<StackReading>& stacks, SamePlace same = AreAtOneLine) {
  for (const StackReading& odd : stacks) {
    const StackReading& usual = &odd == &stacks.front() ? stacks.back() : stacks.front();
    if (!same(odd, usual) && std::all_of(stacks.begin(), stacks.end(),
                                         [&](const StackReading& one) { return &one == &odd || same(one, usual); }))
      return {&odd, &usual};
  }
  return {};
}

}  // namespace tacet
