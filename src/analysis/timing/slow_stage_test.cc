// SPDX-License-Identifier: Apache-2.0
// The slowest stage of simulated pipelines, by flight records alone.
#include "analysis/timing/slow_stage.h"

#include <gtest/gtest.h>

#include "analysis/timing/synthetic_job.h"

namespace tacet {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kJobs = 28;
#else
constexpr int kJobs = 196;
#endif

// 2 to 8 stages, one to three replicas; stages differ by up to a tenth, and the last one has an output layer more.
SyntheticPlan PlanOf(int i, int replicas) {
  SyntheticPlan plan;
  plan.layout = SyntheticLayout::pipeline;
  plan.stages = 2 + i % 7;
  plan.ranks = plan.stages * replicas;
  plan.seed = static_cast<unsigned>(5000 + i);
  std::mt19937 random(plan.seed);
  std::uniform_real_distribution<double> differs(0.9, 1.1);
  for (int32_t s = 0; s < plan.stages; ++s) plan.work.push_back(differs(random) + (s + 1 == plan.stages ? 0.2 : 0));
  return plan;
}

StragglerReport Find(const SyntheticPlan& plan) { return FindStragglers(SyntheticJob(plan).AsFlightRecords()); }

TEST(SlowStage, OfTwoHundredHealthyPipelinesAtMostTwoNameAnybody) {
  int named = 0;
  for (int i = 0; i < kJobs; ++i) named += !Find(PlanOf(i, 1 + i % 3)).stragglers.empty();
  EXPECT_LE(named, kJobs / 98);
}

TEST(SlowStage, IsNamedWhereEachStageIsOneRankAndNobodyElse) {
  int named = 0;
  for (int i = 0; i < kJobs; ++i) {
    SyntheticPlan plan = PlanOf(i, 1);
    const auto late = static_cast<size_t>(i / 7 % plan.stages);
    plan.work[late] *= 2.2;
    SyntheticPlan even = plan;
    even.work[late] /= 2.2;
    const double measured = 1 - SyntheticJob(even).step_ns() / SyntheticJob(plan).step_ns();
    const StragglerReport report = Find(plan);
    if (report.stragglers.empty()) continue;
    ++named;
    ASSERT_EQ(report.stragglers.size(), 1u) << i;
    const Straggler& one = report.stragglers[0];
    EXPECT_EQ(one.rank.value, static_cast<int32_t>(late)) << i;
    EXPECT_TRUE(one.among_stages);
    EXPECT_EQ(one.origin, StragglerOrigin::unknown) << "more work or slow: a record of calls does not tell";
    EXPECT_NEAR(one.cost, measured, 0.35 * measured) << i << ", stages " << plan.stages;
    EXPECT_EQ(report.source, "flight records with timing");
    EXPECT_NEAR(static_cast<double>(report.step_ns), SyntheticJob(plan).step_ns(), 0.1 * SyntheticJob(plan).step_ns());
  }
  EXPECT_GE(named, kJobs * 8 / 10);
}

TEST(SlowStage, OfWhateverSizeNobodyInnocentIsNamed) {
  for (int i = 0; i < kJobs; ++i) {
    SyntheticPlan plan = PlanOf(i, 1 + i % 3);
    const auto late = static_cast<size_t>(i / 7 % plan.stages);
    plan.work[late] *= 1 + 0.25 * (1 + i % 5);
    for (const Straggler& one : Find(plan).stragglers)
      EXPECT_EQ(one.rank.value % plan.stages, static_cast<int32_t>(late)) << i;
  }
}

TEST(SlowStage, OfSeveralReplicasIsTheStage) {
  int named = 0;
  for (int i = 0; i < kJobs; ++i) {
    SyntheticPlan plan = PlanOf(i, 2);
    plan.work[0] *= 3;  // gradients may be summed beside the work: more is asked for than of one
    const StragglerReport report = Find(plan);
    if (report.stragglers.empty()) continue;
    ++named;
    EXPECT_EQ(report.stragglers.size(), 2u);
    for (const Straggler& one : report.stragglers) {
      EXPECT_EQ(one.origin, StragglerOrigin::stage) << i;
      EXPECT_EQ(one.rank.value % plan.stages, 0) << i;
    }
  }
  EXPECT_GE(named, kJobs * 8 / 10);
}

// One rank that is slow among its replicas may be named as such; its stage is not.
TEST(SlowStage, IsNotTheOneOfASlowReplica) {
  int named = 0;
  for (int i = 0; i < kJobs; i += 4) {
    SyntheticPlan plan = PlanOf(i, 3);
    plan.late = plan.ranks / 2;
    plan.delay_ns = 60'000'000;
    for (const Straggler& one : Find(plan).stragglers) {
      EXPECT_EQ(one.rank.value, plan.late) << i;
      EXPECT_FALSE(one.among_stages) << i;
      ++named;
    }
  }
  EXPECT_GT(named, 0);
}

}  // namespace
}  // namespace tacet
