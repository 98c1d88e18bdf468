// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "analysis/timing/timeline_fixture.h"

namespace tacet {

namespace {

constexpr int64_t kMs = 1'000'000;

std::vector<Group> World(int32_t size) {
  Group group;
  group.name = "0";
  for (int32_t r = 0; r < size; ++r) group.members.push_back({r});
  return {group};
}

// What a rank does in a step before it comes to the all-reduce.
struct Before {
  int64_t host = 0, loader = 0, compute = 20 * kMs;
};

// Some host time, some compute, one all-reduce that ends for all `transfer` after the last has come.
std::vector<Timeline> MakeJob(int32_t ranks, int steps, const std::function<Before(int32_t rank, int step)>& plan,
                              int64_t transfer = 30 * kMs) {
  std::vector<Timeline> out;
  for (int32_t r = 0; r < ranks; ++r) out.push_back(MakeTimeline(r));
  std::mt19937 random(1);
  int64_t t = 0;
  for (int s = 0; s < steps; ++s) {
    std::vector<int64_t> start(static_cast<size_t>(ranks));
    std::vector<Before> plans;
    for (int32_t r = 0; r < ranks; ++r) {
      Before before = plan(r, s);
      before.host += static_cast<int64_t>(random() % (2 * kMs));
      plans.push_back(before);
      start[static_cast<size_t>(r)] = t + kMs + before.host + before.loader + before.compute;
    }
    const int64_t end = *std::max_element(start.begin(), start.end()) + transfer;
    for (int32_t r = 0; r < ranks; ++r) {
      Timeline& timeline = out[static_cast<size_t>(r)];
      const Before& before = plans[static_cast<size_t>(r)];
      const int64_t issue = t + before.host + before.loader;
      if (before.loader > 0) timeline.ranges.push_back({t, t + before.loader, {}, 0, HostWork::data_loading});
      AddGpu(timeline, GpuWork::compute, issue + kMs, issue + kMs + before.compute, issue);
      AddCollective(timeline, OpKind::all_reduce, issue + 1000, start[static_cast<size_t>(r)],
                    end + static_cast<int64_t>(random() % 1000));
      timeline.steps.push_back({s, t, end + 10 * kMs});
      timeline.begin_ns = 0;
    }
    t = end + 10 * kMs;
  }
  return out;
}

TEST(Straggler, NamesNobodyInAHealthyJob) {
  const auto job = MakeJob(4, 6, [](int32_t, int) { return Before{}; });
  EXPECT_TRUE(FindStragglersInTraces(job, World(4)).stragglers.empty());
}

TEST(Straggler, NamesNobodyFromASingleStep) {
  const auto job = MakeJob(4, 1, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; });
  EXPECT_TRUE(FindStragglersInTraces(job, World(4)).stragglers.empty());
}

TEST(Straggler, OfTwoRanksTheLateOneIsLateBehindTheOtherAndNotBehindHalfOfItself) {
  const auto job = MakeJob(2, 8, [](int32_t r, int) { return Before{.compute = (r == 1 ? 60 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(2));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_NEAR(static_cast<double>(report.stragglers[0].late_ns), 40.0 * kMs, 2.0 * kMs);
  EXPECT_GE(report.stragglers[0].share, report.stragglers[0].cost - 1e-9);
}

TEST(Straggler, NamesTheRankWithMoreGpuWork) {
  const auto job = MakeJob(4, 6, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 2);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::gpu_work);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::persistent);
  EXPECT_NEAR(report.cost_share, 40.0 / 102, 0.03);
}

TEST(Straggler, NamesTheRankWithASlowHost) {
  const auto job = MakeJob(4, 6, [](int32_t r, int) { return Before{.host = (r == 1 ? 25 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 1);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::host);
}

TEST(Straggler, TellsDataLoadingFromOtherHostTime) {
  const auto job = MakeJob(4, 6, [](int32_t r, int) { return Before{.loader = (r == 1 ? 25 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::data_loading);
}

TEST(Straggler, CallsARankThatIsLateNowAndThenIntermittent) {
  const auto job =
      MakeJob(4, 10, [](int32_t r, int s) { return Before{.host = (r == 3 && s % 4 == 1 ? 80 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 3);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
  EXPECT_EQ(report.stragglers[0].late_steps, 3u);
}

TEST(Straggler, TwoStallsOfAWholeStepAreEnoughInALongTrace) {
  const auto job =
      MakeJob(4, 16, [](int32_t r, int s) { return Before{.host = (r == 2 && s % 7 == 3 && s < 12 ? 400 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 2);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
}

TEST(Straggler, OneStallInALongTraceIsAHiccup) {
  const auto job = MakeJob(4, 16, [](int32_t r, int s) { return Before{.host = (r == 2 && s == 3 ? 400 : 0) * kMs}; });
  EXPECT_TRUE(FindStragglersInTraces(job, World(4)).stragglers.empty());
}

TEST(Straggler, NamesBothOfTwo) {
  const auto job = MakeJob(8, 6, [](int32_t r, int) { return Before{.compute = (r == 2 || r == 5 ? 50 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(8));
  ASSERT_EQ(report.stragglers.size(), 2u);
  EXPECT_EQ(report.stragglers[0].rank.value + report.stragglers[1].rank.value, 7);
}

TEST(Straggler, CallsChangingHeavyRanksUnevenInput) {
  const auto job = MakeJob(4, 8, [](int32_t r, int s) { return Before{.compute = (r == s % 4 ? 50 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_FALSE(report.stragglers.empty());
  for (const Straggler& one : report.stragglers) EXPECT_EQ(one.origin, StragglerOrigin::uneven_input);
}

TEST(Straggler, IsNotMisledBySkewedClocks) {
  auto job = MakeJob(4, 12, [](int32_t r, int) { return Before{.host = (r == 1 ? 25 : 0) * kMs}; });
  for (auto& event : job[0].gpu)
    event.start_ns += 500 * kMs, event.end_ns += 500 * kMs;  // rank 0's clock is half a second ahead
  for (auto& launch : job[0].launches) launch.start_ns += 500 * kMs;
  for (auto& step : job[0].steps) step.start_ns += 500 * kMs, step.end_ns += 500 * kMs;
  for (auto& operation : job[0].collectives) operation.enter_ns += 500 * kMs;
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 1);
}

TEST(Straggler, FindsStepsByWhatRepeatsWhereNoneAreMarked) {
  auto job = MakeJob(4, 8, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; });
  for (Timeline& timeline : job) timeline.steps.clear();
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 2);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::gpu_work);
  auto even = MakeJob(4, 8, [](int32_t, int) { return Before{}; });
  for (Timeline& timeline : even) timeline.steps.clear();
  EXPECT_TRUE(FindStragglersInTraces(even, World(4)).stragglers.empty());
}

// Jobs of many shapes: world size, step count, share of communication, jitter, who is slow and by how much are drawn
// anew for every seed, so that no threshold is right by accident of one recording.
struct DrawnJob {
  explicit DrawnJob(unsigned seed) : random(seed) {
    const int32_t sizes[] = {2, 3, 4, 6, 8, 16, 32};
    ranks = sizes[random() % 7];
    steps = static_cast<int>(Between(3, 12));
    compute = Between(5, 80) * kMs;
    transfer = Between(5, 80) * kMs;
    jitter = (compute + transfer) / 40;
    guilty = static_cast<int32_t>(random() % static_cast<unsigned>(ranks));
    extra = (compute + transfer + 10 * kMs) * Between(20, 120) / 100;
  }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  }
  // `place` adds the extra time where the fault is.
  std::vector<Timeline> Make(const std::function<void(Before&, int step)>& place) {
    return MakeJob(
        ranks, steps,
        [&](int32_t r, int s) {
          Before before{.host = Between(0, jitter), .compute = compute + Between(0, jitter)};
          if (r == guilty) place(before, s);
          return before;
        },
        transfer);
  }
  std::mt19937 random;
  int32_t ranks = 0, guilty = 0;
  int steps = 0;
  int64_t compute = 0, transfer = 0, jitter = 0, extra = 0;
};

class DrawnStragglers : public testing::TestWithParam<unsigned> {
 protected:
  void Expect(DrawnJob& job, const std::vector<Timeline>& timelines, StragglerOrigin origin) {
    const StragglerReport report = FindStragglersInTraces(timelines, World(job.ranks));
    const std::string shape = std::to_string(job.ranks) + " ranks, " + std::to_string(job.steps) + " steps";
    ASSERT_EQ(report.stragglers.size(), 1u) << shape;
    EXPECT_EQ(report.stragglers[0].rank.value, job.guilty) << shape;
    EXPECT_EQ(report.stragglers[0].origin, origin) << shape;
    EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::persistent) << shape;
  }
};

TEST_P(DrawnStragglers, NobodyIsNamedInAnEvenJob) {
  DrawnJob job(GetParam());
  EXPECT_TRUE(FindStragglersInTraces(job.Make([](Before&, int) {}), World(job.ranks)).stragglers.empty());
}

TEST_P(DrawnStragglers, MoreGpuWork) {
  DrawnJob job(GetParam());
  Expect(job, job.Make([&](Before& before, int) { before.compute += job.extra; }), StragglerOrigin::gpu_work);
}

TEST_P(DrawnStragglers, ASlowHost) {
  DrawnJob job(GetParam());
  Expect(job, job.Make([&](Before& before, int) { before.host += job.extra; }), StragglerOrigin::host);
}

TEST_P(DrawnStragglers, ALateLoader) {
  DrawnJob job(GetParam());
  Expect(job, job.Make([&](Before& before, int) { before.loader += job.extra; }), StragglerOrigin::data_loading);
}

TEST_P(DrawnStragglers, AStallNowAndThen) {
  DrawnJob job(GetParam());
  job.steps = std::max(job.steps, 6);
  const auto timelines = job.Make([&](Before& before, int step) {
    if (step % 4 == 1) before.host += 2 * job.extra + 40 * kMs;
  });
  const StragglerReport report = FindStragglersInTraces(timelines, World(job.ranks));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, job.guilty);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
}

TEST_P(DrawnStragglers, WithoutTheTraceOfTheGuiltyNobodyIsNamed) {
  DrawnJob job(GetParam());
  auto timelines = job.Make([&](Before& before, int) { before.compute += job.extra; });
  timelines.erase(timelines.begin() + job.guilty);
  EXPECT_TRUE(FindStragglersInTraces(timelines, World(job.ranks)).stragglers.empty());
}

TEST_P(DrawnStragglers, WithoutTheTraceOfAnotherTheGuiltyIsNamedOrNobody) {
  DrawnJob job(GetParam());
  auto timelines = job.Make([&](Before& before, int) { before.compute += job.extra; });
  timelines.erase(timelines.begin() + (job.guilty + 1) % job.ranks);
  const StragglerReport report = FindStragglersInTraces(timelines, World(job.ranks));
  for (const Straggler& one : report.stragglers) EXPECT_EQ(one.rank.value, job.guilty);
  if (job.ranks > 2) {
    EXPECT_EQ(report.stragglers.size(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnStragglers, testing::Range(0u, 24u));

}  // namespace
}  // namespace tacet
