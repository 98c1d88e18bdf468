// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/incident.h"

namespace tacet {

// When the job ran, by the lines that it wrote itself. PyTorch's lines tell month and day and no year: such times are
// put into the year that brings them nearest to the times that have one, and may be compared with each other and with
// what the kernel wrote.
class JobTimes {
 public:
  explicit JobTimes(const Incident& incident);

  int64_t first_ns = kNoTime;  // before the first line: a timeout tells how long its operation had been waited for
  int64_t last_ns = kNoTime;   // kNoTime where no line with a time tells of an end or of a failure

  bool has_year = false;  // some line of the job tells it
  // Also of events without a year; kNoTime where the event has no date.
  int64_t TimeOf(const Event& event) const;

 private:
  int64_t anchor_ns_ = kNoTime;
};

// Days since 1970-01-01 of a Gregorian date.
int64_t DaysSince1970(int64_t year, int month, int day);

}  // namespace tacet
