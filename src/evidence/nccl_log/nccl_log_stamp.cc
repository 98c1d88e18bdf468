// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_stamp.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kYear2200 = 7'258'118'400;  // later is no time, and would not fit in ns

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The number of exactly `count` digits at `at`, or -1.
int Digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (!IsDigit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Days since 1970-01-01 in the Gregorian calendar.
int64_t DaysSinceEpoch(int year, int month, int day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

// The date that ends just before `end`: "2026-11-15", "2026/11/15", "20261115". -1 where there is none.
int64_t DaysBefore(std::string_view text, size_t end) {
  int year = -1, month = -1, day = -1;
  if (end >= 10 && (text[end - 3] == '-' || text[end - 3] == '/') && text[end - 6] == text[end - 3]) {
    year = Digits(text, end - 10, 4);
    month = Digits(text, end - 5, 2);
    day = Digits(text, end - 2, 2);
  } else if (end >= 8) {
    year = Digits(text, end - 8, 4);
    month = Digits(text, end - 4, 2);
    day = Digits(text, end - 2, 2);
  }
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31) return -1;
  return DaysSinceEpoch(year, month, day);
}

// ".123456" or ",123" in ns; moves *at behind it.
int64_t TakeFraction(std::string_view text, size_t* at) {
  static constexpr int64_t kScale[] = {1'000'000'000, 100'000'000, 10'000'000, 1'000'000, 100'000,
                                       10'000,        1'000,       100,        10,        1};
  if (*at + 1 >= text.size() || (text[*at] != '.' && text[*at] != ',') || !IsDigit(text[*at + 1])) return 0;
  int64_t number = 0;
  size_t digits = 0;
  for (++*at; *at < text.size() && IsDigit(text[*at]); ++*at) {
    if (digits == 9) continue;  // finer than a nanosecond
    number = number * 10 + (text[*at] - '0');
    ++digits;
  }
  return number * kScale[digits];
}

// "+01:00", "-0800" in ns; nothing for "Z".
int64_t ZoneOffset(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return 0;
  const int hours = Digits(text, at + 1, 2);
  const size_t minutes_at = at + 3 < text.size() && text[at + 3] == ':' ? at + 4 : at + 3;
  const int minutes = Digits(text, minutes_at, 2);
  if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59) return 0;
  const int64_t ns = (hours * 3600LL + minutes * 60) * kNsPerSecond;
  return text[at] == '-' ? -ns : ns;
}

// With `colon` the second one of "00:15:37".
Stamp StampAround(std::string_view lead, size_t colon) {
  if (colon < 6 || lead[colon - 3] != ':') return {};
  const int hour = Digits(lead, colon - 5, 2), minute = Digits(lead, colon - 2, 2), second = Digits(lead, colon + 1, 2);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return {};
  const int64_t days = DaysBefore(lead, colon - 6);
  if (days < 0) return {};
  size_t at = colon + 3;
  const int64_t fraction = TakeFraction(lead, &at);
  Stamp stamp;
  stamp.seconds_at = colon + 1;
  stamp.minute_ns = (days * 86400 + hour * 3600 + minute * 60) * kNsPerSecond - ZoneOffset(lead, at);
  stamp.wall_ns = stamp.minute_ns + second * kNsPerSecond + fraction;
  return stamp;
}

// "1794701737.123456" from a format with %s: ten digits that are no part of a longer number.
int64_t EpochStamp(std::string_view lead) {
  for (size_t at = 0; at < lead.size(); ++at) {
    if (!IsDigit(lead[at])) continue;
    size_t end = at;
    int64_t seconds = 0;
    for (; end < lead.size() && IsDigit(lead[end]) && end - at < 12; ++end) seconds = seconds * 10 + (lead[end] - '0');
    if (end - at == 10 && seconds < kYear2200) return seconds * kNsPerSecond + TakeFraction(lead, &end);
    while (end < lead.size() && IsDigit(lead[end])) ++end;
    at = end;
  }
  return kNoStamp;
}

size_t SkipBlanksAt(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

int32_t TaskNumber(std::string_view text, size_t from, size_t to) {
  int32_t value = -1;
  text = text.substr(from, to - from);
  return TakeNumber(text, &value) && text.empty() ? value : -1;
}

// "[rank3]:", "[1,3]<stdout>:", "[default3]:", "[3] ", "[pod/job-3/main] ".
LauncherLabel BracketLabel(std::string_view line) {
  using Kind = LauncherLabel::Kind;
  const size_t close = line.substr(0, 200).find(']');
  if (close == std::string_view::npos || close < 2) return {};
  size_t end = close + 1;
  const bool colon = end < line.size() && line[end] == ':';
  if (line[1] == 'p' && line.starts_with("[pod/")) return {Kind::other, -1, SkipBlanksAt(line, end)};
  if (IsDigit(line[1])) {
    const size_t comma = line.substr(0, close).find(',');
    if (comma != std::string_view::npos) {  // Open MPI
      const size_t tag =
          line.substr(end).starts_with("<std") ? line.substr(end, 16).find(">:") : std::string_view::npos;
      const int32_t task = TaskNumber(line, comma + 1, close);
      if (tag == std::string_view::npos || task < 0) return {};
      return {Kind::task, task, SkipBlanksAt(line, end + tag + 2)};
    }
    const int32_t task = TaskNumber(line, 1, close);
    if (task < 0 || end >= line.size() || line[end] != ' ') return {};
    return {Kind::task, task, SkipBlanksAt(line, end)};
  }
  size_t digits = close;
  while (digits > 1 && IsDigit(line[digits - 1])) --digits;
  if (digits == close || !IsLetter(line[1])) return {};
  for (size_t i = 1; i < digits; ++i)
    if (!IsLetter(line[i]) && line[i] != '_' && line[i] != '-') return {};
  const bool rank = line.substr(1, digits - 1) == "rank";
  if (!rank && !colon) return {};
  if (colon) ++end;
  return {rank ? Kind::rank : Kind::local, TaskNumber(line, digits, close), SkipBlanksAt(line, end)};
}

}  // namespace

Stamp ParseStamp(std::string_view lead) {
  constexpr size_t kLongest = 160;  // nobody writes a longer time; a longer lead is something else
  const size_t skipped = lead.size() > kLongest ? lead.size() - kLongest : 0;
  lead.remove_prefix(skipped);
  int tries = 8;
  for (size_t colon = lead.rfind(':'); colon != std::string_view::npos && colon > 0 && tries-- > 0;
       colon = lead.rfind(':', colon - 1)) {
    Stamp stamp = StampAround(lead, colon);
    if (stamp.wall_ns == kNoStamp) continue;
    stamp.seconds_at += skipped;
    return stamp;
  }
  return {EpochStamp(lead), 0, 0};
}

Stamp ParseStampLike(std::string_view lead, std::string_view before, const Stamp& stamp) {
  size_t at = stamp.seconds_at;
  if (at == 0 || at > before.size() || lead.substr(0, at) != before.substr(0, at)) return ParseStamp(lead);
  const int second = Digits(lead, at, 2);
  if (second < 0 || second > 60) return ParseStamp(lead);
  at += 2;
  const int64_t fraction = TakeFraction(lead, &at);
  // What stands behind, such as a zone, has to be the same too.
  if (at > before.size() || lead.substr(at) != before.substr(at)) return ParseStamp(lead);
  return {stamp.minute_ns + second * kNsPerSecond + fraction, stamp.seconds_at, stamp.minute_ns};
}

LauncherLabel ParseLauncherLabel(std::string_view line) {
  const size_t escapes = EscapesLength(line);
  std::string_view text = line.substr(escapes);
  LauncherLabel label;
  if (text.empty()) return label;
  if (text[0] == '[') {
    label = BracketLabel(text);
  } else if (IsDigit(text[0])) {
    size_t end = 0;
    while (end < text.size() && end < 9 && IsDigit(text[end])) ++end;
    const bool closed = end < text.size() && text[end] == ':' && (end + 1 == text.size() || text[end + 1] == ' ');
    if (closed) label = {LauncherLabel::Kind::task, TaskNumber(text, 0, end), SkipBlanksAt(text, end + 1)};
  } else if (text[0] == '(') {
    const size_t close = text.substr(0, 200).find(')');
    if (close != std::string_view::npos && Contains(text.substr(0, close), "pid="))
      label = {LauncherLabel::Kind::other, -1, SkipBlanksAt(text, close + 1)};
  }
  if (label.kind != LauncherLabel::Kind::none) label.length += escapes;
  return label;
}

size_t EscapesLength(std::string_view text) {
  size_t at = SkipBlanksAt(text, 0);
  while (at + 1 < text.size() && text[at] == '\x1b' && text[at + 1] == '[') {
    size_t end = at + 2;
    while (end < text.size() && (IsDigit(text[end]) || text[end] == ';')) ++end;
    if (end >= text.size() || !IsLetter(text[end])) break;
    at = SkipBlanksAt(text, end + 1);
  }
  return at;
}

std::string_view CutTrailingEscape(std::string_view text) {
  const size_t from = text.size() > 12 ? text.size() - 12 : 0;
  const size_t escape = text.find('\x1b', from);
  return escape == std::string_view::npos ? text : text.substr(0, escape);
}

}  // namespace tacet
