// SPDX-License-Identifier: Apache-2.0
#include "evidence/run_record/run_record_parse.h"

#include "base/json_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

int64_t IntOf(const JsonValue& object, std::string_view key, int64_t otherwise) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->kind == JsonValue::Kind::number ? value->Int(otherwise) : otherwise;
}

std::string TextOf(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->kind == JsonValue::Kind::string ? value->text : "";
}

}  // namespace

std::string_view SchemaOf(std::string_view text) {
  const auto skip = [&] {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\t' || text[0] == '\r'))
      text.remove_prefix(1);
  };
  skip();
  if (!TakeLiteral(text, "{")) return {};
  skip();
  if (!TakeLiteral(text, "\"schema\"")) return {};
  skip();
  if (!TakeLiteral(text, ":")) return {};
  skip();
  if (!TakeLiteral(text, "\"")) return {};
  return TakeUntil(text, '"');
}

// {"schema":"tacet.manifest.v1","kind":"run",...,"ended":"2026-11-17T17:03:51.655911415Z","exit_code":137,"signal":9,
//  "stopped_on_request":false,...}
bool ParseRunEnd(std::string_view text, EndRecord* record) {
  JsonValue root;
  bool cut = false;
  if (!ParseJson(text, &root, &cut) || !root.is_object() || TextOf(root, "kind") != "run") return false;
  record->ended_at = TextOf(root, "ended");
  record->exit_code = IntOf(root, "exit_code", -1);
  record->signal = IntOf(root, "signal", 0);
  record->ended = !record->ended_at.empty() && record->exit_code >= 0;
  const JsonValue* asked = root.Find("stopped_on_request");
  record->stopped_on_request = asked != nullptr && asked->boolean;
  record->stop_signal = IntOf(root, "stop_signal", 0);
  record->stop_requested_at = TextOf(root, "stop_requested");
  const JsonValue* hangs = root.Find("hangs");
  record->hung = hangs != nullptr && !hangs->items.empty();
  return true;
}

// {"schema":"tacet.watch.v1","host":"node7","looked_wall_ns":1794771337000000000,"still_ms":31000,"limit_ms":30000,
//  "processes":[{"rank":2,"pid":4712,"start_jiffies":8273646,"state":"stopped","running_until_wall_ns":17947...}]}
bool ParseWatchRecord(std::string_view text, WatchRecord* record) {
  JsonValue root;
  if (!ParseJson(text, &root, &record->cut) || !root.is_object()) return false;
  record->host = TextOf(root, "host");
  record->looked_wall_ns = IntOf(root, "looked_wall_ns", -1);
  record->still_ms = IntOf(root, "still_ms", -1);
  record->limit_ms = IntOf(root, "limit_ms", -1);
  record->world_size = IntOf(root, "world_size", -1);
  const JsonValue* processes = root.Find("processes");
  if (processes == nullptr || !processes->is_array()) return true;
  for (const JsonValue& item : processes->items) {
    if (!item.is_object()) continue;
    WatchedProcess& process = record->processes.emplace_back();
    process.rank = IntOf(item, "rank", -1);
    process.pid = IntOf(item, "pid", -1);
    process.start_jiffies = IntOf(item, "start_jiffies", 0);
    process.state = TextOf(item, "state");
    process.running_until_wall_ns = IntOf(item, "running_until_wall_ns", -1);
    const JsonValue* box = item.Find("box");
    process.has_box = box != nullptr && box->boolean;
    process.offset = item.offset;
  }
  return true;
}

}  // namespace tacet
