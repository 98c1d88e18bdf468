// SPDX-License-Identifier: Apache-2.0
#include "analysis/plain_figures.h"

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

// One line per rank and step: the values as they are printed.
Incident WithValues(bool losses, const std::vector<std::vector<std::string>>& steps) {
  Incident incident;
  LogOutline& outline = incident.outlines.emplace_back();
  for (size_t step = 0; step < steps.size(); ++step)
    for (size_t rank = 0; rank < steps[step].size(); ++rank)
      outline.values.push_back(
          {static_cast<int32_t>(rank), losses, "step " + std::to_string(step), steps[step][rank], {}});
  return incident;
}

TEST(PlainFiguresJudged, ALossThatOneRankLosesFirst) {
  const Incident first = WithValues(true, {{"2.1", "2.2", "2.0"}, {"2.1", "2.2", "nan"}, {"nan", "nan", "nan"}});
  const auto found = FindFirstNonFinite(first);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first->rank, 2);
  EXPECT_EQ(found->first->at, "step 1");
  EXPECT_EQ(found->finite, 2u);
  EXPECT_FALSE(FindFirstNonFinite(WithValues(true, {{"2.1", "2.2"}, {"nan", "nan"}, {"nan", "nan"}}))) << "all at once";
  EXPECT_FALSE(FindFirstNonFinite(WithValues(true, {{"2.1", "nan"}, {"2.1", "2.2"}}))) << "a step that was skipped";
  EXPECT_FALSE(FindFirstNonFinite(WithValues(true, {{"2.1", "2.2"}, {"2.1", "2.2"}})));
}

TEST(PlainFiguresJudged, ParametersOfOneRankThatPart) {
  const Incident parts =
      WithValues(false, {{"15.5", "15.5", "15.5"}, {"15.7", "15.7", "15.1"}, {"15.9", "15.9", "15.3"}});
  const auto drift = FindDriftedReplica(parts);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->odd->rank, 2);
  EXPECT_EQ(drift->odd->at, "step 1");
  EXPECT_EQ(drift->agreed->at, "step 0");
  EXPECT_EQ(drift->usual->value, "15.7");
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1", "2", "3"}, {"2", "3", "4"}}))) << "shards, never equal";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1", "1", "1"}, {"2", "2", "3"}, {"4", "4", "4"}})))
      << "they agree again";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1", "1", "1"}, {"2", "2", "3"}}))) << "one step shows little";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1.0", "1.0", "1.0"}, {"2.31", "2.31", "2.30"}, {"3.41", "3.41", "3.40"}})))
      << "rounded";
  const auto two = FindDriftedReplica(WithValues(false, {{"1", "1"}, {"2", "2"}, {"3", "4"}, {"5", "7"}}));
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->which()) << "of two, which is it?";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"0", "0"}, {"2", "3"}, {"2", "3"}}))) << "equal at the start only";
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
