// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/time_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

TEST(TimeBudget, CountsEveryMomentOfAStepOnce) {
  Timeline timeline = MakeTimeline(0);
  timeline.steps = {{4, 0, 1000}};
  timeline.ranges = {{0, 60, timeline.names.Intern("DataLoader"), 0, HostWork::data_loading}};
  AddGpu(timeline, GpuWork::compute, 100, 300, 80);
  AddGpu(timeline, GpuWork::communication, 250, 500, 90);
  AddGpu(timeline, GpuWork::copy, 480, 550, 95);
  AddGpu(timeline, GpuWork::compute, 700, 800, 680);
  const RankBudget out = MeasureTimeBudget(timeline);
  ASSERT_EQ(out.steps.size(), 1u);
  const TimeBudget& budget = out.steps[0].budget;
  EXPECT_EQ(budget.compute_only_ns, 250);
  EXPECT_EQ(budget.hidden_ns, 50);
  EXPECT_EQ(budget.exposed_ns, 200);
  EXPECT_EQ(budget.copies_ns, 50);
  EXPECT_EQ(budget.data_wait_ns, 60);              // 0..60 in the loader
  EXPECT_EQ(budget.host_wait_ns, 20 + 130 + 200);  // 60..80, 550..680, 800..1000
  EXPECT_EQ(budget.launch_ns, 20 + 20);            // 80..100, 680..700
  EXPECT_EQ(budget.total_ns(), 1000);
}

TEST(TimeBudget, LaysAGapBehindAnEarlyLaunchToTheLaunch) {
  Timeline timeline = MakeTimeline(0);
  timeline.steps = {{0, 100, 300}};
  AddGpu(timeline, GpuWork::compute, 100, 150, 10);
  AddGpu(timeline, GpuWork::compute, 200, 300, 20);  // queued long before the first one ended
  const TimeBudget budget = MeasureTimeBudget(timeline).total;
  EXPECT_EQ(budget.launch_ns, 50);
  EXPECT_EQ(budget.host_wait_ns, 0);
}

TEST(TimeBudget, WithoutStepMarksTheGpuEventsAreTheWindow) {
  Timeline timeline = MakeTimeline(0);
  AddGpu(timeline, GpuWork::compute, 100, 150, 10);
  AddGpu(timeline, GpuWork::compute, 400, 500, 390);
  const RankBudget out = MeasureTimeBudget(timeline);
  ASSERT_EQ(out.steps.size(), 1u);
  EXPECT_EQ(out.steps[0].step.number, -1);
  EXPECT_EQ(out.total.total_ns(), 400);
  EXPECT_TRUE(MeasureTimeBudget(MakeTimeline(0)).steps.empty());
}

// One decision a nanosecond, written from the definition.
TimeBudget CountMoments(const Timeline& timeline, const TrainingStep& step) {
  TimeBudget out;
  const auto running = [&](int64_t t, auto wanted) {
    return std::any_of(timeline.gpu.begin(), timeline.gpu.end(),
                       [&](const GpuEvent& e) { return wanted(e.work) && e.start_ns <= t && t < e.end_ns; });
  };
  for (int64_t t = step.start_ns; t < step.end_ns; ++t) {
    const bool compute = running(t, [](GpuWork w) { return w == GpuWork::compute; });
    const bool communication = running(t, [](GpuWork w) { return w == GpuWork::communication; });
    const bool copy = running(t, [](GpuWork w) { return w == GpuWork::copy || w == GpuWork::memset; });
    if (compute && communication)
      ++out.hidden_ns;
    else if (compute)
      ++out.compute_only_ns;
    else if (communication)
      ++out.exposed_ns;
    else if (copy)
      ++out.copies_ns;
    else {
      // The gap goes on to the next start of a GPU event, or to the end of the step.
      const GpuEvent* next = nullptr;
      for (const GpuEvent& e : timeline.gpu)
        if (e.start_ns > t && (!next || e.start_ns < next->start_ns)) next = &e;
      const bool asked = next && next->launch != kNoIndex && timeline.launches[next->launch].start_ns <= t;
      bool loading = false;
      for (const HostRange& r : timeline.ranges) loading |= r.start_ns <= t && t < r.end_ns;
      ++(asked ? out.launch_ns : loading ? out.data_wait_ns : out.host_wait_ns);
    }
  }
  return out;
}

TEST(TimeBudget, AgreesWithACountOfMomentsOnRandomTimelines) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Timeline timeline = MakeTimeline(0);
    int64_t t = static_cast<int64_t>(random() % 20);
    for (unsigned i = 0, n = random() % 14; i < n; ++i) {
      t += static_cast<int64_t>(random() % 25) + 1;  // distinct starts: "the next event" is one event
      const auto work = static_cast<GpuWork>(random() % 4);
      AddGpu(timeline, work, t, t + static_cast<int64_t>(random() % 30) + 1,
             random() % 5 == 0 ? -1 : std::max<int64_t>(0, t - static_cast<int64_t>(random() % 40)));
    }
    if (random() % 2) timeline.ranges = {{10, 60, {}, 0, HostWork::data_loading}};
    timeline.steps = {{0, 5, 150}, {1, 150, 420}};
    const RankBudget out = MeasureTimeBudget(timeline);
    for (const StepBudget& step : out.steps) {
      const TimeBudget expected = CountMoments(timeline, step.step);
      ASSERT_EQ(step.budget.compute_only_ns, expected.compute_only_ns);
      ASSERT_EQ(step.budget.hidden_ns, expected.hidden_ns);
      ASSERT_EQ(step.budget.exposed_ns, expected.exposed_ns);
      ASSERT_EQ(step.budget.copies_ns, expected.copies_ns);
      ASSERT_EQ(step.budget.total_ns(), step.step.end_ns - step.step.start_ns);
      ASSERT_EQ(step.budget.launch_ns, expected.launch_ns);
      ASSERT_EQ(step.budget.host_wait_ns, expected.host_wait_ns);
      ASSERT_EQ(step.budget.data_wait_ns, expected.data_wait_ns);
    }
  }
}

}  // namespace
}  // namespace tacet
