// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_reader.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/torch_log_parse.h"

namespace tacet {
namespace {

constexpr int64_t kLatestSecond = 7'000'000'000;  // in the year 2191

// Feeds a text that stands in one JSON string to the readers of a log, line by line.
void ReadText(std::string_view text, const LogMoment& time, TracebackReader& traceback, RecordList& out) {
  FailureState failure;
  LineReader reader(text);
  LogLine line;
  line.source = {FileId{}, 1, 0};
  line.time = time;
  line.tagged = true;
  while (reader.Next(&line.text)) {
    line.keywords = FindKeywords(line.text);
    if (!Trim(line.text).empty()) ReadErrorText(line, failure, out);
    traceback.Read(line, out);
  }
  traceback.Finish(out);
}

}  // namespace

// {"message": {"message": "RuntimeError: boom", "errorCode": 1, "extraInfo": {"py_callstack": "Traceback (most recent
// call
//   last):\n  File \"train.py\", line 3, in main\n...", "timestamp": "1700000000"}}}
// {"message": "RuntimeError: boom", "timestamp": 1700000000}
bool ParseTorchErrorFile(std::string_view bytes, TorchLog* out) {
  JsonValue root;
  bool truncated = false;
  if (!ParseJson(bytes, &root, &truncated) || !root.is_object()) return false;
  const JsonValue* message = root.Find("message");
  if (message == nullptr) return false;
  const JsonValue* detail = message->is_object() ? message : &root;
  const JsonValue* extra = detail->Find("extraInfo");
  const JsonValue* stack = extra == nullptr ? nullptr : extra->Find("py_callstack");
  const JsonValue* stamp = extra == nullptr ? root.Find("timestamp") : extra->Find("timestamp");
  const JsonValue* text = message->is_object() ? message->Find("message") : message;
  if (text == nullptr || (stack == nullptr && stamp == nullptr && extra == nullptr)) return false;

  out->labels.emplace_back();
  out->voices.emplace_back();
  LogMoment time;
  if (stamp != nullptr) {
    int64_t seconds = 0;
    std::string_view digits = stamp->text;
    if (TakeNumber(digits, &seconds) && seconds > 0 && seconds < kLatestSecond) time.wall_ns = seconds * 1'000'000'000;
  }
  out->dated_wall_ns = time.wall_ns;
  RecordList records(*out);
  TracebackReader traceback;
  if (stack != nullptr) ReadText(stack->text, time, traceback, records);
  const bool raised = std::any_of(out->records.begin(), out->records.end(),
                                  [](const TorchLogRecord& record) { return record.kind == TorchLogKind::exception; });
  if (!raised) {
    ReadText("Traceback (most recent call last):\n  File \"\", line 0\n" + text->text, time, traceback, records);
  }
  out->understood = bytes.size();
  return true;
}

}  // namespace tacet
