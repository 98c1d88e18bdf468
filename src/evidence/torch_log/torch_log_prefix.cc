// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_prefix.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_time.h"
#include "model/events/parallel_label.h"

namespace tacet {
namespace {

bool IsSeverity(char c) { return c == 'I' || c == 'W' || c == 'E' || c == 'F'; }

// "626 " or "1115 " before the time: month and day.
bool TakeMonthDay(std::string_view& text, int32_t* month_day) {
  std::string_view rest = text;
  int32_t value = 0;
  if (rest.empty() || !IsDigit(rest[0]) || !TakeNumber(rest, &value)) return false;
  const size_t digits = text.size() - rest.size();
  const int32_t month = value / 100, day = value % 100;
  if (digits < 3 || digits > 4 || month < 1 || month > 12 || day < 1 || day > 31 || !TakeLiteral(rest, " "))
    return false;
  *month_day = value;
  text = rest;
  return true;
}

// "ProcessGroupNCCL.cpp:670] " or "site-packages/torch/distributed/run.py:792] "
bool TakeCodePlace(std::string_view& text, std::string_view* file) {
  size_t end = 0;
  while (end < text.size() && end < 200 && text[end] != ':' && text[end] != ' ' && text[end] != ']') ++end;
  std::string_view rest = text.substr(end);
  int line = 0;
  const std::string_view name = text.substr(0, end);
  if (name.find('.') == std::string_view::npos || !TakeLiteral(rest, ":") || !TakeNumber(rest, &line) ||
      !TakeLiteral(rest, "]"))
    return false;
  TakeLiteral(rest, " ");
  *file = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  text = rest;
  return true;
}

// [E ProcessGroupNCCL.cpp:474] text
// [E626 16:48:25.440243908 ProcessGroupNCCL.cpp:670] text
// E0927 12:07:22.643702 1012209 ProcessGroupNCCL.cpp:670] text
void TakeLogPrefix(LinePrefix& prefix) {
  std::string_view rest = prefix.text;
  const bool bracket = TakeLiteral(rest, "[");
  if (rest.size() < 8 || !IsSeverity(rest[0])) return;
  const char severity = rest[0];
  rest.remove_prefix(1);
  LogMoment time = prefix.time;
  int64_t thread = 0;
  LogMoment written;
  // "F0000 00:00:1717141650.890307    9276 file.cc:487] text": Abseil before its program has set it up; seconds since
  // 1970.
  if (std::string_view early = rest; !bracket && TakeLiteral(early, "0000 00:00:")) {
    int64_t seconds = 0;
    if (!TakeNumber(early, &seconds)) return;
    early = early.substr(std::min(early.find(' '), early.size()));
    SkipBlanks(early);
    if (!TakeNumber(early, &thread) || !TakeLiteral(early, " ")) return;
    rest = early;
  } else if (TakeMonthDay(rest, &written.month_day)) {
    if (!TakeClockTime(rest, &written.second_of_day)) return;
    SkipBlanks(rest);
    if (!bracket && (!TakeNumber(rest, &thread) || !TakeLiteral(rest, " "))) return;
    if (time.wall_ns == LogMoment::kNone) time = written;
  } else if (!bracket || !TakeLiteral(rest, " ")) {
    return;
  }
  if (!TakeCodePlace(rest, &prefix.code_file)) return;
  prefix.severity = severity;
  prefix.time = time;
  prefix.text = rest;
}

// "Thu Jan 23 09:12:31 2020[4]<stderr>:text": horovodrun puts the time before its label, as asctime() writes it.
void TakeHorovodTime(LinePrefix& prefix) {
  constexpr size_t kLength = 24;
  const std::string_view text = prefix.text;
  if (text.size() <= kLength || text[kLength] != '[' || text[3] != ' ' || text[7] != ' ' || text[13] != ':' ||
      text[16] != ':' || text[19] != ' ' || !IsDigit(text[23]))
    return;
  std::string_view label = text.substr(kLength);
  if (TakeLauncherPrefix(label).kind == LauncherPrefix::Kind::task) prefix.text.remove_prefix(kLength);
}

// "[2026-03-09 00:57:15 TP4] text", "[2026-03-09 00:57:15 DP0 TP4 EP4] text": SGLang names its process behind the time.
void TakeParallelLabel(std::string_view& rest, LinePrefix& prefix) {
  constexpr size_t kLongest = 40;
  const size_t close = rest.substr(0, kLongest).find(']');
  if (close == std::string_view::npos) return;
  const std::string_view label = rest.substr(1, close - 1);
  if (label.find_first_not_of("TPDE0123456789 ") != std::string_view::npos) return;
  prefix.head_rank = RankOfParallelLabel(label);
  rest.remove_prefix(close);
}

// "[2026-11-15T00:39:15.621349] text", "2024-04-10 04:59:03 | text"; one blank behind it belongs to it.
void TakeTime(LinePrefix& prefix) {
  std::string_view rest = prefix.text;
  const bool bracket = TakeLiteral(rest, "[");
  LogMoment time;
  if (!TakeDatedTime(rest, &time)) return;
  if (bracket && rest.starts_with(' ')) TakeParallelLabel(rest, prefix);
  if (bracket && !TakeLiteral(rest, "]")) return;
  if (!rest.empty() && rest[0] != ' ' && rest[0] != ':' && rest[0] != '|' && !bracket) return;
  TakeLiteral(rest, " ");
  prefix.time = time;
  prefix.text = rest;
}

// "[1699999999.123456] [gpu17:4121:0] text": UCX counts from 1970. Other lines may be in a local time, so that it
// orders nothing among them, but the line begins behind it.
void TakeUcxTime(LinePrefix& prefix) {
  std::string_view rest = prefix.text;
  if (!TakeLiteral(rest, "[") || rest.size() < 20 || rest[10] != '.') return;
  const size_t close = rest.find(']');
  if (close == std::string_view::npos || close > 20 || !rest.substr(close).starts_with("] [")) return;
  if (rest.substr(0, close).find_first_not_of("0123456789.") != std::string_view::npos) return;
  prefix.text = rest.substr(close + 2);
}

// "10:00:01.123 text", "[10:00:01] text", "01/02/2025 10:00:01 text": a time whose day is not told, or told in an order
// that nobody can know. It orders nothing, but the line begins behind it.
void TakeBareClock(LinePrefix& prefix) {
  std::string_view rest = prefix.text;
  const bool bracket = TakeLiteral(rest, "[");
  const size_t slash = rest.substr(0, 5).find('/');
  if (slash == 2 || slash == 4) {
    const std::string_view date = TakeUntil(rest, ' ');
    if (date.size() < 8 || date.size() > 10 || date.find_first_not_of("0123456789/") != std::string_view::npos) return;
    TakeLiteral(rest, " ");
  }
  int32_t second_of_day = 0;
  if (!TakeClockTime(rest, &second_of_day)) return;
  if (bracket && !TakeLiteral(rest, "]")) return;
  if (!TakeLiteral(rest, " ")) return;
  prefix.text = rest;
}

// "[rank3]:" behind whatever a collector, a shell or a test runner put before the line: "stderr: ", "[gpu-node-3] ",
// "Jan  2 10:00:01 gpu1 ", "E    ".
void TakeRankMark(LinePrefix& prefix) {
  constexpr size_t kFarthest = 80;
  const std::string_view head = prefix.text.substr(0, kFarthest + 8);
  for (size_t at = head.find("[rank"); at != std::string_view::npos && at <= kFarthest;
       at = head.find("[rank", at + 5)) {
    std::string_view rest = prefix.text.substr(at);
    const LauncherPrefix found = TakeLauncherPrefix(rest);
    if (found.kind != LauncherPrefix::Kind::rank) continue;
    prefix.rank = static_cast<int32_t>(std::min<int64_t>(found.number, INT32_MAX));
    prefix.text = rest;
    return;
  }
}

// "837/888 [9:42:50<34:08, 40.17s/it]...": a bar whose beginning was cut off.
bool BeginsWithEndOfBar(std::string_view text) {
  int64_t step = 0, last = 0;
  SkipBlanks(text);
  if (!TakeNumber(text, &step) || !TakeLiteral(text, "/") || !TakeNumber(text, &last) || !TakeLiteral(text, " ["))
    return false;
  const std::string_view inside = text.substr(0, text.find(']'));
  return inside.find('<') < 12 && ContainsAny(inside, {"s/it", "it/s"});
}

// "UTC master.0 -- [1,0]<stderr>:text": the tag of mpirun behind whatever a collector put before the line.
void TakeTagBehindWords(LinePrefix& prefix) {
  constexpr size_t kFarthest = 80;
  const std::string_view head = prefix.text.substr(0, kFarthest);
  const size_t close = head.find("]<std");
  if (close == std::string_view::npos) return;
  const size_t open = head.substr(0, close).rfind('[');
  if (open == std::string_view::npos) return;
  std::string_view rest = prefix.text.substr(open);
  const LauncherPrefix found = TakeLauncherPrefix(rest);
  if (found.kind != LauncherPrefix::Kind::task) return;
  prefix.launcher = found;
  prefix.text = rest;
}

// "[2019-10-14 10:22:40.204972: W horovod/common/stall_inspector.cc:105] text": Horovod's own head of a line.
void TakeHorovodHead(LinePrefix& prefix) {
  std::string_view rest = prefix.text;
  LogMoment time;
  std::string_view file;
  if (!TakeLiteral(rest, "[") || !TakeDatedTime(rest, &time) || !TakeLiteral(rest, ": ") || rest.size() < 2 ||
      !IsSeverity(rest[0]) || rest[1] != ' ')
    return;
  rest.remove_prefix(2);
  if (!TakeCodePlace(rest, &file)) return;
  if (!prefix.time.known()) prefix.time = time;
  prefix.text = rest;
}

// "[stderr]Traceback (most recent call last):", as some cloud services write it.
void TakeStreamName(LinePrefix& prefix) {
  if (!TakeLiteral(prefix.text, "[stderr]")) TakeLiteral(prefix.text, "[stdout]");
}

// A step number in brackets is the job's own: "[step10]: loss 0.3".
bool IsStepWord(std::string_view label) {
  for (const std::string_view word : {"[step", "[epoch", "[iter", "[batch", "[Step", "[Epoch", "[Iter", "[Batch"})
    if (label.starts_with(word)) return true;
  return false;
}

void TakeLabels(LinePrefix& prefix, LabelStyle style) {
  std::string_view rest = prefix.text;
  if (rest.empty()) return;
  const char first = rest[0];
  const bool number = IsDigit(first) || first == ' ';
  if (number ? style.tasks : first == '[' || first == '(') {
    LauncherPrefix found = TakeLauncherPrefix(rest);
    if (found.kind == LauncherPrefix::Kind::none || (!number && IsStepWord(found.label))) return;
    if (found.kind == LauncherPrefix::Kind::rank) {
      prefix.rank = static_cast<int32_t>(std::min<int64_t>(found.number, INT32_MAX));
      std::string_view outer = found.label.substr(0, found.label.find("[rank"));
      found.label = outer;
      std::string_view again = outer;
      if (!outer.empty()) {
        found = TakeLauncherPrefix(again);
        found.label = outer;
      }
    }
    if (!found.label.empty()) prefix.launcher = found;
    prefix.text = rest;
    return;
  }
  std::string_view pod;
  if (style.pods && TakePodWord(rest, &pod)) {
    prefix.launcher = {LauncherPrefix::Kind::pod, -1, pod};
    prefix.text = rest;
  }
}

// " 94%|█████▉ | 837/888 [9:42:50<34:08, 40.17s/it][rank7]:[E ProcessGroupNCCL.cpp:1182] ...": a bar does not end its
// line, so what is printed next stands behind it. With its blocks of three bytes each it is hundreds of bytes long.
void TakeBar(LinePrefix& prefix, LabelStyle style) {
  constexpr size_t kFarthest = 80;  // what a user may write before the bar
  constexpr size_t kLongest = 2000;
  const size_t begin = prefix.text.substr(0, kFarthest).find("%|");
  std::string_view rest = prefix.text;
  if (begin != std::string_view::npos) {
    rest = prefix.text.substr(begin + 2, kLongest);
    const size_t close = rest.find("| ");
    if (close == std::string_view::npos) return;
    rest.remove_prefix(close + 2);
  } else if (!BeginsWithEndOfBar(prefix.text)) {
    return;
  }
  const size_t open = rest.find(" [");
  if (open == std::string_view::npos || rest.substr(0, open).find('/') == std::string_view::npos) return;
  rest.remove_prefix(open);
  const size_t end = rest.find(']');
  if (end == std::string_view::npos) return;
  const size_t length = static_cast<size_t>(rest.data() - prefix.text.data()) + end + 1;
  if (Trim(prefix.text.substr(length)).empty()) return;  // the bar itself
  prefix.bar = prefix.text.substr(0, length);
  prefix.bar_launcher = prefix.launcher;
  prefix.bar_rank = prefix.rank;
  prefix.text.remove_prefix(length);
  while (prefix.text.starts_with(' ')) prefix.text.remove_prefix(1);
  if (!prefix.time.known()) TakeTime(prefix);
  // "[default0]:Map:  8%|8  | 72/967 [02:32<30:38, 48.01 examples/s][default2]:[E ProcessGroupNCCL.cpp:475] ..."
  if (!prefix.text.starts_with('[')) return;
  LinePrefix behind;
  behind.text = prefix.text;
  TakeLabels(behind, style);
  if (behind.launcher.label.empty() && behind.rank < 0) return;
  prefix.launcher = behind.launcher;
  prefix.rank = behind.rank;
  prefix.text = behind.text;
}

}  // namespace

LabelStyle FindLabelStyle(std::string_view bytes) {
  LineReader reader(bytes.substr(0, 128 * 1024));
  std::string_view line;
  std::map<std::string_view, int> tasks, pods;
  int lines = 0, task_lines = 0, pod_lines = 0;
  bool by_slurm = false;
  while (lines < 400 && reader.Next(&line)) {
    if (Trim(line).empty()) continue;
    // Slurm labels what tasks print, and not its own words.
    if (line.starts_with("srun: ") || line.starts_with("slurmstepd: ")) {
      by_slurm = true;
      continue;
    }
    std::string_view rest = line, pod;
    // "3: host:17:17 [0] NCCL INFO ...": a log may begin with thousands of these; without a label they tell nothing.
    if (IsNcclLine(line.substr(0, 160)) &&
        (!IsDigit(line[0]) || TakeLauncherPrefix(rest).kind == LauncherPrefix::Kind::none))
      continue;
    rest = line;
    ++lines;
    if (IsDigit(line[0]) || line[0] == ' ') {
      const LauncherPrefix found = TakeLauncherPrefix(rest);
      // "0: [rank8]: text" counts as well: what begins with a digit has a task.
      if (found.kind != LauncherPrefix::Kind::none)
        ++task_lines, ++tasks[found.label.substr(0, found.label.find(':') + 1)];
    } else if (TakePodWord(rest, &pod)) {
      ++pod_lines, ++pods[pod];
    }
  }
  // A label returns; a step number at the start of a line does not.
  const auto returns = [](const auto& labels, int count) {
    return count >= 2 && labels.size() * 2 <= static_cast<size_t>(count);
  };
  LabelStyle style;
  style.tasks = (task_lines * 10 >= lines * 6 && returns(tasks, task_lines)) ||
                (by_slurm && task_lines == lines && task_lines >= 2);
  style.pods = pod_lines * 10 >= lines * 8 && returns(pods, pod_lines);
  return style;
}

LinePrefix SplitPrefix(std::string_view line, LabelStyle style) {
  LinePrefix prefix;
  prefix.text = line;
  // A collector may put its time before the label or behind it, the job its own behind that; the first one counts.
  TakeTime(prefix);
  TakeHorovodTime(prefix);
  TakeLabels(prefix, style);
  if (prefix.launcher.label.empty()) TakeTagBehindWords(prefix);
  for (int i = 0; i < 2; ++i) {
    const LogMoment outer = prefix.time;
    TakeTime(prefix);
    if (outer.known()) prefix.time = outer;
  }
  TakeBareClock(prefix);
  TakeUcxTime(prefix);
  if (prefix.text.starts_with("[20")) TakeHorovodHead(prefix);
  if (prefix.text.starts_with("[std")) TakeStreamName(prefix);
  TakeBar(prefix, style);
  if (prefix.rank < 0) TakeRankMark(prefix);
  TakeLogPrefix(prefix);
  return prefix;
}

bool IsErrorLine(const LinePrefix& prefix) {
  if (prefix.severity != 0) return prefix.severity == 'E' || prefix.severity == 'F';
  std::string_view rest = prefix.text;
  if (!TakeLiteral(rest, "[E") && !TakeLiteral(rest, "[F")) return false;
  int32_t month_day = 0, second_of_day = 0;
  return TakeMonthDay(rest, &month_day) && TakeClockTime(rest, &second_of_day);
}

int32_t RankInLabel(std::string_view label) {
  if (const auto rank = IntAfter<int32_t>(label, "Worker rank=")) return *rank;
  for (const std::string_view head : {"(Worker_", "(VllmWorker "})
    if (label.starts_with(head)) {
      label.remove_prefix(head.size());
      return RankOfParallelLabel(label.substr(0, label.find(" pid=")));
    }
  return -1;
}

int32_t RankInHead(std::string_view text) {
  constexpr size_t kFarthest = 160;
  if (!text.starts_with('[')) return -1;
  const size_t at = text.substr(0, kFarthest).find("[RANK:");
  // Nothing but other marks stands before it.
  if (at == std::string_view::npos || (at > 0 && !text.substr(0, at).ends_with("] "))) return -1;
  std::string_view digits = text.substr(at + 6);
  int32_t rank = -1;
  return TakeNumber(digits, &rank) && rank >= 0 && digits.starts_with("] ") ? rank : -1;
}

GroupPrefix FindGroupPrefix(std::string_view text) {
  GroupPrefix prefix;
  auto rest = After(text, "[PG ");
  if (!rest) return prefix;
  const std::string_view inside = rest->substr(0, rest->find("] "));
  const size_t at = inside.rfind(" Rank ");
  if (at == std::string_view::npos || inside.size() > 600) return prefix;
  std::string_view digits = inside.substr(at + 6);
  int32_t group_rank = -1;
  if (!TakeNumber(digits, &group_rank) || group_rank < 0) return prefix;
  std::string_view name = inside.substr(0, at);
  int64_t id = -1;
  const bool has_id = TakeLiteral(name, "ID ");
  if (has_id) {
    std::string_view ahead = name;
    if (TakeNumber(ahead, &id)) {
      SkipBlanks(ahead);
      if (TakeLiteral(ahead, "PG GUID ")) name = ahead;
    }
  }
  if (const size_t open = name.find('('); open != std::string_view::npos) {
    std::string_view description = name.substr(open + 1);
    if (description.ends_with(')')) description.remove_suffix(1);
    prefix.description = description;
    name = name.substr(0, open);
  }
  prefix.name = Trim(name);
  prefix.group_rank = group_rank;
  prefix.is_default = id == 0 || prefix.description == "default_pg" || (!has_id && prefix.name == "0");
  return prefix;
}

bool IsNcclLine(std::string_view line) {
  // "[0] NCCL INFO text", "[0] misc/socket.cc:72 NCCL WARN text"
  const std::string_view head = line.substr(0, 240);
  const size_t at = head.find("NCCL ");  // not " NCCL ": blanks are many, capitals few
  if (at == std::string_view::npos || at == 0 || head[at - 1] != ' ') return false;
  const std::string_view rest = line.substr(at + 5);
  if (!rest.starts_with("INFO") && !rest.starts_with("WARN") && !rest.starts_with("TRACE") &&
      !rest.starts_with("CALL") && !rest.starts_with("ABORT"))
    return false;
  if (head.size() > 3 && head[0] == '[' && IsDigit(head[1]) && (head[2] == ']' || head[3] == ']')) return true;
  return std::count(head.begin(), head.begin() + static_cast<ptrdiff_t>(at), ':') >= 2;  // host:pid:tid
}

}  // namespace tacet
