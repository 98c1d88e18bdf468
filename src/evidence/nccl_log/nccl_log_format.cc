// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

extern const Format kNcclLogFormat;
const Format kNcclLogFormat = {
    .name = "nccl_log",
    .description =
        "NCCL's own log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,ENV,NET,COLL, NCCL_DEBUG_FILE=nccl_%h_%p.log)",
    .recognise = Recognise,
    .read = ReadNcclLog,
    .shares_lines = true,
};

}  // namespace tacet
