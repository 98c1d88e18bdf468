// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tacet {
namespace {

TEST(ParallelFor, DoesEveryIndexOnce) {
  for (const unsigned threads : {0u, 1u, 2u, 7u}) {
    std::vector<std::atomic<int>> done(1000);
    ParallelFor(done.size(), threads, [&](size_t i) { ++done[i]; });
    for (const auto& times : done) EXPECT_EQ(times, 1) << threads;
  }
}

TEST(ParallelFor, DoesNothingForNothing) {
  ParallelFor(0, 4, [](size_t) { FAIL(); });
}

TEST(ParallelFor, StaysOnTheCallersThreadWhenOneIsAsked) {
  const auto caller = std::this_thread::get_id();
  std::vector<size_t> order;
  ParallelFor(5, 1, [&](size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(ParallelFor, UsesSeveralThreads) {
  std::atomic<int> arrived{0};
  // Each of the two waits for the other: one thread alone would never finish.
  ParallelFor(2, 2, [&](size_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(CoreCount, IsNeverZero) { EXPECT_GE(CoreCount(), 1u); }

}  // namespace
}  // namespace tacet
