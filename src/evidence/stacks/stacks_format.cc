// SPDX-License-Identifier: Apache-2.0
#include "evidence/format.h"
#include "evidence/stacks/stacks_import.h"
#include "evidence/stacks/stacks_parse.h"

namespace tacet {
namespace {

Recognition Recognise(std::string_view prefix, std::string_view) {
  if (LooksLikePySpyJson(prefix)) return Recognition::yes;
  // "Timeout (0:00:28)!", and the file ends: faulthandler was about to write, so the process ran.
  if (const size_t end = prefix.find(")!\n");
      prefix.starts_with("Timeout (") && end != std::string_view::npos && end < 30)
    return Recognition::yes;
  // Only a stack dump has these words; everything else can be sent away cheaply.
  bool worth = false;
  for (const std::string_view sign :
       {"(most recent call first):", "Fatal Python error: ", " (LWP ", "Thread ", "frame #", "#0 "})
    worth = worth || prefix.find(sign) != std::string_view::npos;
  if (!worth) return Recognition::no;
  const StackSigns signs = CountStackSigns(prefix);
  const uint32_t named = signs.headers + signs.frames;
  const uint32_t all = named + signs.unnamed_frames + signs.other_known + signs.unknown;
  // C++ frames without a thread belong to an exception in a log, unless there is nothing else; "#1 (…)" alone is prose.
  // gdb's own frames from #0 on: "(gdb) bt" of one thread has no more.
  if (signs.headers == 0 && signs.headless_stacks > 0)
    return signs.unknown * 2 <= all ? Recognition::yes : Recognition::maybe;
  if (signs.headers == 0)
    return signs.unnamed_frames >= 3 && signs.unnamed_frames * 10 >= all * 9 ? Recognition::yes : Recognition::no;
  if (signs.unknown * 2 <= all) return Recognition::yes;
  // A dump inside a job's own log: whoever knows that log reads it too.
  return Recognition::maybe;
}

void Read(const FileView& file, Fragment& out) {
  const StackDump dump =
      LooksLikePySpyJson(file.bytes.substr(0, kPrefixBytes)) ? ParsePySpyJson(file.bytes) : ParseStacks(file.bytes);
  out.bytes = {file.bytes.size(), dump.understood, dump.ignored, dump.not_understood};
  ImportStacks(dump, file.path, out);
}

}  // namespace

extern const Format kStacksFormat;
const Format kStacksFormat = {
    "stacks",
    "stacks of threads: faulthandler, py-spy dump [--json], gdb -p PID -batch -ex 'thread apply all bt', torch's debug "
    "server",
    Recognise,
    Read,
    /*shares_lines=*/true,
};

}  // namespace tacet
