// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/call_alignment.h"

#include <algorithm>

namespace tacet {
namespace {

constexpr size_t kFarthestDrop = 512;     // calls in a row that may be too many
constexpr size_t kFewestMatches = 4;      // fewer agree by chance
constexpr size_t kMostKindsDropped = 16;  // different calls that a rank issues too many in one round

struct AlignmentEnds {
  size_t longer = 0, shorter = 0;  // how far both were walked
};

AlignmentEnds Walk(size_t longer, size_t shorter, const SamePlaces& same, CallAlignment& alignment) {
  AlignmentEnds at;
  std::vector<size_t> pending;
  for (; at.longer < longer && at.shorter < shorter && pending.size() <= kFarthestDrop; ++at.longer) {
    if (!same(at.longer, at.shorter)) {
      pending.push_back(at.longer);
      continue;
    }
    alignment.dropped.insert(alignment.dropped.end(), pending.begin(), pending.end());
    pending.clear();
    ++alignment.matched;
    ++at.shorter;
  }
  alignment.trailing = pending.size();
  return at;
}

// One place for every different call that was taken out; empty where there are too many.
std::vector<size_t> KindsDropped(const CallAlignment& alignment, const SamePlaces& same_in_longer) {
  std::vector<size_t> kinds;
  for (const size_t place : alignment.dropped) {
    if (std::any_of(kinds.begin(), kinds.end(), [&](size_t kind) { return same_in_longer(kind, place); })) continue;
    if (kinds.size() == kMostKindsDropped) return {};
    kinds.push_back(place);
  }
  return kinds;
}

bool IsForeign(const std::vector<size_t>& kinds, size_t shorter, const SamePlaces& same) {
  for (const size_t kind : kinds)
    for (size_t i = 0; i < shorter; ++i)
      if (same(kind, i)) return false;
  return !kinds.empty();
}

size_t EvenDistance(const std::vector<size_t>& places) {
  if (places.size() < 2) return 0;
  const size_t distance = places[1] - places[0];
  for (size_t i = 2; i < places.size(); ++i)
    if (places[i] - places[i - 1] != distance) return 0;
  return distance;
}

}  // namespace

std::optional<CallAlignment> AlignByDropping(size_t longer, size_t shorter, const SamePlaces& same,
                                             const SamePlaces& same_in_longer) {
  CallAlignment alignment;
  const AlignmentEnds ends = Walk(longer, shorter, same, alignment);
  const size_t taken_out = alignment.dropped.size() + alignment.trailing;
  if (alignment.dropped.empty() || alignment.matched < kFewestMatches || alignment.matched + 2 < taken_out)
    return std::nullopt;
  const std::vector<size_t> kinds = KindsDropped(alignment, same_in_longer);
  alignment.foreign = IsForeign(kinds, ends.shorter, same);
  alignment.alike = kinds.size() == 1;
  // Calls that the others issue, too, can be taken out of any order until it fits: they must be few, and the same call
  // every time or all in one place.
  const bool in_one_place = alignment.dropped.back() - alignment.dropped.front() + 1 == alignment.dropped.size();
  if (!alignment.foreign && (alignment.matched + 2 < 2 * taken_out || !(alignment.alike || in_one_place)))
    return std::nullopt;
  alignment.every = EvenDistance(alignment.dropped);
  return alignment;
}

}  // namespace tacet
