// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/wrapped_error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"

namespace tacet {
namespace {

constexpr size_t kLongestRecord = 256 * 1024;
constexpr std::string_view kTracebackHead = "Traceback (most recent call last)";

// A name of a record and its value; `object` where another record follows it.
struct NamedValue {
  std::string_view key, value;
  bool object = false, text = false;
};

bool IsKeyCharacter(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '@' || c == '-'; }

// The end of a string that begins at `at`, behind its quotation mark. A line that was cut ends it.
size_t EndOfString(std::string_view text, size_t at, char quote) {
  for (; at < text.size() && text[at] != quote; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at, text.size());
}

// JSON, and what Python prints of a dictionary; whole or cut, which a parser would refuse.
std::vector<NamedValue> NamedValuesOf(std::string_view text) {
  constexpr size_t kMost = 200, kLongestKey = 40;
  std::vector<NamedValue> members;
  for (size_t at = 0; at < text.size() && members.size() < kMost;) {
    const char quote = text[at];
    if (quote != '"' && quote != '\'') {
      ++at;
      continue;
    }
    const size_t begin = ++at;
    while (at < text.size() && IsKeyCharacter(text[at])) ++at;
    const size_t end = at;
    if (at >= text.size() || text[at] != quote || end == begin || end - begin > kLongestKey) {
      at = std::min(EndOfString(text, begin, quote) + 1, text.size());
      continue;
    }
    std::string_view rest = text.substr(++at);
    SkipBlanks(rest);
    if (!TakeLiteral(rest, ":")) continue;
    SkipBlanks(rest);
    NamedValue member{text.substr(begin, end - begin), {}, rest.starts_with('{'), false};
    at = text.size() - rest.size();
    if (!rest.empty() && (rest[0] == '"' || rest[0] == '\'')) {
      const size_t close = EndOfString(text, at + 1, rest[0]);
      member.value = text.substr(at + 1, close - at - 1);
      member.text = true;
      at = std::min(close + 1, text.size());
    } else if (!member.object) {
      member.value = rest.substr(0, std::min(rest.find_first_of(",}]"), rest.size()));
    }
    members.push_back(member);
  }
  return members;
}

template <size_t N>
bool IsAmong(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The last part of "error.stack_trace" tells what it is, the first ones whose.
std::string_view LastPartOfKey(std::string_view key) {
  const size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

constexpr std::array<std::string_view, 8> kTraceKeys{"traceback",  "exc_info", "exception",      "stack_trace",
                                                     "stacktrace", "exc_text", "exception_info", "trace"};
constexpr std::array<std::string_view, 8> kErrorKeys{"error",  "err",     "error_message",     "errormessage",
                                                     "detail", "details", "exception_message", "failure"};
constexpr std::array<std::string_view, 6> kMessageKeys{"message", "msg", "event", "text", "log", "textpayload"};
constexpr std::array<std::string_view, 5> kLevelKeys{"level", "severity", "levelname", "lvl", "loglevel"};
constexpr std::array<std::string_view, 6> kBadLevelNames{"error", "critical", "fatal", "panic", "alert", "emergency"};
constexpr std::array<std::string_view, 4> kRankKeys{"rank", "global_rank", "process_rank", "process_index"};
constexpr std::array<std::string_view, 4> kTypeKeys{"type", "class", "error_type", "exc_type"};
constexpr std::array<std::string_view, 3> kContainerKeys{"error", "err", "exception"};

// What the writer escaped; a line within the text is drawn anew.
std::string WithoutEscapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 >= text.size()) {
      if (text[at] != '\\') out += text[at];
      continue;
    }
    switch (const char c = text[++at]) {
      case 'n': out += '\r'; break;
      case 'r': break;
      case 't': out += '\t'; break;
      case '"':
      case '\'':
      case '/':
      case '\\': out += c; break;
      default: out.append({'\\', c});
    }
  }
  return out;
}

bool IsErrorClass(std::string_view name) {
  return (name.ends_with("Error") || name.ends_with("Exception")) && name.find(' ') == std::string_view::npos;
}

// A part that another one has as well is told once.
void AppendPart(std::string part, std::vector<std::string>& parts) {
  while (!part.empty() && (part.back() == '\r' || part.back() == ' ')) part.pop_back();
  if (part.empty()) return;
  for (std::string& known : parts) {
    if (Contains(known, part)) return;
    if (Contains(part, known)) {
      known = std::move(part);
      return;
    }
  }
  parts.push_back(std::move(part));
}

struct ErrorRecord {
  std::vector<std::string> messages, errors, traces;
  std::string type;
  int64_t rank = -1;
  bool bad_level = false;
};

ErrorRecord SortValues(const std::vector<NamedValue>& members) {
  ErrorRecord record;
  bool inside = false;  // of a record that tells the error
  for (const NamedValue& member : members) {
    const std::string low = LowerCase(member.key);
    const std::string_view key = LastPartOfKey(low);
    if (member.object) {
      inside = IsAmong(key, kContainerKeys);
      continue;
    }
    if (!member.text) {
      std::string_view digits = Trim(member.value);
      int64_t rank = -1;
      if (IsAmong(key, kRankKeys) && TakeNumber(digits, &rank) && rank >= 0 && rank < 1'000'000) record.rank = rank;
      continue;
    }
    const bool of_error = inside || low.starts_with("error.") || low.starts_with("exception.");
    if (IsAmong(key, kLevelKeys)) {
      record.bad_level |= IsAmong(LowerCase(member.value), kBadLevelNames);
    } else if (IsAmong(key, kTraceKeys)) {
      AppendPart(WithoutEscapes(member.value), record.traces);
    } else if (IsAmong(key, kErrorKeys) || (of_error && (IsAmong(key, kMessageKeys) || key == "value"))) {
      AppendPart(WithoutEscapes(member.value), record.errors);
    } else if (IsAmong(key, kMessageKeys)) {
      AppendPart(WithoutEscapes(member.value), record.messages);
    } else if (IsAmong(key, kTypeKeys) && IsErrorClass(member.value)) {
      record.type = member.value;
    }
  }
  return record;
}

// Documents that have readers of their own.
bool IsKnownDocument(std::string_view json) {
  return ContainsAny(json, {"py_callstack", "extraInfo", "traceEvents", "\"ph\""});
}

// The first names of what loggers and servers write; any other object is a document of somebody else's.
bool BeginsLikeARecord(std::string_view json) {
  static constexpr std::array<std::string_view, 25> kFirst{
      "error",    "err",  "detail", "details",   "message",   "msg",        "event",   "text",      "level",
      "severity", "lvl",  "ts",     "time",      "timestamp", "@timestamp", "asctime", "levelname", "date",
      "object",   "code", "status", "log.level", "name",      "logger",     "exc_info"};
  const std::vector<NamedValue> first = NamedValuesOf(json.substr(0, 400));
  if (first.empty()) return false;
  bool level = false, message = false;
  for (const NamedValue& value : first) {
    level |= IsAmong(LowerCase(value.key), kLevelKeys);
    message |= IsAmong(LowerCase(value.key), kMessageKeys);
  }
  return (level && message) || IsAmong(LowerCase(first[0].key), kFirst);
}

bool ReadErrorRecord(std::string_view line, std::string* text) {
  const size_t open = std::min(line.find("{\""), line.find("{'"));
  if (open == std::string_view::npos) return false;
  const std::string_view before = Trim(line.substr(0, open));
  const std::string_view json = line.substr(open);
  if (IsKnownDocument(json) || (before.empty() && !BeginsLikeARecord(json))) return false;
  const ErrorRecord record = SortValues(NamedValuesOf(json));
  const bool traced = std::any_of(record.traces.begin(), record.traces.end(), [](const std::string& trace) {
    return Contains(trace, kTracebackHead) || IsErrorClass(trace.substr(0, trace.find(':')));
  });
  // Steps and settings are written so, too; whoever writes before a record says himself what it is.
  if (record.errors.empty() && !traced && !(record.bad_level && before.empty())) return false;
  std::vector<std::string> parts;
  if (!before.empty()) parts.push_back(std::string(before));
  for (const std::string& message : record.messages) AppendPart(message, parts);
  for (const std::string& error : record.errors)
    AppendPart(record.type.empty() || Contains(error, record.type) ? error : record.type + ": " + error, parts);
  if (traced || !record.errors.empty())
    for (const std::string& trace : record.traces) AppendPart(trace, parts);
  if (parts.empty()) return false;
  text->clear();
  const std::string mark = record.rank < 0 ? std::string() : "[rank" + std::to_string(record.rank) + "]: ";
  for (const std::string& part : parts) {
    std::string_view rest = part;
    while (!rest.empty()) {
      if (!text->empty()) *text += '\r';
      *text += mark;
      *text += TakeUntil(rest, '\r');
      if (!rest.empty()) rest.remove_prefix(1);
    }
  }
  return true;
}

// A traceback in one line, as repr() writes a message.
bool ReadEscapedTraceback(std::string_view line, std::string* text) {
  const size_t head = line.find(kTracebackHead);
  if (head == std::string_view::npos || !line.substr(head + kTracebackHead.size()).starts_with(":\\n")) return false;
  *text = WithoutEscapes(line);
  // The marks that close the message: "')".
  const size_t last = text->rfind('\r');
  if (last != std::string::npos && std::none_of(text->begin() + static_cast<std::ptrdiff_t>(last), text->end(),
                                                [](char c) { return IsLetter(c) || IsDigit(c); }))
    text->resize(last);
  return true;
}

}  // namespace

bool ReadWrappedError(std::string_view line, std::string* text) {
  if (line.size() < 12 || line.size() > kLongestRecord) return false;
  return ReadErrorRecord(line, text) || ReadEscapedTraceback(line, text);
}

bool HasWrappedErrors(std::string_view prefix) {
  const size_t first = prefix.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  // A document: the object goes on behind its first line.
  if (prefix[first] == '{' || prefix[first] == '[') {
    const std::string_view line = Trim(prefix.substr(first, prefix.find('\n', first) - first));
    if (prefix[first] == '{' && (IsKnownDocument(line) || !BeginsLikeARecord(line))) return false;
    if (line.size() <= 2) return false;
  }
  LineReader reader(prefix);
  std::string text;
  for (std::string_view line; reader.Next(&line);)
    if (ReadWrappedError(line, &text)) return true;
  return false;
}

std::string OpenWrappedErrors(std::string_view bytes) {
  std::string out, text;
  out.reserve(bytes.size());
  LineReader reader(bytes);
  for (std::string_view line; reader.Next(&line);) {
    if (ReadWrappedError(line, &text))
      out += text;
    else
      out += line;
    out += '\n';
  }
  if (!bytes.ends_with('\n') && !out.empty()) out.pop_back();
  return out;
}

}  // namespace tacet
