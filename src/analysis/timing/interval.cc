// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/interval.h"

#include <algorithm>

namespace tacet {
namespace {

void Append(IntervalSet& set, Interval next) {
  if (next.begin >= next.end) return;
  if (!set.empty() && next.begin <= set.back().end) {
    set.back().end = std::max(set.back().end, next.end);
  } else {
    set.push_back(next);
  }
}

// The first interval that ends after `ns`.
IntervalSet::const_iterator FirstAfter(const IntervalSet& set, int64_t ns) {
  return std::upper_bound(set.begin(), set.end(), ns, [](int64_t value, const Interval& i) { return value < i.end; });
}

}  // namespace

IntervalSet MergeIntervals(std::vector<Interval> intervals) {
  const auto by_begin = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_begin))
    std::sort(intervals.begin(), intervals.end(), by_begin);
  size_t kept = 0;
  for (const Interval& next : intervals) {
    if (next.begin >= next.end) continue;
    if (kept > 0 && next.begin <= intervals[kept - 1].end) {
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    } else {
      intervals[kept++] = next;
    }
  }
  intervals.resize(kept);
  return intervals;
}

IntervalSet Unite(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet out;
  out.reserve(a.size() + b.size());
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() || y != b.end()) {
    const bool first = y == b.end() || (x != a.end() && x->begin <= y->begin);
    Append(out, first ? *x++ : *y++);
  }
  return out;
}

IntervalSet Intersect(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet out;
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    Append(out, {std::max(x->begin, y->begin), std::min(x->end, y->end)});
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return out;
}

IntervalSet Subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet out;
  auto y = b.begin();
  for (Interval rest : a) {
    while (y != b.end() && y->end <= rest.begin) ++y;
    for (auto hole = y; hole != b.end() && hole->begin < rest.end; ++hole) {
      Append(out, {rest.begin, std::min(hole->begin, rest.end)});
      rest.begin = std::max(rest.begin, hole->end);
      if (rest.begin >= rest.end) break;
    }
    Append(out, rest);
  }
  return out;
}

IntervalSet Clip(const IntervalSet& a, Interval window) {
  IntervalSet out;
  const auto first = FirstAfter(a, window.begin);
  // A long trace has millions of intervals: the room is taken once instead of three times over while it grows.
  out.reserve(static_cast<size_t>(
      std::lower_bound(first, a.end(), window.end, [](const Interval& one, int64_t ns) { return one.begin < ns; }) -
      first));
  for (auto at = first; at != a.end() && at->begin < window.end; ++at)
    Append(out, {std::max(at->begin, window.begin), std::min(at->end, window.end)});
  return out;
}

int64_t TotalLength(const IntervalSet& a) {
  int64_t total = 0;
  for (const Interval& i : a) total += i.length();
  return total;
}

int64_t IntersectionLength(const IntervalSet& a, const IntervalSet& b) {
  int64_t total = 0;
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    const int64_t begin = std::max(x->begin, y->begin), end = std::min(x->end, y->end);
    if (begin < end) total += end - begin;
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return total;
}

}  // namespace tacet
