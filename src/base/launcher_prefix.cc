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

bool TakeOne(std::string_view& line, Kind* kind, int64_t* number) {
  if (line.empty()) return false;
  if (line.front() == '[') {
    if (TakePodTag(line)) return *kind = Kind::pod, true;
    if (TakeMpiTag(line, number)) return *kind = Kind::task, true;
    return TakeBracketWord(line, kind, number);
  }
  if (line.front() == '(') return TakeRayTag(line, number) && (*kind = Kind::process, true);
  return (IsDigit(line.front()) || line.front() == ' ') && TakeTask(line, number) && (*kind = Kind::task, true);
}

}  // namespace

LauncherPrefix TakeLauncherPrefix(std::string_view& line) {
  LauncherPrefix prefix;
  const char* begin = line.data();
  for (int i = 0; i < 3; ++i) {
    Kind kind = Kind::none;
    int64_t number = -1;
    if (!TakeOne(line, &kind, &number)) break;
    if (prefix.kind == Kind::none || kind == Kind::rank) prefix.kind = kind, prefix.number = number;
  }
  prefix.label = {begin, static_cast<size_t>(line.data() - begin)};
  return prefix;
}

bool TakePodWord(std::string_view& line, std::string_view* pod) {
  size_t end = 0;
  bool dash = false;
  for (; end < line.size() && IsWordCharacter(line[end]); ++end) dash = dash || line[end] == '-';
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
