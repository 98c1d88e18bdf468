// SPDX-License-Identifier: Apache-2.0
#include "launch/collect_nodes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/packed_file.h"
#include "base/parallel.h"
#include "base/redact.h"
#include "base/sha256.h"
#include "base/tar_reader.h"
#include "base/tar_writer.h"
#include "launch/command_run.h"
#include "launch/node_call.h"

namespace tacet {
namespace {

constexpr const char* kNotesName = "tacet-node.json";

// What a node says of its part, besides the files themselves.
struct NodeNotes {
  std::vector<CaptureNote> missing;
  std::vector<CollectedFile> files;  // those that were changed or redacted there
};

void WriteFile(JsonWriter& json, const CollectedFile& file) {
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
  for (const CollectedFile& file : notes.files) WriteFile(json, file);
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

// One node's answer while it waits for its turn: bundles are in the order of names, nodes answer when they can.
struct NodeAnswer {
  std::string spool;  // file; empty: nothing came
  std::string problem;
};

class Bundle {
 public:
  explicit Bundle(PackedFile& file) : tar_([&file](std::string_view bytes) { return file.Write(bytes); }) {}

  bool Add(const std::string& node, BundleEntry entry, Collected& out) {
    // Two names may become one when they are unpacked or made safe.
    const std::string base = SafeName(node) + "/" + entry.name;
    std::string name = base;
    for (int copy = 2; !names_.insert(name).second; ++copy) name = base + "." + std::to_string(copy);
    CollectedFile& file = out.files.emplace_back();
    file.name = name;
    file.bytes = entry.bytes.size();
    file.original_bytes = entry.original_bytes;
    file.sha256 = Sha256(entry.bytes);
    file.changed = entry.changed;
    file.redacted = std::move(entry.redacted);
    return tar_.Add(name, entry.bytes, entry.modified_s);
  }
  bool Finish(const std::string& manifest) {
    tar_.Add("manifest.json", manifest, 0);
    return tar_.Finish();
  }

 private:
  TarWriter tar_;
  std::set<std::string> names_;
};

std::string DescribeBundle(const Collected& collected) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.bundle.v1").Key("nodes").BeginArray();
  for (const std::string& node : collected.nodes) json.String(node);
  json.EndArray().Key("silent_nodes").BeginArray();
  for (const std::string& node : collected.silent) json.String(node);
  json.EndArray().Key("files").BeginArray();
  for (const CollectedFile& file : collected.files) WriteFile(json, file);
  json.EndArray().Key("missing").BeginArray();
  for (const MissingPart& part : collected.missing)
    json.BeginObject()
        .Key("node")
        .String(part.node)
        .Key("what")
        .String(part.what)
        .Key("why")
        .String(part.why)
        .EndObject();
  return json.EndArray().EndObject().Take() + "\n";
}

class NodeCollector {
 public:
  explicit NodeCollector(const CollectOptions& options) : options_(options) {}

  Result<Collected> Do() {
    auto calls = ListNodeCalls(options_);
    if (!calls) return calls.error();
    auto file = PackedFile::Create(options_.output);
    if (!file) return file.error();
    answers_.resize(calls->size());
    std::atomic<size_t> done{0};
    ParallelFor(calls->size(), options_.at_once, [&](size_t i) {
      if (!(*calls)[i].command.empty()) Ask((*calls)[i], i);
      if (options_.progress) options_.progress(++done, calls->size());
    });
    Bundle bundle(**file);
    for (size_t i = 0; i < calls->size(); ++i) {
      const NodeCall& call = (*calls)[i];
      out_.nodes.push_back(call.node);
      const size_t before = out_.files.size();
      if (call.command.empty())
        AddOwn(call.node, bundle);
      else
        AddAnswer(call.node, answers_[i], bundle);
      if (out_.files.size() == before) out_.silent.push_back(call.node);
    }
    for (MissingPart& part : out_.missing) part.why = RedactSecrets(part.why).text;
    bundle.Finish(DescribeBundle(out_));
    auto written = (*file)->Finish();
    if (!written) return written.error();
    out_.bundle_bytes = *written;
    return std::move(out_);
  }

 private:
  void Ask(const NodeCall& call, size_t i) {
    const std::string spool = options_.output + ".part" + std::to_string(i);
    const int file = ::open(spool.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
      answers_[i].problem = "its answer cannot be stored: " + std::string(std::strerror(errno));
      return;
    }
    int error = 0;
    // Twice the limit: names and blocks of the tar, and files that are cut here.
    const CommandLimits limits{.time_ms = options_.node_ms, .most_bytes = options_.node.most_bytes * 2};
    const CommandOutcome outcome = RunCommand(call.command, limits, [&](std::string_view bytes) {
      while (!bytes.empty() && error == 0) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
          error = errno;
        else
          bytes.remove_prefix(static_cast<size_t>(written));
      }
    });
    ::close(file);
    answers_[i] = {spool, outcome.problem};
    if (error != 0)
      answers_[i].problem = "its answer cannot be stored completely: " + std::string(std::strerror(error));
  }

  void AddOwn(const std::string& node, Bundle& bundle) {
    for (CaptureNote& note :
         CollectNode(options_.node, [&](BundleEntry entry) { return bundle.Add(node, std::move(entry), out_); }))
      out_.missing.push_back({node, std::move(note.what), std::move(note.why)});
  }

  // Nothing from over there is trusted: names are made safe and secrets taken out once more.
  void AddAnswer(const std::string& node, const NodeAnswer& answer, Bundle& bundle) {
    const int file = answer.spool.empty() ? -1 : ::open(answer.spool.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
      ::unlink(answer.spool.c_str());
      TarReader reader(
          [file](char* buffer, size_t size) {
            const ssize_t got = ::read(file, buffer, size);
            return got > 0 ? static_cast<size_t>(got) : size_t{0};
          },
          options_.node.most_file_bytes * 2);
      size_t members = 0;
      for (TarMember member; reader.Next(&member);) {
        ++members;
        if (member.name == kNotesName) {
          TakeNotes(node, ParseNotes(member.bytes));
        } else if (member.plain) {
          AddMember(node, std::move(member), bundle);
        }
      }
      ::close(file);
      if (!reader.complete() && answer.problem.empty())
        out_.missing.push_back({node, "the rest of its files", members == 0 ? "it sent nothing" : reader.problem()});
    }
    if (!answer.problem.empty()) out_.missing.push_back({node, "everything that is not in the bundle", answer.problem});
  }

  void TakeNotes(const std::string& node, const NodeNotes& notes) {
    for (const CaptureNote& note : notes.missing) out_.missing.push_back({node, note.what, note.why});
    const std::string folder = SafeName(node) + "/";
    for (const CollectedFile& told : notes.files)
      for (CollectedFile& file : out_.files) {
        if (file.name != folder + told.name) continue;
        file.original_bytes = told.original_bytes;
        if (file.changed.empty()) file.changed = told.changed;
        for (const auto& [kind, count] : told.redacted) file.redacted[kind] += count;
      }
  }

  void AddMember(const std::string& node, TarMember member, Bundle& bundle) {
    BundleEntry entry;
    const bool ours =
        member.name.starts_with("files/") || member.name.starts_with("host/") || member.name.starts_with("capture/");
    entry.name = ours ? SafeName(member.name, true) : "files/" + SafeName(member.name);
    entry.bytes = std::move(member.bytes);
    entry.modified_s = member.modified_s;
    entry.original_bytes = member.size;
    if (member.cut) out_.missing.push_back({node, entry.name, "only the first part arrived"});
    CleanEntry(entry, options_.node.most_file_bytes);
    CutText(entry, options_.node.most_file_bytes * 2);
    bundle.Add(node, std::move(entry), out_);
  }

  const CollectOptions& options_;
  std::vector<NodeAnswer> answers_;
  Collected out_;
};

}  // namespace

Result<Collected> CollectNodes(const CollectOptions& options) { return NodeCollector(options).Do(); }

bool StreamNode(const NodeWish& wish) {
  TarWriter tar(
      [](std::string_view bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size(); });
  NodeNotes notes;
  notes.missing = CollectNode(wish, [&](BundleEntry entry) {
    if (!entry.changed.empty() || !entry.redacted.empty())
      notes.files.push_back({entry.name, "", entry.changed, entry.bytes.size(), entry.original_bytes, entry.redacted});
    return tar.Add(entry.name, entry.bytes, entry.modified_s);
  });
  tar.Add(kNotesName, DescribeNotes(notes), 0);
  return tar.Finish() && std::fflush(stdout) == 0;
}

std::string DescribeCollected(const Collected& collected) {
  std::map<std::string, uint64_t> kinds;
  for (const CollectedFile& file : collected.files)
    for (const auto& [kind, count] : file.redacted) kinds[kind] += count;
  const size_t heard = collected.nodes.size() - collected.silent.size();
  std::string text = "tacet: " + std::to_string(collected.files.size()) +
                     (collected.files.size() == 1 ? " file" : " files") + " from " + std::to_string(heard) + " of " +
                     std::to_string(collected.nodes.size()) + (collected.nodes.size() == 1 ? " node" : " nodes") +
                     ", " + std::to_string(collected.bundle_bytes) + " bytes\n";
  for (const auto& [kind, count] : kinds)
    text += "tacet: redacted: " + kind + ", " + std::to_string(count) + (count == 1 ? " time\n" : " times\n");
  for (const MissingPart& part : collected.missing)
    text += "tacet: missing: " + part.node + ": " + part.what + ": " + part.why + "\n";
  return text;
}

}  // namespace tacet
