// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/collect_nodes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/json_writer.h"
#include "base/packed_file.h"
#include "base/parallel.h"
#include "base/redact.h"
#include "base/sha256.h"
#include "base/tar_reader.h"
#include "base/tar_writer.h"
#include "base/utf8.h"
#include "launch/collect/node_call.h"
#include "launch/collect/node_notes.h"
#include "launch/command_run.h"
#include "render/render_words.h"

namespace tacet {
namespace {

constexpr size_t kLongestGreeting = 1 << 16;

// One node's answer while it waits for its turn: bundles are in the order of names, nodes answer when they can.
struct NodeAnswer {
  std::string spool;  // file; empty: nothing came
  std::string problem;
};

// An answer from its tar on: a login shell may greet before it runs what it was asked to run.
class AnswerReader {
 public:
  explicit AnswerReader(int file) : file_(file) {
    head_.resize(kLongestGreeting);
    size_t got = 0;
    for (size_t part = 1; part > 0 && got < head_.size(); got += part)
      part = ReadFile(head_.data() + got, head_.size() - got);
    head_.resize(got);
    if (const size_t mark = head_.find(kPartMark); mark != std::string::npos) at_ = mark + kPartMark.size();
  }
  size_t Read(char* buffer, size_t size) {
    if (at_ == head_.size()) return ReadFile(buffer, size);
    const size_t part = head_.copy(buffer, size, at_);
    at_ += part;
    return part;
  }

 private:
  size_t ReadFile(char* buffer, size_t size) const {
    ssize_t got = -1;
    do {
      got = ::read(file_, buffer, size);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? static_cast<size_t>(got) : size_t{0};
  }

  int file_;
  std::string head_;
  size_t at_ = 0;
};

class Bundle {
 public:
  explicit Bundle(PackedFile& file) : tar_([&file](std::string_view bytes) { return file.Write(bytes); }) {}

  bool Add(const std::string& node, BundleEntry entry, Collected& out) {
    // Two names may become one when they are unpacked or made safe.
    const std::string base = SafeName(node) + "/" + entry.name;
    std::string name = base;
    while (!names_.insert(name).second) {
      uint64_t& last = copies_[base];
      last = std::max<uint64_t>(last + 1, 2);
      name = base + "." + std::to_string(last);
    }
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
  std::map<std::string, uint64_t> copies_;  // of a name that came again: thousands of them cost one step each
};

std::string DescribeBundle(const Collected& collected) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.bundle.v1").Key("nodes").BeginArray();
  for (const std::string& node : collected.nodes) json.String(node);
  json.EndArray().Key("silent_nodes").BeginArray();
  for (const std::string& node : collected.silent) json.String(node);
  json.EndArray().Key("files").BeginArray();
  for (const CollectedFile& file : collected.files) WriteCollectedFile(json, file);
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
    for (MissingPart& part : out_.missing) {
      part.what = RedactSecrets(part.what).text;
      part.why = RedactSecrets(part.why).text;
    }
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
    size_t members = 0;
    const int file = answer.spool.empty() ? -1 : ::open(answer.spool.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
      ::unlink(answer.spool.c_str());
      AnswerReader bytes(file);
      TarReader reader([&](char* buffer, size_t size) { return bytes.Read(buffer, size); },
                       options_.node.most_file_bytes * 2);
      const size_t first = out_.files.size();
      bool noted = false;
      for (TarMember member; reader.Next(&member);) {
        ++members;
        if (member.name == kNotesName) {
          if (!noted) TakeNotes(node, first, ParseNotes(member.bytes));
          noted = true;
        } else if (member.plain) {
          AddMember(node, std::move(member), bundle);
        }
      }
      ::close(file);
      if (!reader.complete() && answer.problem.empty())
        out_.missing.push_back({node, "the rest of its files", members == 0 ? "it sent nothing" : reader.problem()});
    }
    if (!answer.problem.empty())
      out_.missing.push_back({node, members == 0 ? "everything" : "the rest of its files", answer.problem});
  }

  // `first`: where the files of this node begin.
  void TakeNotes(const std::string& node, size_t first, const NodeNotes& notes) {
    for (const CaptureNote& note : notes.missing) out_.missing.push_back({node, note.what, note.why});
    std::map<std::string_view, CollectedFile*> by_name;
    for (size_t i = first; i < out_.files.size(); ++i) by_name.emplace(out_.files[i].name, &out_.files[i]);
    const std::string folder = SafeName(node) + "/";
    for (const CollectedFile& told : notes.files) {
      const auto found = by_name.find(folder + told.name);
      if (found == by_name.end()) continue;
      CollectedFile& file = *found->second;
      file.original_bytes = told.original_bytes;
      if (file.changed.empty()) file.changed = told.changed;
      for (const auto& [kind, count] : told.redacted) file.redacted[kind] += count;
    }
  }

  void AddMember(const std::string& node, TarMember member, Bundle& bundle) {
    BundleEntry entry;
    const bool ours =
        member.name.starts_with("files/") || member.name.starts_with("host/") || member.name.starts_with("capture/");
    const std::string name = RedactSecrets(member.name).text;
    entry.name = ours ? SafeName(name, true) : "files/" + SafeName(name);
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
    // At once: whoever is ended as too slow while it reads the next file has given this one.
    return tar.Add(entry.name, entry.bytes, entry.modified_s) && std::fflush(stdout) == 0;
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
                     ", " +
                     (collected.files.empty() ? "nothing was collected" : DescribeBytes(collected.bundle_bytes)) + "\n";
  for (const auto& [kind, count] : kinds)
    text += "tacet: redacted: " + EscapeForTerminal(kind) + ", " + std::to_string(count) +
            (count == 1 ? " time\n" : " times\n");
  for (const MissingPart& part : collected.missing)
    text += "tacet: missing: " + EscapeForTerminal(part.node + ": " + part.what + ": " + part.why) + "\n";
  return text;
}

}  // namespace tacet
