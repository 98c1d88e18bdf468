// SPDX-License-Identifier: Apache-2.0
#include "live/growing_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

namespace tacet {
namespace {

TEST(GrowingPool, WorkThatWaitsHoldsNobodyUp) {
  std::latch slow_go(1), quick_done(1);
  GrowingPool pool(1, 64);
  for (int i = 0; i < 40; ++i) pool.Add([&] { slow_go.wait(); });
  pool.Add([&] { quick_done.count_down(); });
  quick_done.wait();  // for ever, if forty threads could not wait at a time
  EXPECT_GE(pool.threads(), 41u);
  slow_go.count_down();
}

TEST(GrowingPool, HasNoMoreThreadsThanItMayAndForgetsNothing) {
  std::atomic<int> done{0}, at_once{0}, most{0};
  {
    GrowingPool pool(2, 4);
    for (int i = 0; i < 500; ++i)
      pool.Add([&] {
        const int now = ++at_once;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
        std::this_thread::yield();
        --at_once;
        ++done;
      });
  }
  EXPECT_EQ(done, 500);
  EXPECT_LE(most, 4);
}

}  // namespace
}  // namespace tacet
