// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_time.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000, kNoon = 43'200 * kOneSecond;

Event At(int64_t wall_ns) {
  Event event;
  event.wall_ns = wall_ns;
  return event;
}

TEST(EventTime, ATimeWithFractionsIsAMoment) {
  const TimeSpan span = TimeOf(At(kNoon + 250'000'000));
  EXPECT_EQ(span.earliest_ns, span.latest_ns);
  EXPECT_EQ(OrderOf(At(kNoon + 1), At(kNoon + 2)), TimeOrder::before);
  EXPECT_EQ(OrderOf(At(kNoon + 2), At(kNoon + 1)), TimeOrder::after);
  EXPECT_EQ(OrderOf(At(kNoon + 1), At(kNoon + 1)), TimeOrder::unordered);
}

TEST(EventTime, WholeSecondsAreASpanOfOneSecond) {
  EXPECT_EQ(OrderOf(At(kNoon), At(kNoon + 400'000'000)), TimeOrder::unordered);
  EXPECT_EQ(OrderOf(At(kNoon + 400'000'000), At(kNoon)), TimeOrder::unordered);
  EXPECT_EQ(OrderOf(At(kNoon), At(kNoon + kOneSecond)), TimeOrder::before);
  EXPECT_EQ(OrderOf(At(kNoon), At(kNoon + kOneSecond + 1)), TimeOrder::before);
  EXPECT_EQ(OrderOf(At(kNoon), At(kNoon - 1)), TimeOrder::after);
}

TEST(EventTime, WithoutATimeThereIsNoOrder) {
  EXPECT_FALSE(TimeOf(At(kNoTime)).known());
  EXPECT_EQ(OrderOf(At(kNoTime), At(kNoon)), TimeOrder::unordered);
  EXPECT_EQ(OrderOf(At(kNoon), At(kNoTime)), TimeOrder::unordered);
}

Event Clocked(uint32_t file, int32_t clock_s, EventKind kind = EventKind::watchdog_timeout) {
  Event event;
  event.kind = kind;
  event.source.file = FileId{file};
  event.clock_s = clock_s;
  return event;
}

// [E1119 00:29:22.544291007 ...]: a month, a day and a time, and no year. The fraction is of another clock.
TEST(EventTime, TimesWithoutAYearOrderTheOutputsOfAJob) {
  EXPECT_EQ(OrderOf(Clocked(0, 100), Clocked(1, 101)), TimeOrder::before);
  EXPECT_EQ(OrderOf(Clocked(1, 102), Clocked(0, 101)), TimeOrder::after);
  EXPECT_EQ(OrderOf(Clocked(0, 100), Clocked(1, 100)), TimeOrder::unordered);
  EXPECT_EQ(OrderOf(Clocked(0, 100, EventKind::oom_kill), Clocked(1, 101)), TimeOrder::unordered)
      << "the kernel's log may be of another zone";
  EXPECT_EQ(OrderOf(Clocked(1, 100, EventKind::oom_kill), Clocked(1, 101)), TimeOrder::before) << "of one file";
}

}  // namespace
}  // namespace tacet
