// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "live/server/judge_process.h"
#include "live/state_json.h"

namespace tacet {
namespace {

// Splits "{...}\n<bytes>"; the rest shrinks as pieces are taken off.
class JudgeMessage {
 public:
  explicit JudgeMessage(std::string_view bytes) : rest_(bytes) {
    const size_t line = bytes.find('\n');
    bool truncated = false;
    ok_ = line != std::string_view::npos && ParseJson(bytes.substr(0, line), &head, &truncated) && !truncated &&
          head.is_object();
    if (ok_) rest_.remove_prefix(line + 1);
  }
  std::string Take(const JsonValue* size) {
    const int64_t bytes = size == nullptr ? -1 : size->Int(-1);
    ok_ = ok_ && bytes >= 0 && static_cast<uint64_t>(bytes) <= rest_.size();
    if (!ok_) return "";
    std::string piece(rest_.substr(0, static_cast<size_t>(bytes)));
    rest_.remove_prefix(static_cast<size_t>(bytes));
    return piece;
  }
  bool ok() const { return ok_; }
  std::string Text(std::string_view key) const {
    const JsonValue* value = head.Find(key);
    return value == nullptr ? "" : std::string(value->Text());
  }
  bool Flag(std::string_view key) const {
    const JsonValue* value = head.Find(key);
    return value != nullptr && value->boolean;
  }
  const std::vector<JsonValue>& Items(std::string_view key) const {
    static const std::vector<JsonValue> kNothing;
    const JsonValue* value = head.Find(key);
    return value == nullptr ? kNothing : value->items;
  }
  JsonValue head;

 private:
  std::string_view rest_;
  bool ok_ = false;
};

void WriteSize(JsonWriter& json, std::string_view key, size_t bytes) { json.Key(key).Int(static_cast<int64_t>(bytes)); }

}  // namespace

std::string WriteJudgeHead(const JudgeTask& task) {
  JsonWriter json;
  json.BeginObject();
  json.Key("runs_on").Bool(task.runs_on);
  json.Key("hangs").BeginArray();
  for (const HangSuspicion& suspicion : task.suspicions) WriteSuspicion(json, suspicion);
  json.EndArray();
  WriteSize(json, "ras", task.ras.size());
  json.Key("boxes").BeginArray();
  for (const FetchedBox& box : task.boxes) {
    json.BeginObject();
    json.Key("path").String(box.path);
    json.Key("process").String(Name(box.sight));
    json.Key("seen_wall_ns").Int(box.seen_wall_ns);
    WriteSize(json, "bytes", box.bytes.size());
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

Result<JudgeTask> ReadJudgeTask(std::string_view bytes) {
  JudgeMessage message(bytes);
  JudgeTask task;
  task.runs_on = message.Flag("runs_on");
  for (const JsonValue& hang : message.Items("hangs")) task.suspicions.push_back(ReadSuspicion(hang));
  task.ras = message.Take(message.head.Find("ras"));
  for (const JsonValue& entry : message.Items("boxes")) {
    FetchedBox& box = task.boxes.emplace_back();
    const JsonValue *path = entry.Find("path"), *process = entry.Find("process"), *seen = entry.Find("seen_wall_ns");
    if (path != nullptr) box.path = path->Text();
    if (process != nullptr) box.sight = ParseProcessSight(process->Text());
    if (seen != nullptr) box.seen_wall_ns = seen->Int();
    box.bytes = message.Take(entry.Find("bytes"));
  }
  if (!message.ok()) return Error{"the task is cut", ""};
  return task;
}

std::string WriteJudged(const JudgedReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Key("status").String(report.status);
  json.Key("cause").String(report.cause);
  json.Key("headline").String(report.headline);
  json.Key("wrong").Bool(report.wrong);
  json.Key("ranks").Ints(report.ranks);
  WriteSize(json, "json", report.json.size());
  WriteSize(json, "text", report.text.size());
  json.EndObject();
  return json.Take() + "\n" + report.json + report.text;
}

Result<JudgedReport> ReadJudged(std::string_view bytes) {
  JudgeMessage message(bytes);
  JudgedReport report;
  report.status = message.Text("status");
  report.cause = message.Text("cause");
  report.headline = message.Text("headline");
  report.wrong = message.Flag("wrong");
  for (const JsonValue& rank : message.Items("ranks")) report.ranks.push_back(static_cast<int>(rank.Int(-1)));
  report.json = message.Take(message.head.Find("json"));
  report.text = message.Take(message.head.Find("text"));
  if (!message.ok() || !report.json.starts_with('{')) return Error{"the verdict is cut", ""};
  return report;
}

}  // namespace tacet
