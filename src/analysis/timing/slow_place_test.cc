// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/slow_place.h"

#include <gtest/gtest.h>

#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

constexpr int64_t kUs = 1'000;

// Eight steps of forty launches, 50 us apart; `extra` is added before a launch.
template <typename Extra>
Timeline Host(int32_t rank, const Extra& extra) {
  Timeline timeline = MakeTimeline(rank);
  int64_t now = 0;
  for (int64_t step = 0; step < 8; ++step) {
    const int64_t begin = now;
    for (int i = 0; i < 40; ++i) {
      now += 50 * kUs + extra(i);
      AddGpu(timeline, GpuWork::compute, now + 10 * kUs, now + 20 * kUs, now, i == 7 ? "void gemm<float>(int)" : "add");
    }
    now += 50 * kUs;
    timeline.steps.push_back({step, begin, now});
  }
  return timeline;
}

template <typename... Hosts>
std::vector<Timeline> Job(Hosts... hosts) {  // timelines are not copied
  std::vector<Timeline> out;
  (out.push_back(std::move(hosts)), ...);
  return out;
}

const auto kPlain = [](int) { return int64_t{0}; };

TEST(SlowPlace, ADelayInOnePlaceIsFoundThere) {
  const std::vector<Timeline> job =
      Job(Host(0, kPlain), Host(1, [](int i) { return i == 7 ? 900 * kUs : 0; }), Host(2, kPlain), Host(3, kPlain));
  const SlowPlace place = FindSlowPlace(job, {1});
  EXPECT_EQ(place.steps, 8u);
  EXPECT_EQ(place.launch, 7u);
  EXPECT_EQ(place.launches, 40u);
  EXPECT_NEAR(place.late_ns, 900e3, 1);
  EXPECT_TRUE(place.HoldsMostOf(1e6));
  EXPECT_FALSE(place.HoldsMostOf(5e6)) << "most of it came about elsewhere";
  EXPECT_EQ(place.Words(), "before launch 8 of 40 (gemm)");
  EXPECT_FALSE(FindSlowPlace(job, {2}).HoldsMostOf(0));
}

TEST(SlowPlace, AHostThatIsSlowerAsAWholeHasNone) {
  const std::vector<Timeline> job = Job(Host(0, kPlain), Host(1, [](int) { return 25 * kUs; }), Host(2, kPlain));
  const SlowPlace place = FindSlowPlace(job, {1});
  EXPECT_EQ(place.steps, 8u);
  EXPECT_FALSE(place.HoldsMostOf(1e6));
}

TEST(SlowPlace, WaitingForTheGpuIsNoWorkOfTheHost) {
  const auto waits = [](int i) { return i == 20 ? 900 * kUs : 0; };
  std::vector<Timeline> job = Job(Host(0, kPlain), Host(1, waits), Host(2, kPlain));
  EXPECT_TRUE(FindSlowPlace(job, {1}).HoldsMostOf(1e6));
  for (const TrainingStep& step : job[1].steps) {
    const int64_t begin = step.start_ns + 21 * 50 * kUs;
    HostRange range;
    range.start_ns = begin, range.end_ns = begin + 890 * kUs, range.work = HostWork::device_wait;
    job[1].ranges.push_back(range);
  }
  EXPECT_FALSE(FindSlowPlace(job, {1}).HoldsMostOf(1e6));
}

TEST(SlowPlace, WorkThatDiffersIsNotCompared) {
  std::vector<Timeline> job = Job(Host(0, kPlain), Host(1, kPlain));
  job[1].launches.erase(job[1].launches.begin() + 3, job[1].launches.begin() + 5);
  for (size_t i = 40; i < job[1].launches.size(); i += 39)
    job[1].launches.erase(job[1].launches.begin() + static_cast<ptrdiff_t>(i));
  EXPECT_EQ(FindSlowPlace(job, {1}).steps, 0u);
  EXPECT_EQ(FindSlowPlace({}, {1}).steps, 0u);
  EXPECT_EQ(FindSlowPlace(job, {9}).steps, 0u);
}

TEST(SlowPlace, BothEndsOfTheStepHaveNames) {
  SlowPlace place;
  place.launches = 40;
  EXPECT_EQ(place.Words(), "at the beginning of the step, before its first launch");
  place.launch = 40;
  EXPECT_EQ(place.Words(), "at the end of the step, after its last launch");
}

}  // namespace
}  // namespace tacet
