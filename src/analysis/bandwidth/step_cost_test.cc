// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "analysis/bandwidth/better_way.h"

namespace tacet {
namespace {

constexpr int64_t kMs = 1'000'000;

Sweep AllReduceOf8() {
  Sweep sweep;
  sweep.kind = OpKind::all_reduce;
  sweep.operation = "all_reduce";
  sweep.ranks = 8;
  for (int64_t bytes = 1 << 20; bytes <= 16 << 20; bytes *= 2) {
    SweepPoint& point = sweep.points.emplace_back();
    point.bytes = bytes;
    point.time_us = static_cast<double>(bytes) / 1000;
  }
  return sweep;
}

BetterWay BetterAt(int64_t bytes) {
  BetterWay way;
  way.ranks = 8;
  BetterCell& cell = way.cells.emplace_back();
  cell.bytes = bytes;
  cell.chosen_us = 500;
  cell.better_us = 300;
  return way;
}

TraceCollective Call(int64_t enter_ns, int64_t elements, int32_t group_size = 8, OpKind kind = OpKind::all_reduce) {
  TraceCollective call;
  call.kind = kind;
  call.type = DataType::float32;
  call.group_size = group_size;
  call.in_elements = elements;
  call.out_elements = kind == OpKind::all_gather ? elements * group_size : elements;
  call.enter_ns = enter_ns;
  return call;
}

// Two ranks, four steps of 100 ms each, three calls of about 4 MiB in each.
Incident TracedJob(int32_t group_size = 8) {
  Incident incident;
  for (int rank = 0; rank < 2; ++rank) {
    Timeline& timeline = incident.timelines.emplace_back();
    for (int step = 0; step < 4; ++step) {
      timeline.steps.push_back({step, step * 100 * kMs, (step + 1) * 100 * kMs});
      for (int i = 0; i < 3; ++i)
        timeline.collectives.push_back(Call((step * 100 + 10 * i) * kMs, (1 << 20) + 1000, group_size));
    }
  }
  return incident;
}

std::vector<BetterWay> Count(const Incident& incident, BetterWay way) {
  std::vector<BetterWay> ways = {std::move(way)};
  CountCallsPerStep({&incident}, {AllReduceOf8()}, ways);
  return ways;
}

TEST(StepCost, CountsCallsOfAboutThisSizePerStep) {
  const std::vector<BetterWay> ways = Count(TracedJob(), BetterAt(4 << 20));
  EXPECT_DOUBLE_EQ(ways[0].cells[0].calls_per_step, 3);
  EXPECT_DOUBLE_EQ(ways[0].step_us, 100'000);
}

TEST(StepCost, LeavesOutOtherSizesGroupsAndOperations) {
  EXPECT_EQ(Count(TracedJob(), BetterAt(1 << 20))[0].cells[0].calls_per_step, 0);
  EXPECT_EQ(Count(TracedJob(16), BetterAt(4 << 20))[0].cells[0].calls_per_step, 0);
  Incident incident = TracedJob();
  for (Timeline& timeline : incident.timelines)
    for (TraceCollective& call : timeline.collectives) call.kind = OpKind::reduce_scatter;
  EXPECT_EQ(Count(incident, BetterAt(4 << 20))[0].step_us, 0);
}

TEST(StepCost, LeavesOutCallsBeforeTheFirstStepAndBeyondTheSweep) {
  Incident incident;
  Timeline& timeline = incident.timelines.emplace_back();
  timeline.steps.push_back({0, 100 * kMs, 200 * kMs});
  timeline.collectives = {Call(50 * kMs, 1 << 20), Call(120 * kMs, 1 << 20), Call(130 * kMs, int64_t{1} << 40),
                          Call(140 * kMs, -1), Call(150 * kMs, INT64_MAX)};
  const std::vector<BetterWay> ways = Count(incident, BetterAt(4 << 20));
  EXPECT_DOUBLE_EQ(ways[0].cells[0].calls_per_step, 1);
}

TEST(StepCost, SaysNothingWithoutSteps) {
  Incident incident = TracedJob();
  for (Timeline& timeline : incident.timelines) timeline.steps.clear();
  EXPECT_EQ(Count(incident, BetterAt(4 << 20))[0].step_us, 0);
}

}  // namespace
}  // namespace tacet
