// SPDX-License-Identifier: Apache-2.0
#include "model/job_times.h"

#include <algorithm>
#include <cstdlib>

#include "model/events/event_witness.h"

namespace tacet {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kMeanYearSeconds = 31'556'952;

// A time that no clock shows is none, so that sums and differences stay within bounds.
int64_t Plausible(int64_t wall_ns) {
  constexpr int64_t kYear2100Ns = 4'102'444'800 * kSecondNs;
  return wall_ns >= 0 && wall_ns < kYear2100Ns ? wall_ns : kNoTime;
}

// Its log may also tell of adapters, in events that programs have as well.
bool IsOfKernel(const Incident& incident, const Event& event) {
  const auto file = static_cast<size_t>(event.source.file);
  return WitnessOf(event) == Witness::kernel ||
         (file < incident.files.size() && incident.files[file].format == "kernel_log");
}

// After it the process, or the job, does not go on.
bool TellsOfAnEnd(const Event& event) {
  switch (event.kind) {
    case EventKind::process_finished:
    case EventKind::process_exited:
    case EventKind::process_killed:
    case EventKind::watchdog_timeout:
    case EventKind::watchdog_status:
    case EventKind::heartbeat_stuck:
    case EventKind::program_left:
    case EventKind::store_lost:
    case EventKind::connection_lost:
    case EventKind::exception:
    case EventKind::cuda_error:
    case EventKind::nccl_error:
    case EventKind::abort_signal:
    case EventKind::job_time_limit:
    case EventKind::scheduler_kill: return true;
    default: return false;
  }
}

int64_t PutIntoYear(int32_t clock_s, int64_t anchor_ns) {
  const int64_t month_day = clock_s / kDaySeconds, second = clock_s % kDaySeconds;
  const int64_t near_year = 1970 + anchor_ns / kSecondNs / kMeanYearSeconds;
  int64_t best = kNoTime;
  for (int64_t year = near_year - 1; year <= near_year + 1; ++year) {
    const int64_t days = DaysSince1970(year, static_cast<int>(month_day / 100), static_cast<int>(month_day % 100));
    const int64_t wall_ns = (days * kDaySeconds + second) * kSecondNs;
    if (best == kNoTime || std::abs(wall_ns - anchor_ns) < std::abs(best - anchor_ns)) best = wall_ns;
  }
  return best;
}

}  // namespace

int64_t DaysSince1970(int64_t year, int month, int day) {
  // Years begin in March here, so that the leap day is the last of them.
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400, year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

JobTimes::JobTimes(const Incident& incident) {
  // The newest time of the job with a year; else the newest of the kernel; else any year will do.
  int64_t of_job = kNoTime, of_kernel = kNoTime;
  int32_t clock_s = -1;
  for (const Event& event : incident.events) {
    if (const int64_t wall_ns = Plausible(event.wall_ns); wall_ns != kNoTime) {
      int64_t& newest = IsOfKernel(incident, event) ? of_kernel : of_job;
      newest = newest == kNoTime ? wall_ns : std::max(newest, wall_ns);
    } else if (clock_s < 0 && event.clock_s >= 0 && !IsOfKernel(incident, event)) {
      clock_s = event.clock_s;
    }
  }
  has_year = of_job != kNoTime;
  constexpr int64_t kSomeYear = 1'720'000'000 * kSecondNs;
  anchor_ns_ = of_job != kNoTime ? of_job : of_kernel != kNoTime ? of_kernel : kSomeYear;
  if (of_job == kNoTime && clock_s >= 0) anchor_ns_ = PutIntoYear(clock_s, anchor_ns_);

  bool ends = false;
  for (const Event& event : incident.events) {
    if (IsOfKernel(incident, event)) continue;
    const int64_t at = TimeOf(event);
    if (at == kNoTime) continue;
    const int64_t waited_ms = event.kind == EventKind::watchdog_timeout ? event.As<WatchdogTimeout>().elapsed_ms : 0;
    const int64_t begin = waited_ms > 0 && waited_ms < at / 1'000'000 ? at - waited_ms * 1'000'000 : at;
    first_ns = first_ns == kNoTime ? begin : std::min(first_ns, begin);
    last_ns = last_ns == kNoTime ? at : std::max(last_ns, at);
    ends |= TellsOfAnEnd(event);
  }
  for (const CallStream& stream : incident.streams) {
    const int64_t entered = stream.calls.empty() ? kNoTime : Plausible(stream.calls.front().enter_wall_ns);
    if (entered != kNoTime) first_ns = first_ns == kNoTime ? entered : std::min(first_ns, entered);
  }
  if (!ends) last_ns = kNoTime;
}

int64_t JobTimes::TimeOf(const Event& event) const {
  if (event.wall_ns != kNoTime || event.clock_s < 0) return Plausible(event.wall_ns);
  return PutIntoYear(event.clock_s, anchor_ns_);
}

}  // namespace tacet
