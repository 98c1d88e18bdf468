// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tacet {

// [begin, end) in ns.
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A set of moments: sorted, none empty, none touching its neighbour. All functions below expect and return such sets,
// except that MergeIntervals takes intervals in any order.
using IntervalSet = std::vector<Interval>;

IntervalSet MergeIntervals(std::vector<Interval> intervals);
IntervalSet Unite(const IntervalSet& a, const IntervalSet& b);
IntervalSet Intersect(const IntervalSet& a, const IntervalSet& b);
IntervalSet Subtract(const IntervalSet& a, const IntervalSet& b);
IntervalSet Clip(const IntervalSet& a, Interval window);
int64_t TotalLength(const IntervalSet& a);
int64_t IntersectionLength(const IntervalSet& a, const IntervalSet& b);

}  // namespace tacet
