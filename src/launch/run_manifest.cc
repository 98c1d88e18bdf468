// SPDX-License-Identifier: Apache-2.0
#include "launch/run_manifest.h"

#include <sys/utsname.h>

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/text_scan.h"
#include "launch/collect/secret_words.h"
#include "launch/command_run.h"
#include "launch/output_log.h"
#include "launch/run_folder.h"

namespace tacet {
namespace {

void WriteTime(JsonWriter& json, const char* key, int64_t wall_ns) {
  json.Key(key);
  if (wall_ns > 0)
    json.String(Rfc3339(wall_ns));
  else
    json.Null();
}

void WriteEnvironment(JsonWriter& json, const RunManifest& manifest) {
  json.Key("environment").BeginObject().Key("set").BeginObject();
  for (const RunSetting& setting : manifest.settings)
    if (!setting.kept) json.Key(setting.name).String(HideSecret(setting.name, setting.value));
  json.EndObject().Key("kept").BeginObject();
  for (const RunSetting& setting : manifest.settings)
    if (setting.kept) json.Key(setting.name).String(HideSecret(setting.name, setting.users_value));
  json.EndObject().Key("inherited").BeginObject();
  for (const auto& [name, value] : manifest.inherited) json.Key(name).String(HideSecret(name, value));
  json.EndObject().EndObject();
}

void WriteHangs(JsonWriter& json, const RunManifest& manifest) {
  json.Key("hangs").BeginArray();
  for (const SeenHang& hang : manifest.hangs) {
    json.BeginObject().Key("seen").String(Rfc3339(hang.wall_ns)).Key("still_seconds").Double(hang.still_s);
    json.Key("folder").String(hang.folder).Key("headline").String(hang.headline).Key("missing").BeginArray();
    for (const CaptureNote& note : hang.missing)
      json.BeginObject().Key("what").String(note.what).Key("why").String(note.why).EndObject();
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void ReadPairs(const JsonValue* object, Environment& out) {
  if (object == nullptr) return;
  for (const JsonMember& member : object->members) out.emplace_back(member.name, member.value.text);
}

std::string TextAt(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value != nullptr ? value->text : "";
}

}  // namespace

std::string RenderManifest(const RunManifest& manifest) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.manifest.v1").Key("kind").String("run");
  json.Key("name").String(manifest.name).Key("level").String(manifest.level).Key("command").BeginArray();
  for (const std::string& word : HideSecretsInCommand(manifest.command)) json.String(word);
  json.EndArray().Key("folder").String(manifest.folder).Key("user").String(manifest.user);
  json.Key("hosts").BeginArray().String(manifest.host).EndArray();
  WriteEnvironment(json, manifest);
  json.Key("versions").BeginObject();
  for (const auto& [name, version] : manifest.versions) json.Key(name).String(version);
  json.EndObject();
  WriteTime(json, "began", manifest.began_wall_ns);
  WriteTime(json, "ended", manifest.ended_wall_ns);
  json.Key("exit_code");
  if (manifest.ended_wall_ns > 0)
    json.Int(manifest.exit_code);
  else
    json.Null();
  json.Key("signal").Int(manifest.signal).Key("stopped_on_request").Bool(manifest.stopped_on_request);
  json.Key("stop_signal").Int(manifest.stop_signal);
  WriteTime(json, "stop_requested", manifest.stop_wall_ns);
  json.Key("output_bytes").Int(static_cast<int64_t>(manifest.output_bytes));
  json.Key("output_bytes_not_kept").Int(static_cast<int64_t>(manifest.dropped_bytes));
  WriteHangs(json, manifest);
  json.Key("verdict");
  if (manifest.status.empty()) {
    json.Null();
  } else {
    json.BeginObject().Key("status").String(manifest.status).Key("cause").String(manifest.cause);
    json.Key("ranks").Ints(manifest.ranks).Key("headline").String(manifest.headline).EndObject();
  }
  return json.EndObject().Take() + "\n";
}

bool ParseManifest(std::string_view text, RunManifest* manifest) {
  JsonValue root;
  bool cut = false;
  if (!ParseJson(text, &root, &cut) || !root.is_object() || TextAt(root, "schema") != "tacet.manifest.v1") return false;
  if (const JsonValue* command = root.Find("command"))
    for (const JsonValue& word : command->items) manifest->command.push_back(word.text);
  manifest->name = TextAt(root, "name");
  manifest->level = TextAt(root, "level");
  manifest->folder = TextAt(root, "folder");
  if (const JsonValue* hosts = root.Find("hosts"); hosts != nullptr && !hosts->items.empty())
    manifest->host = hosts->items[0].text;
  if (const JsonValue* environment = root.Find("environment")) {
    Environment set;
    ReadPairs(environment->Find("set"), set);
    for (auto& [name, value] : set) manifest->settings.push_back({name, value, "", "", false, ""});
    Environment kept;
    ReadPairs(environment->Find("kept"), kept);
    for (auto& [name, value] : kept) manifest->settings.push_back({name, "", "", "", true, value});
    ReadPairs(environment->Find("inherited"), manifest->inherited);
  }
  ReadPairs(root.Find("versions"), manifest->versions);
  manifest->began_wall_ns = ParseRfc3339(TextAt(root, "began"));
  manifest->ended_wall_ns = ParseRfc3339(TextAt(root, "ended"));
  if (const JsonValue* code = root.Find("exit_code")) manifest->exit_code = static_cast<int>(code->Int(-1));
  if (const JsonValue* signal = root.Find("signal")) manifest->signal = static_cast<int>(signal->Int(0));
  if (const JsonValue* hangs = root.Find("hangs"))
    for (const JsonValue& item : hangs->items) {
      SeenHang& hang = manifest->hangs.emplace_back();
      hang.wall_ns = ParseRfc3339(TextAt(item, "seen"));
      if (const JsonValue* still = item.Find("still_seconds")) hang.still_s = still->Double();
      hang.folder = TextAt(item, "folder");
      hang.headline = TextAt(item, "headline");
    }
  return true;
}

std::vector<std::pair<std::string, std::string>> ReadVersions() {
  std::vector<std::pair<std::string, std::string>> versions;
  utsname system{};
  if (::uname(&system) == 0) versions.emplace_back("kernel", system.release);
  const std::string driver = ReadSmallFile("/proc/driver/nvidia/version", 4096);
  if (const auto rest = After(driver, "Kernel Module")) {
    std::string_view words = *rest;
    std::string_view word;
    while (!words.empty() && (word = TakeWord(words), word.empty() || word[0] < '0' || word[0] > '9')) {
    }
    if (!word.empty()) versions.emplace_back("nvidia_driver", std::string(word));
  }
  return versions;
}

}  // namespace tacet
