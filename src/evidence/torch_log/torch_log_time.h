// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/torch_log/torch_log_parse.h"

namespace tacet {

// Takes a dated time off the front: "2026-11-15T00:39:15.621349", "2023-10-13 17:40:02,544", "2026-01-02_03:04:05",
// with or without a zone ("Z", "+02:00").
bool TakeDatedTime(std::string_view& text, LogMoment* moment);

// Takes "00:16:08.485370935" off the front; the fraction is dropped.
bool TakeClockTime(std::string_view& text, int32_t* second_of_day);

// Days from 1970-01-01 to that date.
int64_t DaysToDate(int64_t year, int month, int day);

// A time without a year, put into the year that brings it nearest to a time of the same file; kNone where that is
// unknown.
int64_t ResolveMoment(const LogMoment& moment, int64_t dated_wall_ns);

}  // namespace tacet
