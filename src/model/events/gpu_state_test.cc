// SPDX-License-Identifier: Apache-2.0
#include "model/events/gpu_state.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(GpuState, TellsWhatHoldsTheClockDown) {
  const GpuState state = ReadGpuState(
      "index=5, temperature.gpu=88, clocks.sm=855 MHz, clocks.max.sm=1980 MHz, "
      "clocks_event_reasons.hw_thermal_slowdown=Active");
  EXPECT_EQ(state.mhz, 855);
  EXPECT_EQ(state.most_mhz, 1980);
  EXPECT_EQ(state.celsius, 88);
  EXPECT_EQ(state.slowed_by, "a hardware thermal slowdown");
}

TEST(GpuState, TakesAPowerCapAndAnInactiveReasonForNothing) {
  EXPECT_EQ(ReadGpuState("index=0, clocks.sm=1400, clocks_event_reasons.sw_power_cap=Active").slowed_by, "");
  EXPECT_EQ(ReadGpuState("index=0, clocks_event_reasons.hw_slowdown=Not Active").slowed_by, "");
}

}  // namespace
}  // namespace tacet
