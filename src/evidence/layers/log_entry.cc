// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/log_entry.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/json_reader.h"
#include "base/text_scan.h"
#include "evidence/layers/wrapped_error.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

// Nanoseconds, microseconds, milliseconds or seconds since 1970, by their size; -1 for anything else.
int64_t ParseEpoch(std::string_view digits) {
  int64_t value = 0;
  if (digits.empty() || digits.size() > 19 || !TakeNumber(digits, &value) || !digits.empty() || value <= 0) return -1;
  while (value < 1'000'000'000'000'000'000 / 10 && value < INT64_MAX / 1000) value *= 1000;
  return value;
}

// "2026-11-15T00:20:00.123456789Z"; only for order and for the kernel's lines.
int64_t ParseTime(std::string_view text) {
  if (const int64_t epoch = ParseEpoch(text); epoch > 0) return epoch;
  std::tm at{};
  std::string_view rest = text;
  if (text.size() < 19 || text[4] != '-' || !TakeNumber(rest, &at.tm_year) || !TakeLiteral(rest, "-") ||
      !TakeNumber(rest, &at.tm_mon) || !TakeLiteral(rest, "-") || !TakeNumber(rest, &at.tm_mday))
    return -1;
  if (rest.empty()) return -1;
  rest.remove_prefix(1);
  if (!TakeNumber(rest, &at.tm_hour) || !TakeLiteral(rest, ":") || !TakeNumber(rest, &at.tm_min) ||
      !TakeLiteral(rest, ":") || !TakeNumber(rest, &at.tm_sec))
    return -1;
  if (at.tm_year < 1971 || at.tm_year > 2200 || at.tm_mon < 1 || at.tm_mon > 12) return -1;
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  int64_t nanos = 0, unit = 100'000'000;
  if (TakeLiteral(rest, "."))
    for (; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), unit /= 10)
      nanos += (rest[0] - '0') * unit;
  return static_cast<int64_t>(::timegm(&at)) * 1'000'000'000 + nanos;
}

// The members of one object as they come.
struct Members {
  LogEntry entry;
  bool docker = false, journal = false, line = false, message = false, stamped = false;
  bool event = false, levelled = false;        // structlog: {"event": "text", "level": "error"}
  bool whole_text = false, of_loguru = false;  // loguru: {"text": "...", "record": {...}}

  bool IsEntry() const {
    return docker || journal || ((line || message) && stamped) || (event && levelled) || (whole_text && of_loguru);
  }

  void TakeText(std::string_view raw, size_t offset) {
    entry.text = JsonReader::Unescape(raw);
    entry.offset = offset;
  }

  void Take(std::string_view key, std::string_view raw, size_t offset) {
    if (key == "log" || key == "line" || key == "message" || key == "msg" || key == "textPayload" || key == "MESSAGE") {
      if (!entry.text.empty() && key == "message") return;
      TakeText(raw, offset);
      line = line || key == "line" || key == "textPayload" || key == "log";
      message = message || key == "message" || key == "msg" || key == "MESSAGE";
      has_log = has_log || key == "log";
    } else if (key == "event" || key == "text") {
      if (!entry.text.empty()) return;
      TakeText(raw, offset);
      (key == "event" ? event : whole_text) = true;
    } else if (key == "time" || key == "timestamp" || key == "@timestamp" || key == "ts" || key == "date" ||
               key == "asctime") {
      stamped = true;
      entry.wall_ns = ParseTime(raw);
    } else if (key == "severity" || key == "level" || key == "levelname" || key == "log.level" || key == "lvl") {
      levelled = true;
      stamped = true;  // a logger's record, if it has a message
    } else if (key == "__REALTIME_TIMESTAMP") {
      stamped = journal_time = true;
      entry.wall_ns = ParseTime(raw);
    } else if (key == "_HOSTNAME") {
      entry.host = JsonReader::Unescape(raw);
    } else if (key == "_TRANSPORT" || key == "SYSLOG_IDENTIFIER") {
      entry.kernel = entry.kernel || raw == "kernel";
    } else if (key == "stream" && (raw == "stdout" || raw == "stderr")) {
      has_stream = true;
      entry.to_stderr = raw == "stderr";
    } else if (key == "pod" || key == "pod_name" || key == "kubernetes_pod_name") {
      entry.source = JsonReader::Unescape(raw);
    }
  }

  void Settle() {
    docker = has_log && (has_stream || stamped);
    journal = message && journal_time;
    entry.store = docker && has_stream ? LogEntry::Store::docker
                  : journal            ? LogEntry::Store::journal
                                       : LogEntry::Store::other;
  }

  bool has_log = false, has_stream = false, journal_time = false;
};

// A journal writes bytes that are no UTF-8 as numbers: "MESSAGE":[27,91,51,49,109]
std::string BytesOfNumbers(std::string_view raw) {
  std::string text;
  JsonReader reader(raw);
  for (Token token = reader.Next(); token != Token::end && token != Token::error; token = reader.Next())
    if (token == Token::number) text += static_cast<char>(reader.Int());
  return text;
}

// The object that has just been begun, with the objects in it: labels may stand inside ("kubernetes":{"pod_name":...}).
bool ReadObject(JsonReader& reader, std::string_view whole, Members* out) {
  const size_t depth = reader.depth();
  std::string key;
  bool in_payload = false;  // Google Cloud: "jsonPayload":{"message":"text"}
  for (Token token = reader.Next(); token != Token::end && token != Token::error; token = reader.Next()) {
    if (token == Token::object_end && reader.depth() < depth) return out->Settle(), true;
    if (token == Token::object_begin) {
      in_payload = reader.depth() == depth + 1 && key == "jsonPayload";
      out->of_loguru = out->of_loguru || key == "record";
    }
    if (token == Token::object_end) in_payload = false;
    if (token == Token::key) {
      key = reader.String();
      const size_t at = whole.find_first_not_of(" \t\r\n", reader.end_offset());
      if (key == "MESSAGE" && at != std::string_view::npos && whole[at] == '[') {
        out->entry.text = BytesOfNumbers(reader.SkipValue());
        out->message = true;
      }
    } else if (token == Token::string || token == Token::number) {
      // Deeper objects only tell whose line it is.
      const bool of_payload = in_payload && (key == "message" || key == "log");
      if (reader.depth() == depth || of_payload || key == "pod" || key == "pod_name")
        out->Take(key, reader.raw(), reader.offset());
    }
  }
  return false;
}

// The message is not all where the record tells an error beside it.
void AddErrors(std::string_view json, LogEntry& entry) {
  std::string text;
  if (entry.store == LogEntry::Store::other && ReadWrappedError(json, &text)) entry.text = std::move(text);
}

// Walks a document of any shape. An object that is an entry is taken; any other is looked into.
class DocumentReader {
 public:
  DocumentReader(std::string_view text, size_t most_bytes) : text_(text), most_(most_bytes) {}

  std::vector<LogEntry> Read(size_t most_entries) {
    JsonReader reader(text_);
    for (Token token = reader.Next(); token != Token::end && token != Token::error; token = reader.Next()) {
      if (token == Token::object_begin)
        TakeObject(reader);
      else
        TakeToken(reader, token);
      if (entries_.size() >= most_entries || kept_ > most_) break;
    }
    return std::move(entries_);
  }

 private:
  void Keep(LogEntry entry) {
    kept_ += entry.text.size();
    entries_.push_back(std::move(entry));
  }

  void TakeObject(JsonReader& reader) {
    JsonReader ahead = reader;
    Members members;
    // Looked at once more where it is none; the outer objects of a document are few, and a long one is not looked
    // through.
    const size_t begin = reader.offset();
    JsonReader object(text_.substr(begin, kLongestObject));
    object.Next();
    if (ReadObject(object, text_.substr(begin, kLongestObject), &members) && members.IsEntry()) {
      members.entry.offset += begin;
      AddErrors(text_.substr(begin, object.end_offset()), members.entry);
      Keep(std::move(members.entry));
      for (const size_t depth = ahead.depth(); ahead.depth() >= depth;) {
        const Token token = ahead.Next();
        if (token == Token::end || token == Token::error) break;
      }
      reader = ahead;
    }
  }

  // ["1794700800000000000","text"] of a Loki stream, and the labels of the stream before it.
  void TakeToken(JsonReader& reader, Token token) {
    if (token == Token::key) key_ = reader.String();
    if (token == Token::array_begin) in_pair_ = 0;
    if (token != Token::string) return;
    if (key_ == "pod" || key_ == "pod_name") {
      source_ = reader.String();
      return;
    }
    ++in_pair_;
    if (in_pair_ == 1) {
      stamp_ = reader.raw().size() == 19 ? ParseEpoch(reader.raw()) : -1;
    } else if (in_pair_ == 2 && stamp_ > 0) {
      LogEntry entry;
      entry.text = reader.String();
      entry.offset = reader.offset();
      entry.wall_ns = stamp_;
      entry.source = source_;
      Keep(std::move(entry));
    }
  }

  static constexpr size_t kLongestObject = 512 * 1024;
  std::string_view text_;
  const size_t most_;
  size_t kept_ = 0;
  std::vector<LogEntry> entries_;
  std::string key_, source_;
  int in_pair_ = 0;
  int64_t stamp_ = -1;
};

}  // namespace

bool ReadLogEntry(std::string_view json, LogEntry* entry) {
  JsonReader reader(json);
  Members members;
  if (reader.Next() != Token::object_begin || !ReadObject(reader, json, &members) || !members.IsEntry()) return false;
  *entry = std::move(members.entry);
  AddErrors(json, *entry);
  return true;
}

bool HasLogEntries(std::string_view beginning) {
  // A stream without any line is the log of somebody who said nothing.
  return Contains(beginning.substr(0, 4096), "\"resultType\":\"streams\"") ||
         !DocumentReader(beginning, SIZE_MAX).Read(1).empty();
}

std::vector<LogEntry> ReadLogDocument(std::string_view bytes, size_t most_bytes) {
  return DocumentReader(bytes, most_bytes).Read(SIZE_MAX);
}

std::vector<LogEntry> ReadJournalExport(std::string_view bytes, size_t most_bytes) {
  std::vector<LogEntry> entries;
  Members members;
  size_t kept = 0;
  const auto finish = [&] {
    members.Settle();
    if (members.IsEntry()) {
      kept += members.entry.text.size();
      entries.push_back(std::move(members.entry));
    }
    members = {};
  };
  for (size_t at = 0; at < bytes.size() && kept <= most_bytes;) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    std::string_view line = bytes.substr(at, end - at);
    size_t value_at = at;
    at = end + 1;
    if (line.empty()) {
      finish();
      continue;
    }
    std::string_view value;
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      value = line.substr(equals + 1);
      value_at += equals + 1;
      line = line.substr(0, equals);
    } else {
      uint64_t length = 0;
      if (bytes.size() < at + 8) break;
      std::memcpy(&length, bytes.data() + at, 8);
      at += 8;
      if (length > bytes.size() - at) break;  // cut, or no export
      value = bytes.substr(at, length);
      value_at = at;
      at += length + 1;
    }
    if (line == "MESSAGE") {
      members.entry.text = value;
      members.entry.offset = value_at;
      members.message = true;
    } else {
      members.Take(line, value, value_at);
    }
  }
  finish();
  return entries;
}

bool PutInOrder(std::vector<LogEntry>& entries) {
  const auto earlier = [](const LogEntry& a, const LogEntry& b) { return a.wall_ns < b.wall_ns; };
  if (entries.size() < 2 || std::is_sorted(entries.begin(), entries.end(), earlier)) return false;
  // Entries of one moment have no order but that of the file, whichever way it goes.
  if (entries.front().wall_ns > entries.back().wall_ns) std::reverse(entries.begin(), entries.end());
  std::stable_sort(entries.begin(), entries.end(), earlier);
  return true;
}

void LabelSources(std::vector<LogEntry>& entries) {
  const bool several = std::any_of(entries.begin(), entries.end(), [&](const LogEntry& entry) {
    return !entry.source.empty() && entry.source != entries.front().source;
  });
  for (LogEntry& entry : entries) entry.labelled = several && !entry.source.empty();
}

std::string WriteLogEntry(const LogEntry& entry) {
  if (entry.labelled) return "[pod/" + entry.source + "/x] " + entry.text;
  if (!entry.kernel || entry.host.empty()) return entry.text;
  const auto seconds = static_cast<time_t>(entry.wall_ns / 1'000'000'000);
  std::tm at{};
  char stamp[64] = "";
  if (entry.wall_ns <= 0 || ::gmtime_r(&seconds, &at) == nullptr) return entry.text;
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &at);
  std::string micros = std::to_string(entry.wall_ns / 1000 % 1'000'000);
  micros.insert(0, 6 - micros.size(), '0');
  return std::string(stamp) + "." + micros + "+00:00 " + entry.host + " kernel: " + entry.text;
}

}  // namespace tacet
