// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>

namespace tacet {
namespace {

constexpr int kMoments = 96;
using Moments = std::bitset<kMoments>;

// The same sets as one bit a moment: slow, obvious, and independent of the code under test.
Moments ToMoments(const std::vector<Interval>& intervals) {
  Moments out;
  for (const Interval& i : intervals)
    for (int64_t t = i.begin; t < i.end; ++t) out.set(static_cast<size_t>(t));
  return out;
}

IntervalSet FromMoments(const Moments& moments) {
  IntervalSet out;
  for (int t = 0; t < kMoments; ++t) {
    if (!moments.test(static_cast<size_t>(t))) continue;
    if (!out.empty() && out.back().end == t) {
      ++out.back().end;
    } else {
      out.push_back({t, t + 1});
    }
  }
  return out;
}

std::vector<Interval> RandomIntervals(std::mt19937& random) {
  std::vector<Interval> out(random() % 12);
  for (Interval& i : out) {
    i.begin = static_cast<int64_t>(random() % kMoments);
    i.end = std::min<int64_t>(kMoments, i.begin + static_cast<int64_t>(random() % 14));
  }
  return out;
}

TEST(Interval, AgreesWithABitPerMomentOnRandomSets) {
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    const auto raw_a = RandomIntervals(random), raw_b = RandomIntervals(random);
    const Moments ma = ToMoments(raw_a), mb = ToMoments(raw_b);
    const IntervalSet a = MergeIntervals(raw_a), b = MergeIntervals(raw_b);
    ASSERT_EQ(a, FromMoments(ma));
    ASSERT_EQ(Unite(a, b), FromMoments(ma | mb));
    ASSERT_EQ(Intersect(a, b), FromMoments(ma & mb));
    ASSERT_EQ(Subtract(a, b), FromMoments(ma & ~mb));
    ASSERT_EQ(TotalLength(a), static_cast<int64_t>(ma.count()));
    ASSERT_EQ(IntersectionLength(a, b), static_cast<int64_t>((ma & mb).count()));
    const int64_t begin = static_cast<int64_t>(random() % kMoments), end = begin + static_cast<int64_t>(random() % 40);
    ASSERT_EQ(Clip(a, {begin, std::min<int64_t>(end, kMoments)}),
              FromMoments(ma & ToMoments({{begin, std::min<int64_t>(end, kMoments)}})));
  }
}

TEST(Interval, DropsEmptyAndBackwardIntervals) {
  EXPECT_TRUE(MergeIntervals({{5, 5}, {9, 3}}).empty());
  EXPECT_EQ(MergeIntervals({{9, 3}, {1, 2}}), (IntervalSet{{1, 2}}));
}

TEST(Interval, JoinsIntervalsThatTouch) { EXPECT_EQ(MergeIntervals({{3, 5}, {1, 3}}), (IntervalSet{{1, 5}})); }

}  // namespace
}  // namespace tacet
