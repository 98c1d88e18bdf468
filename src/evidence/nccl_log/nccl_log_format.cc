// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/nccl_log/nccl_log_import.h"

namespace tacet {
namespace {

// Sure where NCCL's lines make up a good part of the text. A job's output with a few of them among many others is a
// maybe: another reader of line logs may be surer, and both can read it.
Recognition Recognise(std::string_view prefix, std::string_view) {
  // NCCL before 2.3 does not write its name.
  if (prefix.find("NCCL ") == std::string_view::npos && prefix.find(" WARN ") == std::string_view::npos)
    return Recognition::no;
  NcclLogWalker walker(prefix);
  size_t messages = 0, named = 0, versions = 0, others = 0;
  while (const NcclLogLine* next = walker.Next()) {
    const NcclLogLine& line = *next;
    if (line.kind == NcclLineKind::message) {
      ++messages;
      named += walker.writers()[line.writer].pid >= 0 ? 1 : 0;
    }
    if (line.kind == NcclLineKind::version) ++versions;
    if (line.kind == NcclLineKind::foreign || line.kind == NcclLineKind::framework) ++others;
  }
  if (messages == 0) return versions > 0 && others == 0 ? Recognition::maybe : Recognition::no;
  return named * 4 >= others || (named == 0 && messages > others) ? Recognition::yes : Recognition::maybe;
}

// "gpu017:4121:4388 [3] NCCL INFO ": its length at the front of a line, 0 where the line does not start so.
size_t PlainPrefixLength(std::string_view line) {
  const auto skip = [&](size_t at, auto fits) {
    while (at < line.size() && fits(line[at])) ++at;
    return at;
  };
  const auto digits = [&](size_t at) { return skip(at, IsDigit); };
  const size_t host = skip(0, [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
  });
  const auto is = [&](size_t at, char c) { return at < line.size() && line[at] == c; };
  if (host == 0 || !is(host, ':')) return 0;
  const size_t pid = digits(host + 1);
  if (pid == host + 1 || !is(pid, ':')) return 0;
  const size_t tid = digits(pid + 1);
  if (tid == pid + 1 || !line.substr(tid).starts_with(" [")) return 0;
  const size_t device = digits(tid + 2);
  constexpr std::string_view kInfo = "] NCCL INFO ";
  return device > tid + 2 && line.substr(device).starts_with(kInfo) ? device + kInfo.size() : 0;
}

// Nothing but INFO lines with NCCL's own prefix, and the line that tells the version. Warnings are left to others too:
// a job's output has them.
bool OwnsAll(std::string_view text) {
  std::string_view prefix;
  size_t lines = 0;
  for (LineReader reader(text);; ++lines) {
    std::string_view line;
    if (!reader.Next(&line)) break;
    if (!prefix.empty() && line.starts_with(prefix)) continue;
    if (const size_t length = PlainPrefixLength(line)) {
      prefix = line.substr(0, length);
      continue;
    }
    const bool cut_anywhere = reader.next_offset() == text.size() && !text.ends_with('\n');
    if (cut_anywhere && lines > 0 && prefix.starts_with(line)) continue;
    if (!line.starts_with("NCCL version ")) return false;
  }
  return !prefix.empty();
}

}  // namespace

extern const Format kNcclLogFormat;
const Format kNcclLogFormat = {
    .name = "nccl_log",
    .description =
        "NCCL's own log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,ENV,NET,COLL, NCCL_DEBUG_FILE=nccl_%h_%p.log)",
    .recognise = Recognise,
    .read = ReadNcclLog,
    .shares_lines = true,
    .owns_all = OwnsAll,
};

}  // namespace tacet
