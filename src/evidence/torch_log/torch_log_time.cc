// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_time.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

bool TakeDigits(std::string_view& text, size_t count, int* value) {
  if (text.size() < count) return false;
  int number = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  *value = number;
  return true;
}

bool TakeClock(std::string_view& text, int32_t* second_of_day) {
  int hour = 0, minute = 0, second = 0;
  std::string_view rest = text;
  if (!TakeDigits(rest, 2, &hour) || !TakeLiteral(rest, ":") || !TakeDigits(rest, 2, &minute) ||
      !TakeLiteral(rest, ":") || !TakeDigits(rest, 2, &second) || hour > 23 || minute > 59 || second > 60)
    return false;
  *second_of_day = hour * 3600 + minute * 60 + second;
  text = rest;
  return true;
}

// ".621349" or ",544" in nanoseconds; digits beyond the ninth are dropped.
int64_t TakeFraction(std::string_view& text) {
  if (text.size() < 2 || (text[0] != '.' && text[0] != ',') || text[1] < '0' || text[1] > '9') return 0;
  text.remove_prefix(1);
  int64_t ns = 0, unit = kNsPerSecond;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    unit /= 10;
    ns += unit * (text[0] - '0');
    text.remove_prefix(1);
  }
  return ns;
}

// "Z", "+02:00", "-0530": seconds east of Greenwich, 0 where there is none.
int64_t TakeZone(std::string_view& text) {
  if (TakeLiteral(text, "Z")) return 0;
  std::string_view rest = text;
  const bool east = TakeLiteral(rest, "+");
  int hours = 0, minutes = 0;
  if ((!east && !TakeLiteral(rest, "-")) || !TakeDigits(rest, 2, &hours)) return 0;
  TakeLiteral(rest, ":");
  if (!TakeDigits(rest, 2, &minutes)) return 0;
  text = rest;
  return (east ? 1 : -1) * (int64_t{hours} * 3600 + minutes * 60);
}

}  // namespace

int64_t DaysToDate(int64_t year, int month, int day) {
  // Years begin in March here, so that the leap day is the last of them.
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

bool TakeDatedTime(std::string_view& text, LogMoment* moment) {
  int year = 0, month = 0, day = 0;
  int32_t second_of_day = 0;
  std::string_view rest = text;
  if (!TakeDigits(rest, 4, &year) || !TakeLiteral(rest, "-") || !TakeDigits(rest, 2, &month) ||
      !TakeLiteral(rest, "-") || !TakeDigits(rest, 2, &day))
    return false;
  if (year < 1990 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31) return false;
  if (!TakeLiteral(rest, "T") && !TakeLiteral(rest, " ") && !TakeLiteral(rest, "_")) return false;
  if (!TakeClock(rest, &second_of_day)) return false;
  const int64_t fraction_ns = TakeFraction(rest);
  const int64_t zone = TakeZone(rest);
  moment->wall_ns = (DaysToDate(year, month, day) * 86400 + second_of_day - zone) * kNsPerSecond + fraction_ns;
  text = rest;
  return true;
}

bool TakeClockTime(std::string_view& text, int32_t* second_of_day) {
  if (!TakeClock(text, second_of_day)) return false;
  TakeFraction(text);
  return true;
}

int64_t ResolveMoment(const LogMoment& moment, int64_t dated_wall_ns) {
  if (moment.wall_ns != LogMoment::kNone || moment.month_day == 0) return moment.wall_ns;
  if (dated_wall_ns == LogMoment::kNone) return LogMoment::kNone;
  const int64_t near_year = 1970 + dated_wall_ns / kNsPerSecond / 31556952;
  int64_t best = LogMoment::kNone, best_distance = INT64_MAX;
  // A file written over New Year holds lines of two years.
  for (int64_t year = near_year - 1; year <= near_year + 1; ++year) {
    const int64_t days = DaysToDate(year, moment.month_day / 100, moment.month_day % 100);
    const int64_t wall_ns = (days * 86400 + moment.second_of_day) * kNsPerSecond;
    const int64_t distance = wall_ns > dated_wall_ns ? wall_ns - dated_wall_ns : dated_wall_ns - wall_ns;
    if (distance < best_distance) best = wall_ns, best_distance = distance;
  }
  return best;
}

}  // namespace tacet
