// SPDX-License-Identifier: Apache-2.0
#include "model/job_times.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

Event& AddEvent(Incident& incident, EventKind kind, int64_t wall_ns) {
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.wall_ns = wall_ns;
  return event;
}

TEST(JobTimes, BeginWithTheFirstLineAndEndWithTheLast) {
  constexpr int64_t kNoon = 1'760'000'000'000'000'000;
  Incident incident;
  AddEvent(incident, EventKind::progress, kNoon);
  AddEvent(incident, EventKind::process_exited, kNoon + 5'000'000'000);
  const JobTimes job(incident);
  EXPECT_TRUE(job.has_year);
  EXPECT_EQ(job.first_ns, kNoon);
  EXPECT_EQ(job.last_ns, kNoon + 5'000'000'000);
}

TEST(JobTimes, TimesThatNoClockShowsAreNone) {
  Incident incident;
  AddEvent(incident, EventKind::exception, INT64_MAX);
  AddEvent(incident, EventKind::process_exited, INT64_MIN + 1);
  Call call;
  call.enter_wall_ns = INT64_MIN + 1;
  incident.streams.emplace_back().calls.push_back(call);
  const JobTimes job(incident);
  EXPECT_FALSE(job.has_year);
  EXPECT_EQ(job.first_ns, kNoTime);
  EXPECT_EQ(job.last_ns, kNoTime);
}

TEST(JobTimes, ADateWithoutAYearIsPutIntoTheNearestOne) {
  constexpr int64_t kNewYear2026 = 1'767'225'600'000'000'000;
  Incident incident;
  AddEvent(incident, EventKind::progress, kNewYear2026);
  const JobTimes job(incident);
  Event event;
  event.clock_s = 1231 * 86'400;  // 31 December, midnight
  EXPECT_EQ(job.TimeOf(event), kNewYear2026 - int64_t{86'400} * 1'000'000'000);
}

}  // namespace
}  // namespace tacet
