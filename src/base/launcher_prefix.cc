// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_prefix.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

using Kind = LauncherPrefix::Kind;

bool IsWordCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

// "3: text", " 3: text", "03: text"; at most seven digits, so that a time or a port is not one.
bool TakeTask(std::string_view& line, int64_t* number) {
  std::string_view rest = line;
  for (int i = 0; i < 4 && rest.starts_with(' '); ++i) rest.remove_prefix(1);
  size_t digits = 0;
  while (digits < rest.size() && IsDigit(rest[digits])) ++digits;
  if (digits == 0 || digits > 7 || !TakeNumber(rest, number) || !TakeLiteral(rest, ":")) return false;
  if (!rest.empty() && !TakeLiteral(rest, " ")) return false;
  line = rest;
  return true;
}

// Some writers put a blank after the tag, some do not; what they carry is indented by an even number.
void SkipOddBlank(std::string_view& text) {
  const size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  if (blanks % 2 == 1) text.remove_prefix(1);
}

// "[1,3]<stdout>:text", "[1,3]<stderr>: text", "[3]<stderr>:text"
bool TakeMpiTag(std::string_view& line, int64_t* number) {
  std::string_view rest = line;
  int64_t job = 0;
  if (!TakeLiteral(rest, "[")) return false;
  // "[3]<stderr>:" is Horovod's own launcher, "[1,mpirank:8,algo-2]<stdout>:" SageMaker's.
  if (!TakeNumber(rest, &job)) return false;
  *number = job;
  if (TakeLiteral(rest, ",")) {
    const bool named = TakeLiteral(rest, "mpirank:");
    if (!TakeNumber(rest, number)) return false;
    if (named) rest = rest.substr(std::min(rest.find(']'), rest.size()));
  }
  if (!TakeLiteral(rest, "]<std") || (!TakeLiteral(rest, "out>:") && !TakeLiteral(rest, "err>:"))) return false;
  SkipOddBlank(rest);
  line = rest;
  return true;
}

// "[rank3]:text", "[default3]:text", "[trainer_0]: text", "[trainer0|2]:text" (of the third attempt); the number ends
// the word.
bool TakeBracketWord(std::string_view& line, Kind* kind, int64_t* number) {
  if (!line.starts_with('[')) return false;
  size_t end = 1;
  while (end < line.size() && IsWordCharacter(line[end])) ++end;
  size_t close = end;
  if (close + 1 < line.size() && line[close] == '|' && IsDigit(line[close + 1]))
    for (++close; close < line.size() && IsDigit(line[close]);) ++close;
  if (end < 3 || end > 40 || !line.substr(close).starts_with("]:")) return false;
  size_t digit = end;
  while (digit > 1 && IsDigit(line[digit - 1])) --digit;
  std::string_view digits = line.substr(digit, end - digit);
  if (digits.empty() || digit == 1 || !TakeNumber(digits, number)) return false;
  *kind = line.substr(1, digit - 1) == "rank" ? Kind::rank : Kind::local;
  line.remove_prefix(close + 2);
  SkipOddBlank(line);
  return true;
}

// "(pid=1234) text", "(RayTrainWorker pid=1234, ip=10.0.0.7) text"
bool TakeRayTag(std::string_view& line, int64_t* number) {
  if (!line.starts_with('(')) return false;
  const size_t close = line.substr(0, 200).find(") ");
  if (close == std::string_view::npos) return false;
  const auto pid = IntAfter(line.substr(0, close), "pid=");
  if (!pid) return false;
  *number = *pid;
  line.remove_prefix(close + 2);
  return true;
}

bool TakePodTag(std::string_view& line) {
  if (!line.starts_with("[pod/")) return false;
  const size_t close = line.substr(0, 400).find("] ");
  if (close == std::string_view::npos) return false;
  line.remove_prefix(close + 2);
  return true;
}

bool TakeOne(std::string_view& line, bool may_be_task, Kind* kind, int64_t* number) {
  if (line.empty()) return false;
  if (line.front() == '[') {
    if (TakePodTag(line)) return *kind = Kind::pod, true;
    if (TakeMpiTag(line, number)) return *kind = Kind::task, true;
    return TakeBracketWord(line, kind, number);
  }
  if (line.front() == '(') return TakeRayTag(line, number) && (*kind = Kind::process, true);
  return may_be_task && (IsDigit(line.front()) || line.front() == ' ') && TakeTask(line, number) &&
         (*kind = Kind::task, true);
}

}  // namespace

LauncherPrefix TakeLauncherPrefix(std::string_view& line) {
  LauncherPrefix prefix;
  const char* begin = line.data();
  for (int i = 0; i < 3; ++i) {
    Kind kind = Kind::none;
    int64_t number = -1;
    // Behind the tag of a process a number is its own text: "[1,0]<stderr>:3: [grads_17, grads_18 ...]".
    if (!TakeOne(line, prefix.kind == Kind::none || prefix.kind == Kind::pod, &kind, &number)) break;
    if (prefix.kind == Kind::none || kind == Kind::rank) prefix.kind = kind, prefix.number = number;
  }
  prefix.label = {begin, static_cast<size_t>(line.data() - begin)};
  return prefix;
}

namespace {

struct InnerTag {
  size_t begin = std::string_view::npos, end = 0;
  std::string_view name;  // "1,0"
};

// The next "[1,0]<stderr>:" at or behind `from`.
InnerTag FindTag(std::string_view line, size_t from) {
  constexpr size_t kLongestName = 60;
  for (size_t close = line.find("]<std", from); close != std::string_view::npos;
       close = line.find("]<std", close + 5)) {
    std::string_view rest = line.substr(close + 5);
    if (!TakeLiteral(rest, "out>:") && !TakeLiteral(rest, "err>:")) continue;
    const size_t earliest = std::max(from, close - std::min(close, kLongestName));
    const size_t open = line.substr(earliest, close - earliest).rfind('[');
    if (open == std::string_view::npos || !IsDigit(line[earliest + open + 1])) continue;
    return {earliest + open, close + 10, line.substr(earliest + open + 1, close - earliest - open - 1)};
  }
  return {};
}

// "[rank3]:[E723 01:58:45 ...": where PyTorch's logger begins a line, at or behind `from`.
size_t FindLoggedRank(std::string_view line, size_t from) {
  for (size_t at = line.find("]:[", from); at != std::string_view::npos; at = line.find("]:[", at + 3)) {
    const size_t open = line.rfind("[rank", at);
    if (open == std::string_view::npos || open < from || at <= open + 5 || at - open > 12) continue;
    const std::string_view behind = line.substr(at + 3);
    if (line.substr(open + 5, at - open - 5).find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (behind.size() < 2 || std::string_view("EWIF").find(behind[0]) == std::string_view::npos) continue;
    if (IsDigit(behind[1]) || behind[1] == ' ') return open;
  }
  return std::string_view::npos;
}

// Lines that lost their ends, or that several ranks printed at once: "... timing out.[rank1]:[E723 ...".
std::vector<std::string> SplitAtLoggedRanks(std::string_view line) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t next = FindLoggedRank(line, 0); next != std::string_view::npos; next = FindLoggedRank(line, next + 5)) {
    // What stands before the first one is a part of its line: a label, a progress bar.
    if (begin == 0 && lines.empty()) next = FindLoggedRank(line, next + 5);
    if (next == std::string_view::npos) break;
    lines.emplace_back(line.substr(begin, next - begin));
    begin = next;
  }
  lines.emplace_back(line.substr(begin));
  return lines;
}

bool HasSeveralLoggedRanks(std::string_view line) {
  const size_t first = FindLoggedRank(line, 0);
  return first != std::string_view::npos && FindLoggedRank(line, first + 5) != std::string_view::npos;
}

}  // namespace

bool HasInnerTags(std::string_view line) {
  if (HasSeveralLoggedRanks(line)) return true;
  const size_t first = line.find("]<std");
  return first != std::string_view::npos && line.find("]<std", first + 5) != std::string_view::npos;
}

std::vector<std::string> SplitAtInnerTags(std::string_view line) {
  if (HasSeveralLoggedRanks(line)) return SplitAtLoggedRanks(line);
  std::vector<std::string> lines(1);
  InnerTag tag = FindTag(line, 0);
  if (tag.end == 0) return {std::string(line)};
  lines.back() = line.substr(0, tag.end);  // whatever a collector wrote before it, and the tag itself
  std::string_view name = tag.name;
  for (size_t at = tag.end; at < line.size();) {
    tag = FindTag(line, at);
    lines.back() += line.substr(at, std::min(tag.begin, line.size()) - at);
    if (tag.end == 0) break;
    if (tag.name != name) lines.emplace_back(line.substr(tag.begin, tag.end - tag.begin));
    name = tag.name;
    at = tag.end;
  }
  return lines;
}

bool TakePodWord(std::string_view& line, std::string_view* pod) {
  size_t end = 0;
  bool dash = false;
  for (; end < line.size() && IsWordCharacter(line[end]); ++end) dash = dash || line[end] == '-';
  if (line.starts_with('-')) return false;  // "- {rank: 1}": an item of a list
  if (!dash || end == 0 || end > 253 || end >= line.size() || line[end] != ' ') return false;
  *pod = line.substr(0, end);
  line.remove_prefix(end + 1);
  return true;
}

std::string DropTerminalCodes(std::string_view line) {
  std::string plain;
  plain.reserve(line.size());
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
    } else if (i + 1 < line.size() && line[i + 1] == ']') {  // the title of a window, to its end
      while (i < line.size() && line[i] != '\a' && !(line[i] == '\x1b' && line.substr(i).starts_with("\x1b\\"))) ++i;
      if (i < line.size() && line[i] == '\x1b') ++i;
    }
  }
  return plain;
}

}  // namespace tacet
