// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/json_reader.h"
#include "base/text_scan.h"
#include "evidence/stacks/stacks_parse.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

class PySpyReader {
 public:
  // `base` and `line`: where `bytes` begin in the file.
  PySpyReader(std::string_view bytes, size_t base, uint32_t line, StackDump& dump)
      : bytes_(bytes), base_(base), line_(line), json_(bytes), dump_(dump) {}

  // Reads one array of threads. Returns how many bytes of it are whole.
  size_t Read() {
    if (json_.Next() != Token::array_begin) return 0;
    size_t good = json_.end_offset();
    for (;;) {
      const Token token = json_.Next();
      if (token == Token::array_end) return json_.end_offset();
      if (token != Token::object_begin || !ReadThread()) {
        dump_.truncated = true;
        return good;
      }
      good = json_.end_offset();
    }
  }

  uint32_t LineAt(size_t offset) {
    for (; counted_ < offset && counted_ < bytes_.size(); ++counted_) line_ += bytes_[counted_] == '\n';
    return line_;
  }

 private:
  std::string_view Keep(std::string text) { return dump_.owned.emplace_back(std::move(text)); }
  std::string_view Text(Token token) { return token == Token::string ? Keep(json_.String()) : std::string_view(); }

  uint32_t SectionOf(int64_t pid, size_t offset) {
    const auto [found, added] = sections_.try_emplace(pid, static_cast<uint32_t>(dump_.sections.size()));
    if (added) {
      StackSection section;
      section.pid = pid;
      section.line = LineAt(offset);
      section.offset = base_ + offset;
      dump_.sections.push_back(section);
    }
    return found->second;
  }

  // {"pid": 12345, "thread_id": 140, "thread_name": "MainThread", "os_thread_id": 12345, "active": true,
  //  "owns_gil": false, "frames": [...], "process_info": {"pid": 12345, "command_line": "...", "parent": {"pid": 7,
  //  ...}}}
  bool ReadThread() {
    StackThreadRecord thread;
    thread.tool = StackTool::py_spy;
    thread.offset = base_ + json_.offset();
    thread.line = LineAt(json_.offset());
    int64_t pid = -1, parent = -1;
    bool active = false, gil = false;
    std::string_view os_id, id;
    for (;;) {
      Token token = json_.Next();
      if (token == Token::object_end) break;
      if (token != Token::key) return false;
      const std::string_view key = json_.raw();
      if (key == "frames") {
        if (!ReadFrames(thread)) return false;
        continue;
      }
      if (key == "process_info") {
        if (!ReadParent(&parent)) return false;
        continue;
      }
      if (key != "pid" && key != "thread_id" && key != "os_thread_id" && key != "thread_name" && key != "active" &&
          key != "owns_gil") {
        json_.SkipValue();
        if (json_.truncated()) return false;
        continue;
      }
      token = json_.Next();
      if (token == Token::end || token == Token::error || token == Token::object_begin || token == Token::array_begin)
        return false;
      if (key == "pid" && token == Token::number) pid = json_.Int();
      if (key == "thread_id" && token == Token::number) id = json_.raw();
      if (key == "os_thread_id" && token == Token::number) os_id = json_.raw();
      if (key == "thread_name") thread.name = Text(token);
      if (key == "active") active = token == Token::boolean && json_.Bool();
      if (key == "owns_gil") gil = token == Token::boolean && json_.Bool();
    }
    thread.id = os_id.empty() ? id : os_id;
    thread.state = active ? (gil ? "active+gil" : "active") : (gil ? "gil" : "idle");
    thread.section = SectionOf(pid, thread.offset - base_);
    if (parent >= 0) dump_.sections[thread.section].parent_pid = parent;
    dump_.threads.push_back(std::move(thread));
    return true;
  }

  bool ReadParent(int64_t* parent) {
    const std::string_view raw = json_.SkipValue();
    if (json_.truncated()) return false;
    JsonValue info;
    bool cut = false;
    // Only the pid of the parent is of use; a huge command line is not worth a tree.
    if (raw.size() > 64 * 1024 || !ParseJson(raw, &info, &cut)) return true;
    if (const JsonValue* outer = info.Find("parent"))
      if (const JsonValue* pid = outer->Find("pid")) *parent = pid->Int(-1);
    return true;
  }

  bool ReadFrames(StackThreadRecord& thread) {
    if (json_.Next() != Token::array_begin) return false;
    for (;;) {
      const Token token = json_.Next();
      if (token == Token::array_end) return true;
      if (token != Token::object_begin) return false;
      if (!ReadFrame(thread)) return false;
    }
  }

  // {"name": "step", "filename": "/a/train.py", "module": null, "short_filename": "train.py", "line": 88, ...}
  bool ReadFrame(StackThreadRecord& thread) {
    StackFrameRecord frame;
    frame.at_line = LineAt(json_.offset());
    std::string_view short_file;
    for (;;) {
      Token token = json_.Next();
      if (token == Token::object_end) break;
      if (token != Token::key) return false;
      const std::string_view key = json_.raw();
      if (key != "name" && key != "filename" && key != "line" && key != "short_filename") {
        json_.SkipValue();  // locals can be large
        if (json_.truncated()) return false;
        continue;
      }
      token = json_.Next();
      if (token != Token::string && token != Token::number && token != Token::null && token != Token::boolean)
        return false;
      if (thread.frames.size() >= kMaxFramesKept) continue;
      if (key == "name") frame.function = Text(token);
      if (key == "filename") frame.file = Text(token);
      if (key == "short_filename") short_file = Text(token);
      if (key == "line" && token == Token::number) {
        const int64_t line = json_.Int();
        frame.code_line = line > 0 && line < 0x7fffffff ? static_cast<uint32_t>(line) : 0;
      }
    }
    if (frame.file.empty()) frame.file = short_file;
    frame.python = frame.file.ends_with(".py") || frame.code_line > 0;
    if (thread.frames.size() < kMaxFramesKept)
      thread.frames.push_back(frame);
    else
      thread.cut = true;
    return true;
  }

  std::string_view bytes_;
  size_t base_;
  size_t counted_ = 0;
  uint32_t line_;
  JsonReader json_;
  StackDump& dump_;
  std::map<int64_t, uint32_t> sections_;
};

}  // namespace

bool LooksLikePySpyJson(std::string_view prefix) {
  while (!prefix.empty() &&
         (prefix.front() == ' ' || prefix.front() == '\n' || prefix.front() == '\r' || prefix.front() == '\t'))
    prefix.remove_prefix(1);
  if (!prefix.starts_with('[')) return false;
  const std::string_view head = prefix.substr(0, 4096);
  return Contains(head, "\"thread_id\"") && (Contains(head, "\"owns_gil\"") || Contains(head, "\"os_thread_id\"")) &&
         Contains(head, "\"frames\"");
}

StackDump ParsePySpyJson(std::string_view bytes) {
  StackDump dump;
  size_t at = 0;
  uint32_t line = 1;
  // One array for each call of py-spy: a loop over processes writes them one after another.
  for (;;) {
    PySpyReader reader(bytes.substr(at), at, line, dump);
    const size_t good = reader.Read();
    line = reader.LineAt(good);
    at += good;
    const size_t next = bytes.find_first_not_of(" \t\r\n", at);
    if (next == std::string_view::npos) at = bytes.size();
    if (good == 0 || dump.truncated || next == std::string_view::npos || bytes[next] != '[') break;
    for (; at < next; ++at) line += bytes[at] == '\n';
  }
  dump.understood = at;
  dump.not_understood = bytes.size() - at;
  return dump;
}

}  // namespace tacet
