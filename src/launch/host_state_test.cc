// SPDX-License-Identifier: Apache-2.0
#include "launch/host_state.h"

#include <gtest/gtest.h>

#include <ctime>

namespace tacet {
namespace {

std::string At(int64_t seconds, const std::string& words) {
  const auto when = static_cast<time_t>(seconds);
  tm local{};
  ::localtime_r(&when, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &local);
  return std::string(stamp) + ",123456+00:00 " + words + "\n";
}

TEST(KernelLinesSince, LeavesOutWhatCameBeforeTheJob) {
  const int64_t began = 1'794'787'241;
  const std::string old = At(began - 600, "Killed process 11 (python3)"),
                    own = At(began + 3, "Killed process 12 (python3)");
  EXPECT_EQ(KernelLinesSince(old + own, began * 1'000'000'000), own);
  EXPECT_EQ(KernelLinesSince(old, began * 1'000'000'000), "");
  EXPECT_EQ(KernelLinesSince(old + " continued\n" + own + " continued\n", began * 1'000'000'000), own + " continued\n");
  EXPECT_EQ(KernelLinesSince("", 0), "");
}

}  // namespace
}  // namespace tacet
