// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/node_notes.h"

#include <algorithm>
#include <cstdint>

#include "base/json_reader.h"

namespace tacet {

void WriteCollectedFile(JsonWriter& json, const CollectedFile& file) {
  json.BeginObject().Key("name").String(file.name).Key("bytes").Int(static_cast<int64_t>(file.bytes));
  json.Key("original_bytes").Int(static_cast<int64_t>(file.original_bytes)).Key("sha256").String(file.sha256);
  if (!file.changed.empty()) json.Key("changed").String(file.changed);
  if (!file.redacted.empty()) {
    json.Key("redacted").BeginObject();
    for (const auto& [kind, count] : file.redacted) json.Key(kind).Int(static_cast<int64_t>(count));
    json.EndObject();
  }
  json.EndObject();
}

std::string DescribeNotes(const NodeNotes& notes) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.node.v1").Key("missing").BeginArray();
  for (const CaptureNote& note : notes.missing)
    json.BeginObject().Key("what").String(note.what).Key("why").String(note.why).EndObject();
  json.EndArray().Key("files").BeginArray();
  for (const CollectedFile& file : notes.files) WriteCollectedFile(json, file);
  return json.EndArray().EndObject().Take();
}

NodeNotes ParseNotes(std::string_view text) {
  NodeNotes notes;
  JsonValue root;
  bool cut = false;
  if (!ParseJson(text, &root, &cut) || !root.is_object()) return notes;
  const auto text_of = [](const JsonValue& item, std::string_view key) {
    const JsonValue* value = item.Find(key);
    return value != nullptr ? value->text : std::string();
  };
  if (const JsonValue* missing = root.Find("missing"))
    for (const JsonValue& item : missing->items) notes.missing.push_back({text_of(item, "what"), text_of(item, "why")});
  if (const JsonValue* files = root.Find("files"))
    for (const JsonValue& item : files->items) {
      CollectedFile& file = notes.files.emplace_back();
      file.name = text_of(item, "name");
      file.changed = text_of(item, "changed");
      if (const JsonValue* size = item.Find("original_bytes")) file.original_bytes = static_cast<uint64_t>(size->Int());
      if (const JsonValue* redacted = item.Find("redacted"))
        for (const JsonMember& kind : redacted->members)
          file.redacted[kind.name] = static_cast<uint64_t>(std::max<int64_t>(kind.value.Int(), 0));
    }
  return notes;
}

}  // namespace tacet
