// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tacet {

// Two orders of calls of which one becomes the other when calls are taken out of it and nothing else is changed.
//     longer  a b c x a b c x a b c        shorter  a b c a b c a b c
struct CallAlignment {
  size_t matched = 0;           // calls that agree
  std::vector<size_t> dropped;  // places in the longer order, after each of which the orders agree again
  size_t trailing = 0;          // places at its end that agree with nothing
  bool foreign = false;         // what was taken out is nowhere in the shorter order
  bool alike = false;           // what was taken out is the same call every time
  size_t every = 0;             // the distance between two places that were taken out, where it is always the same
};

// Compares a place of the one order with a place of the other, or two places of the longer one.
using SamePlaces = std::function<bool(size_t, size_t)>;

// Taking out as early as possible finds a way wherever there is one. Empty where so much has to be taken out that any
// two orders would agree.
std::optional<CallAlignment> AlignByDropping(size_t longer, size_t shorter, const SamePlaces& same,
                                             const SamePlaces& same_in_longer);

}  // namespace tacet
