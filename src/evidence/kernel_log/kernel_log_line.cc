// SPDX-License-Identifier: Apache-2.0
#include "evidence/kernel_log/kernel_log_line.h"

#include <algorithm>
#include <array>

#include "base/launcher_prefix.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

using Shape = KernelLine::Shape;

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

int TakeMonth(std::string_view& text) {
  for (size_t i = 0; i < kMonths.size(); ++i)
    if (TakeLiteral(text, kMonths[i])) return static_cast<int>(i) + 1;
  return 0;
}

struct Moment {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int64_t nanos = 0;
};

// Days since 1970-01-01 of a Gregorian date, counted in years that begin in March so that leap days come last.
int64_t DayNumber(int year, int month, int day) {
  const int64_t y = month > 2 ? year : year - 1;
  const int64_t era = y / 400, in_era = y % 400;
  const int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

int64_t WallNs(const Moment& at) {
  if (at.year < 1971 || at.year > 2200 || at.month < 1 || at.day < 1 || at.day > 31) return kKernelTimeUnknown;
  const int64_t seconds = DayNumber(at.year, at.month, at.day) * 86400 + at.hour * 3600 + at.minute * 60 + at.second;
  return seconds * 1'000'000'000 + at.nanos;
}

bool TakeTwoDigits(std::string_view& text, int* value, int limit) {
  if (text.size() < 2 || !IsDigit(text[0]) || !IsDigit(text[1])) return false;
  *value = (text[0] - '0') * 10 + (text[1] - '0');
  text.remove_prefix(2);
  return *value <= limit;
}

// "00:15:37", then perhaps ".123456" or ",123456"
bool TakeClock(std::string_view& text, Moment* at) {
  if (!TakeTwoDigits(text, &at->hour, 23) || !TakeLiteral(text, ":") || !TakeTwoDigits(text, &at->minute, 59) ||
      !TakeLiteral(text, ":") || !TakeTwoDigits(text, &at->second, 60))
    return false;
  if (text.size() < 2 || (text[0] != '.' && text[0] != ',') || !IsDigit(text[1])) return true;
  text.remove_prefix(1);
  int64_t unit = 100'000'000;
  while (!text.empty() && IsDigit(text[0])) {
    at->nanos += (text[0] - '0') * unit;
    unit /= 10;
    text.remove_prefix(1);
  }
  return true;
}

// "Z", "+00:00", "-0700"; nothing is the local clock.
bool TakeZone(std::string_view& text, int64_t* seconds) {
  *seconds = 0;
  if (TakeLiteral(text, "Z")) return true;
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return true;
  const int64_t sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  int hours = 0, minutes = 0;
  if (!TakeTwoDigits(text, &hours, 23)) return false;
  TakeLiteral(text, ":");
  if (!TakeTwoDigits(text, &minutes, 59)) return false;
  *seconds = sign * (hours * 3600 + minutes * 60);
  return true;
}

// "2026-11-15T00:15:37,123456+00:00 "; with another separator than T it is some program's own log.
bool TakeIsoTime(std::string_view& text, char separator, int64_t* wall_ns, bool* zoned) {
  std::string_view rest = text;
  Moment at;
  if (rest.size() < 19 || rest[4] != '-' || rest[10] != separator || !TakeNumber(rest, &at.year) ||
      !TakeLiteral(rest, "-") || !TakeTwoDigits(rest, &at.month, 12) || !TakeLiteral(rest, "-") ||
      !TakeTwoDigits(rest, &at.day, 31))
    return false;
  rest.remove_prefix(1);
  int64_t zone = 0;
  if (!TakeClock(rest, &at)) return false;
  *zoned = !rest.empty() && rest.front() != ' ';
  if (!TakeZone(rest, &zone) || !TakeLiteral(rest, " ")) return false;
  *wall_ns = WallNs(at);
  if (*wall_ns != kKernelTimeUnknown) *wall_ns -= zone * 1'000'000'000;
  text = rest;
  return true;
}

// "Tue Nov 15 00:15:37 2026"
bool ParseCTime(std::string_view text, int64_t* wall_ns) {
  Moment at;
  if (text.size() < 20 || text[3] != ' ') return false;
  text.remove_prefix(4);
  at.month = TakeMonth(text);
  if (at.month == 0) return false;
  SkipBlanks(text);
  if (!TakeNumber(text, &at.day)) return false;
  SkipBlanks(text);
  if (!TakeClock(text, &at)) return false;
  SkipBlanks(text);
  if (!TakeNumber(text, &at.year)) return false;
  *wall_ns = WallNs(at);
  return true;
}

// "  146.183052", perhaps "<    0.000012>" behind it (dmesg -d)
bool IsSecondsSinceBoot(std::string_view text, size_t* decimals) {
  text = Trim(text);
  const bool difference = TakeLiteral(text, "+");  // dmesg -H: "+0.000012"
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  // Ten digits are seconds since 1970, as UCX prints them: no host runs for thirty years.
  constexpr size_t kMostUptimeDigits = 9;
  if (digits == 0 || digits > kMostUptimeDigits || digits + 1 >= text.size() || text[digits] != '.') return false;
  text.remove_prefix(digits + 1);
  size_t n = 0;
  while (n < text.size() && IsDigit(text[n])) ++n;
  *decimals = difference ? std::max<size_t>(n, 6) : n;
  text = Trim(text.substr(n));
  return n >= 2 && (text.empty() || (text.starts_with('<') && text.ends_with('>')));
}

// "[  146.183052] ", "[Tue Nov 15 00:15:37 2026] ", "[Nov15 00:15] ", "[   12.345678][  T123] "
bool TakeBracketTime(std::string_view& text, KernelLine* line) {
  if (!text.starts_with('[')) return false;
  const size_t close = text.substr(0, 64).find(']');
  if (close == std::string_view::npos) return false;
  const std::string_view inside = text.substr(1, close - 1);
  std::string_view month = inside;
  size_t decimals = 0;
  if (IsSecondsSinceBoot(inside, &decimals)) {
    line->shape = decimals >= 6 ? Shape::kernel : Shape::loose;
  } else if (ParseCTime(inside, &line->wall_ns)) {
    line->shape = Shape::kernel;
  } else if (TakeMonth(month) != 0 && inside.size() == 11 && inside[5] == ' ' && inside[8] == ':') {
    line->shape = Shape::kernel;
  } else {
    return false;
  }
  text.remove_prefix(close + 1);
  // CONFIG_PRINTK_CALLER: "[  T123]" a task, "[    C1]" a processor.
  std::string_view rest = text;
  SkipBlanks(rest);
  if (rest.starts_with('[') && rest.substr(0, 16).find(']') != std::string_view::npos) {
    const size_t end = rest.find(']');
    const std::string_view caller = Trim(rest.substr(1, end - 1));
    if (caller.size() > 1 && (caller[0] == 'T' || caller[0] == 'C') &&
        caller.find_first_not_of("0123456789", 1) == std::string_view::npos)
      text = rest.substr(end + 1);
  }
  TakeLiteral(text, " ");
  return true;
}

bool IsHostWord(std::string_view word) {
  if (word.empty() || word.size() > 253) return false;
  for (const char c : word)
    if (!IsDigit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-' && c != '_' && c != '.')
      return false;
  return true;
}

// "node7 kernel: text", "node7 systemd[1]: text"
bool TakeHostAndTag(std::string_view& text, KernelLine* line) {
  std::string_view rest = text;
  const std::string_view host = TakeWord(rest);
  if (!IsHostWord(host) || !TakeLiteral(rest, " ")) return false;
  const size_t colon = rest.substr(0, 128).find(": ");
  if (colon == std::string_view::npos) return false;
  const std::string_view tag = rest.substr(0, colon);
  if (tag.empty() || tag.find(' ') != std::string_view::npos) return false;
  line->host = host;
  line->shape = tag == "kernel" || tag.starts_with("kernel[") ? Shape::kernel : Shape::other;
  text = rest.substr(colon + 2);
  return true;
}

// "kvě", "Okt", "août": journalctl writes the month in the language of the machine.
bool IsForeignMonth(std::string_view word) {
  return word.size() >= 3 && word.size() <= 12 &&
         std::none_of(word.begin(), word.end(), [](char c) { return c > 0 && c < 'A' && c != '.'; });
}

// "Nov 15 00:15:37 ", "Nov  5 00:15:37.123456 ": no year, so no wall time.
bool TakeSyslogTime(std::string_view& text, int32_t* clock_s) {
  std::string_view rest = text;
  Moment at;
  at.month = TakeMonth(rest);
  if (at.month == 0 && !IsForeignMonth(TakeWord(rest))) return false;
  if (!TakeLiteral(rest, " ")) return false;
  SkipBlanks(rest);
  if (!TakeNumber(rest, &at.day) || !TakeLiteral(rest, " ") || !TakeClock(rest, &at) || !TakeLiteral(rest, " "))
    return false;
  if (at.month > 0 && at.day > 0 && at.day <= 31)
    *clock_s = (at.month * 100 + at.day) * 86400 + at.hour * 3600 + at.minute * 60 + at.second;
  text = rest;
  return true;
}

// "1763165737.123456 " (journalctl -o short-unix)
bool TakeUnixTime(std::string_view& text, int64_t* wall_ns) {
  std::string_view rest = text;
  int64_t seconds = 0, micros = 0;
  if (!TakeNumber(rest, &seconds) || seconds < 100'000'000 || seconds > 9'000'000'000 || !TakeLiteral(rest, ".") ||
      rest.size() < 7 || rest[6] != ' ' || !TakeNumber(rest, &micros) || !TakeLiteral(rest, " "))
    return false;
  *wall_ns = seconds * 1'000'000'000 + micros * 1000;
  text = rest;
  return true;
}

// "6,339,5140900,-;text" (/dev/kmsg)
bool TakeKmsgHead(std::string_view& text) {
  std::string_view rest = text;
  uint64_t number = 0;
  for (int i = 0; i < 3; ++i)
    if (!TakeNumber(rest, &number) || !TakeLiteral(rest, ",")) return false;
  const size_t end = rest.substr(0, 32).find(';');
  if (end == std::string_view::npos) return false;
  text = rest.substr(end + 1);
  return true;
}

// "<4>", and dmesg -x: "kern  :warn  : "
void SkipLevel(std::string_view& text) {
  std::string_view rest = text;
  uint32_t level = 0;
  if (TakeLiteral(rest, "<") && TakeNumber(rest, &level) && TakeLiteral(rest, ">")) text = rest;
  if (text.starts_with("kern  :") && text.size() > 15 && text.substr(13, 2) == ": ") text.remove_prefix(15);
}

// Everything that begins with a time.
bool TakeStamp(std::string_view& text, KernelLine* line) {
  if (text.empty()) return false;
  if (text.front() == '[') {
    if (!TakeBracketTime(text, line)) return false;
    KernelLine journal;  // journalctl -o short-monotonic
    std::string_view rest = text;
    if (TakeHostAndTag(rest, &journal) && journal.shape == Shape::kernel) {
      line->shape = Shape::kernel;
      line->host = journal.host;
      text = rest;
    }
    return true;
  }
  std::string_view rest = text;
  if (IsDigit(rest.front())) {
    if (TakeKmsgHead(rest)) {
      line->shape = Shape::kernel;
      text = rest;
      return true;
    }
    int64_t wall_ns = kKernelTimeUnknown;
    bool zoned = false;
    if (!TakeUnixTime(rest, &wall_ns) && !TakeIsoTime(rest, 'T', &wall_ns, &zoned)) return false;
    // dmesg --time-format iso names no host, but always the zone, and writes a comma where the journal writes a point.
    if (zoned && text[19] == ',')
      line->shape = Shape::kernel;
    else if (!TakeHostAndTag(rest, line))
      return false;
    line->wall_ns = wall_ns;
    text = rest;
    return true;
  }
  // journalctl -o short-full: "Sun 2026-11-15 00:15:37 UTC node7 kernel: "
  if (rest.size() > 15 && rest[3] == ' ' && IsDigit(rest[4])) {
    rest.remove_prefix(4);
    int64_t wall_ns = kKernelTimeUnknown;
    bool zoned = false;
    if (TakeIsoTime(rest, ' ', &wall_ns, &zoned)) {
      TakeWord(rest);
      TakeLiteral(rest, " ");
      if (!TakeHostAndTag(rest, line)) return false;
      line->wall_ns = wall_ns;
      text = rest;
      return true;
    }
    rest = text;  // "Nov 15 00:15:37 node7 kernel: "
  }
  if (!TakeSyslogTime(rest, &line->clock_s) || !TakeHostAndTag(rest, line)) return false;
  text = rest;
  return true;
}

}  // namespace

// [  146.183052] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0
// [Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi
// 2026-11-15T00:15:37,123456+00:00 mlx5_core 0000:5c:00.0 ens1: Link down
// Nov 15 00:15:37 node7 kernel: [  146.183052] Out of memory: Killed process 12 (python)
// node7: [  146.183052] ...        (pdsh, clush)
KernelLine ParseKernelLine(std::string_view text) {
  KernelLine line;
  TakeLauncherPrefix(text);
  SkipLevel(text);
  if (!TakeStamp(text, &line)) {
    std::string_view rest = text;
    const std::string_view host = TakeUntil(rest, ':');
    if (IsHostWord(host) && TakeLiteral(rest, ": ") && (SkipLevel(rest), TakeStamp(rest, &line))) {
      if (line.host.empty() && host != "kernel") line.host = host;
      text = rest;
    }
  } else if (line.shape == Shape::kernel) {
    // syslog keeps the kernel's own stamp.
    KernelLine inner;
    TakeBracketTime(text, &inner);
  }
  line.message = text;
  if (line.shape == Shape::bare) {
    // Some program's own prefix stands before it; these words are the kernel's alone.
    for (const std::string_view words :
         {"NVRM: Xid (", "Memory cgroup out of memory: Killed process ", "Out of memory: Killed process "})
      if (const size_t at = text.substr(0, 120).find(words); at != std::string_view::npos)
        line.message = text.substr(at);
  }
  return line;
}

}  // namespace tacet
