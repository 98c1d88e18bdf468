// SPDX-License-Identifier: Apache-2.0
#include "model/event_time.h"

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

TimeSpan TimeOf(const Event& event) {
  if (event.wall_ns == kNoTime) return {};
  // One of a thousand times with milliseconds looks like whole seconds, too; it is then told less closely than it
  // could.
  return {event.wall_ns, event.wall_ns % kSecond == 0 ? event.wall_ns + kSecond - 1 : event.wall_ns};
}

TimeOrder OrderOf(const Event& a, const Event& b) {
  const TimeSpan first = TimeOf(a), second = TimeOf(b);
  // Without a year: month, day and second of two lines of one file.
  const bool clocked = !first.known() && !second.known() && a.clock_s >= 0 && b.clock_s >= 0;
  if (clocked && a.source.file == b.source.file && a.clock_s != b.clock_s)
    return a.clock_s < b.clock_s ? TimeOrder::before : TimeOrder::after;
  if (!first.known() || !second.known()) return TimeOrder::unordered;
  if (first.latest_ns < second.earliest_ns) return TimeOrder::before;
  return second.latest_ns < first.earliest_ns ? TimeOrder::after : TimeOrder::unordered;
}

}  // namespace tacet
