// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_time.h"

#include "model/events/event_witness.h"

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
  // Without a year: month, day and second of two lines of one file, or of two outputs of the job; the kernel's lines
  // may be of another zone.
  const bool clocked = !first.known() && !second.known() && a.clock_s >= 0 && b.clock_s >= 0;
  const bool comparable =
      a.source.file == b.source.file || (WitnessOf(a) != Witness::kernel && WitnessOf(b) != Witness::kernel);
  if (clocked && comparable && a.clock_s != b.clock_s)
    return a.clock_s < b.clock_s ? TimeOrder::before : TimeOrder::after;
  if (!first.known() || !second.known()) return TimeOrder::unordered;
  if (first.latest_ns < second.earliest_ns) return TimeOrder::before;
  return second.latest_ns < first.earliest_ns ? TimeOrder::after : TimeOrder::unordered;
}

}  // namespace tacet
