// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/overlap.h"

#include <gtest/gtest.h>

#include "analysis/timing/recorded_timelines.h"
#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

TEST(Overlap, IsTheSharedPartOfMergedCommunication) {
  Timeline timeline = MakeTimeline(0);
  AddGpu(timeline, GpuWork::communication, 0, 100);
  AddGpu(timeline, GpuWork::compute, 50, 120);
  AddGpu(timeline, GpuWork::communication, 80, 200);  // overlaps the first: 0..200 merged
  AddGpu(timeline, GpuWork::copy, 120, 200);          // a copy hides nothing
  const Overlap overlap = MeasureOverlap(timeline);
  EXPECT_EQ(overlap.communication_ns, 200);
  EXPECT_EQ(overlap.overlapped_ns, 70);
  EXPECT_DOUBLE_EQ(overlap.ratio(), 0.35);
}

TEST(Overlap, EfficiencyIsOneWhenTheShorterPartIsHidden) {
  EXPECT_DOUBLE_EQ((Overlap{.communication_ns = 40, .compute_ns = 100, .overlapped_ns = 40}).efficiency(), 1);
  EXPECT_DOUBLE_EQ((Overlap{.communication_ns = 40, .compute_ns = 100, .overlapped_ns = 0}).efficiency(), 0);
  EXPECT_DOUBLE_EQ((Overlap{.communication_ns = 40, .compute_ns = 100, .overlapped_ns = 10}).efficiency(), 0.25);
  EXPECT_DOUBLE_EQ((Overlap{.communication_ns = 100, .compute_ns = 40, .overlapped_ns = 30}).efficiency(), 0.75);
  EXPECT_DOUBLE_EQ(Overlap{}.efficiency(), 0);
}

TEST(Overlap, IdleTimeDoesNotLowerTheEfficiency) {
  Timeline timeline = MakeTimeline(0);
  AddGpu(timeline, GpuWork::compute, 0, 100);
  AddGpu(timeline, GpuWork::communication, 60, 140);
  AddGpu(timeline, GpuWork::compute, 1000, 1100);  // 860 of idle in between
  EXPECT_DOUBLE_EQ(MeasureOverlap(timeline).efficiency(), 0.5);
}

TEST(Overlap, EqualsThePublishedFiguresOfTheDlrmTraces) {
  const Incident job = ReadTraces(SharedFolder() / "public" / "dlrm");
  if (job.timelines.empty()) GTEST_SKIP() << "the public traces are not here";
  const double published[] = {4.50, 2.47, 7.88, 3.31, 0.56, 0.64, 7.56, 9.51};
  ASSERT_EQ(job.timelines.size(), 8u);
  for (int rank = 0; rank < 8; ++rank) {
    ASSERT_EQ(job.timelines[static_cast<size_t>(rank)].rank.value, rank);
    EXPECT_NEAR(100 * MeasureOverlap(job.timelines[static_cast<size_t>(rank)]).ratio(), published[rank], 0.005001)
        << "rank " << rank;
  }
}

}  // namespace
}  // namespace tacet
