// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/launch_join.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

GpuEvent EventOf(uint32_t correlation) {
  GpuEvent event;
  event.launch = correlation;
  return event;
}

TEST(LaunchJoin, KnowsCallsThatPutWorkOnADevice) {
  EXPECT_TRUE(IsLaunchCall("cudaLaunchKernel"));
  EXPECT_TRUE(IsLaunchCall("cudaLaunchKernelExC_v11060"));
  EXPECT_TRUE(IsLaunchCall("cuLaunchKernelEx"));
  EXPECT_TRUE(IsLaunchCall("hipModuleLaunchKernel"));
  EXPECT_FALSE(IsLaunchCall("cudaEventRecord"));
  EXPECT_FALSE(IsLaunchCall("cudaMalloc"));
  EXPECT_TRUE(IsDeviceWait("cudaStreamSynchronize_v3020"));
  EXPECT_FALSE(IsDeviceWait("cudaStreamWaitEvent"));
}

TEST(LaunchJoin, PutsTheCallsThatEventsAskForInOrderOfTime) {
  Timeline timeline;
  for (const uint32_t correlation : {9u, 3u, 77u, kNoIndex}) timeline.gpu.push_back(EventOf(correlation));
  JoinLaunches({{9, 2, 500, 0}, {3, 4, 900, 1}, {5, 1, 100, 0}}, timeline);
  ASSERT_EQ(timeline.launches.size(), 2u);  // nobody asked for 5
  EXPECT_EQ(timeline.launches[0].start_ns, 500);
  EXPECT_EQ(timeline.launches[1].start_ns, 900);
  EXPECT_EQ(timeline.launches[1].thread, 1u);
  EXPECT_EQ(timeline.gpu[0].launch, 0u);
  EXPECT_EQ(timeline.gpu[1].launch, 1u);
  EXPECT_EQ(timeline.gpu[2].launch, kNoIndex);  // launched before the recording began
  EXPECT_EQ(timeline.gpu[3].launch, kNoIndex);
}

TEST(LaunchJoin, AGraphsKernelsShareTheirLaunch) {
  Timeline timeline;
  for (int i = 0; i < 3; ++i) timeline.gpu.push_back(EventOf(4));
  JoinLaunches({{4, 2, 500, 0}}, timeline);
  ASSERT_EQ(timeline.launches.size(), 1u);
  for (const GpuEvent& event : timeline.gpu) EXPECT_EQ(event.launch, 0u);
}

}  // namespace
}  // namespace tacet
