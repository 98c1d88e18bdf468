// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/plain_figures.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

Incident WithSteps(std::vector<StepShare> steps) {
  Incident incident;
  incident.outlines.emplace_back().steps = std::move(steps);
  return incident;
}

TEST(PlainFiguresJudged, TheFirstBatchOfEachEpoch) {
  const Incident slow =
      WithSteps({{1, 0, 40, 39, {}}, {1, 50, 0.4, 0.01, {}}, {2, 0, 42, 41, {}}, {2, 50, 0.4, 0.01, {}}});
  const auto wait = FindDataWait(slow);
  ASSERT_TRUE(wait);
  EXPECT_TRUE(wait->each_epoch);
  EXPECT_EQ(wait->longest.size(), 2u);
  EXPECT_FALSE(FindDataWait(WithSteps({{1, 0, 40, 39, {}}, {1, 50, 0.4, 0.01, {}}, {1, 99, 0.4, 0.01, {}}})))
      << "the first of the run is always slow";
  EXPECT_TRUE(FindSlowFirstBatches(WithSteps({{1, 0, 40, -1, {}}, {1, 9, 0.4, -1, {}}, {2, 0, 41, -1, {}}})));
  EXPECT_FALSE(FindSlowFirstBatches(WithSteps({{1, 0, 40, -1, {}}, {1, 9, 0.4, -1, {}}, {2, 0, 0.5, -1, {}}})));
}

TEST(PlainFiguresJudged, AFewLinesThatStandForManySteps) {
  const auto lines = [](double data, int64_t apart) {
    std::vector<StepShare> steps;
    for (int64_t i = 1; i <= 4; ++i) steps.push_back({1, i * apart, 2.4, data, {}});
    return WithSteps(steps);
  };
  EXPECT_TRUE(FindDataWait(lines(2.1, 50))) << "150 steps";
  EXPECT_FALSE(FindDataWait(lines(2.1, 1))) << "three steps show little";
  EXPECT_FALSE(FindDataWait(lines(0.1, 50)));
}

TEST(PlainFiguresJudged, UtilizationNeedsTwoLowFiguresAndNoHighOne) {
  Incident incident;
  auto& all = incident.outlines.emplace_back().utilizations;
  all = {{0.8, {}}};
  EXPECT_FALSE(FindLowUtilization(incident));
  all = {{0.8, {}}, {2.2, {}}};
  EXPECT_TRUE(FindLowUtilization(incident));
  all = {{0.8, {}}, {34, {}}};
  EXPECT_FALSE(FindLowUtilization(incident));
}

TEST(PlainFiguresJudged, RatesAreComparedWhereTheyAreComparable) {
  Incident incident;
  LogOutline& outline = incident.outlines.emplace_back();
  outline.rates = {{"allreduce", 16, 5, {}}, {"allreduce", 8, 210, {}}};
  EXPECT_TRUE(FindSlowSpan(incident));
  outline.rates = {{"allreduce", 16, 88, {}}, {"allreduce", 8, 210, {}}};
  EXPECT_FALSE(FindSlowSpan(incident)) << "NVLink is faster than a network by design";
  outline.rates = {{"allgather", 16, 5, {}}, {"allreduce", 8, 210, {}}};
  EXPECT_FALSE(FindSlowSpan(incident));
  outline.pairs = {{"1", "2", 25, {}}, {"1", "3", 39, {}}};
  const auto pairs = FindUnequalPairs(incident);
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs->suspect, "2");
  EXPECT_EQ(pairs->shared, "1");
  outline.pairs = {{"1", "2", 38, {}}, {"1", "3", 39, {}}};
  EXPECT_FALSE(FindUnequalPairs(incident));
  // A bare figure is not compared with one that has a unit.
  outline.pairs = {{"1", "2", 25, {}}, {"1", "3", 200, {}, false}};
  EXPECT_FALSE(FindUnequalPairs(incident));
}

}  // namespace
}  // namespace tacet
