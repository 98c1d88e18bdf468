// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/shifted_wait.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace tacet {
namespace {

// "r0 s019 local=1.822 update=0.080", one line per rank and step.
using Figures = std::function<std::pair<double, double>(int rank, int step)>;
Incident Printed(int ranks, int steps, const Figures& figures) {
  Incident incident;
  LogOutline& outline = incident.outlines.emplace_back();
  outline.decimal_names = {"local", "update"};
  for (int step = 0; step < steps; ++step)
    for (int rank = 0; rank < ranks; ++rank) {
      const auto [local, update] = figures(rank, step);
      outline.decimals.push_back({rank, -1, step, 0, local, {}});
      outline.decimals.push_back({rank, -1, step, 1, update, {}});
    }
  return incident;
}

TEST(ShiftedWait, EveryTenthStepOneRankSavesAndTheOthersWait) {
  const auto found = FindShiftedWait(Printed(3, 60, [](int rank, int step) {
    const bool saves = step % 10 == 9;
    return std::pair(saves && rank == 0 ? 1.8 : 0.0, saves && rank != 0 ? 1.9 : 0.08);
  }));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, Rank{0});
  EXPECT_EQ(found->own_name, "local");
  EXPECT_EQ(found->wait_name, "update");
  EXPECT_EQ(found->events, 6u);
  EXPECT_FALSE(found->persistent());
}

TEST(ShiftedWait, ARankThatIsSlowInEveryStep) {
  const auto found = FindShiftedWait(
      Printed(4, 20, [](int rank, int) { return rank == 2 ? std::pair(0.5, 0.1) : std::pair(0.1, 0.5); }));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, Rank{2});
  EXPECT_TRUE(found->persistent());
}

TEST(ShiftedWait, TellsWhetherThePartGrows) {
  const auto growing = FindShiftedWait(Printed(3, 14, [](int rank, int step) {
    const double own = 0.02 + 0.055 * step;
    return rank == 1 ? std::pair(own, 0.03) : std::pair(0.004, own);
  }));
  ASSERT_TRUE(growing);
  EXPECT_NEAR(growing->grows_from, 0.075, 1e-9);
  EXPECT_NEAR(growing->grows_to, 0.735, 1e-9);
  const auto level = FindShiftedWait(Printed(3, 14, [](int rank, int step) {
    const double own = step % 2 == 0 ? 0.4 : 0.5;
    return rank == 1 ? std::pair(own, 0.03) : std::pair(0.004, own);
  }));
  ASSERT_TRUE(level);
  EXPECT_EQ(level->grows_to, 0) << "it moves, and does not grow";
}

TEST(ShiftedWait, WhatTheOthersDoNotFeelIsNone) {
  EXPECT_FALSE(FindShiftedWait(Printed(3, 40, [](int rank, int step) {
    return std::pair(rank == 0 && step % 10 == 9 ? 1.8 : 0.1, 0.1);
  }))) << "nobody waits for it";
  EXPECT_FALSE(FindShiftedWait(Printed(3, 40, [](int rank, int step) {
    const bool late = step % 3 == rank;
    return late ? std::pair(0.5, 0.1) : std::pair(0.1, 0.5);
  }))) << "another rank each time";
  EXPECT_FALSE(FindShiftedWait(Printed(3, 40, [](int, int step) {
    return std::pair(step % 10 == 9 ? 1.8 : 0.1, 0.1);
  }))) << "all alike";
  EXPECT_FALSE(FindShiftedWait(Printed(1, 40, [](int, int) { return std::pair(0.5, 0.1); })));
}

}  // namespace
}  // namespace tacet
