// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <stdexcept>
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

TEST(ParallelInOrder, ConsumesInOrderAndNeverKeepsMoreThanTheWindow) {
  for (const size_t window : {size_t{0}, size_t{1}, size_t{3}, size_t{16}}) {
    const size_t places = std::max<size_t>(1, window);
    std::vector<size_t> slots(places, SIZE_MAX), seen;
    ParallelInOrder(
        500, window, [&](size_t i) { slots[i % places] = i; }, [&](size_t i) { seen.push_back(slots[i % places]); });
    ASSERT_EQ(seen.size(), 500u) << window;
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i) << window;
  }
}

TEST(ParallelInOrder, DoesNothingForNothing) {
  ParallelInOrder(
      0, 4, [](size_t) { FAIL(); }, [](size_t) { FAIL(); });
}

TEST(ParallelInOrder, WorksInsideParallelFor) {
  std::vector<size_t> sums(20, 0);
  ParallelFor(sums.size(), 0, [&](size_t file) {
    std::vector<size_t> slots(4);
    ParallelInOrder(
        50, 4, [&](size_t i) { slots[i % 4] = i; }, [&](size_t i) { sums[file] += slots[i % 4]; });
  });
  for (const size_t sum : sums) EXPECT_EQ(sum, 1225u);
}

TEST(ParallelFor, ThrowsAtItsCallerWhatAThreadThrew) {
  for (const unsigned threads : {1u, 2u, 8u}) {
    std::atomic<int> done{0};
    const auto work = [&](size_t i) {
      if (i == 3) throw std::runtime_error("no memory for file 3");
      ++done;
    };
    try {
      ParallelFor(200, threads, work);
      FAIL() << threads;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no memory for file 3");
    }
    EXPECT_LT(done, 200);
  }
}

TEST(ParallelInOrder, ThrowsAtItsCallerWhatEitherStepThrew) {
  for (const bool in_produce : {true, false}) {
    const auto step = [&](bool here, size_t i) {
      if (here && i == 40) throw std::bad_alloc();
    };
    EXPECT_THROW(ParallelInOrder(
                     500, 8, [&](size_t i) { step(in_produce, i); }, [&](size_t i) { step(!in_produce, i); }),
                 std::bad_alloc);
  }
}

// The limit counts the threads of a user, and root has none: hence the child with another uid.
TEST(ParallelFor, DoesAllTheWorkWhereNoThreadCanBeStarted) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none{1, 1};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0 || (::getuid() == 0 && ::setuid(54321) != 0)) ::_exit(9);
    std::atomic<int> done{0};
    ParallelFor(100, 8, [&](size_t) { ++done; });
    std::atomic<int> consumed{0};
    ParallelInOrder(
        100, 8, [](size_t) {}, [&](size_t) { ++consumed; });
    ::_exit(done == 100 && consumed == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CoreCount, IsNeverZero) { EXPECT_GE(CoreCount(), 1u); }

}  // namespace
}  // namespace tacet
