// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/launcher_prefix.h"

namespace tacet {

enum class StackTool : uint8_t { faulthandler, py_spy, gdb, torch_cpp };

// Views point into the bytes that were parsed, or into StackDump::owned.
struct StackFrameRecord {
  std::string_view function;
  std::string_view file;  // source file or library as written, empty where unknown
  uint32_t code_line = 0;
  uint32_t at_line = 0;  // of the dump
  bool python = false;
};

struct StackThreadRecord {
  StackTool tool = StackTool::faulthandler;
  uint32_t section = 0;
  uint32_t number = 0;  // gdb's
  std::string_view id;  // pthread or OS id as written
  std::string_view name;
  std::string_view state;
  bool current = false;                       // faulthandler's "Current thread"
  bool cut = false;                           // outer frames are missing ("...")
  int32_t group_rank = -1, group_ranks = -1;  // as the arguments of a frame tell
  bool c_stack = false;                       // Python 3.14's second section: the C frames of the current thread
  uint32_t line = 0;
  uint64_t offset = 0;
  std::vector<StackFrameRecord> frames;  // innermost first
};

// One process at one moment.
struct StackSection {
  int64_t rank = -1;           // "=== Rank 3: http://node7:25999 ===", "==== rank 3 ===="
  int64_t command_rank = -1;   // "--local_rank=2": of the job where there is one node
  bool command_local = false;  // it is the number of the process on its node
  int64_t pid = -1;
  int64_t parent_pid = -1;
  std::string_view host;
  std::string_view path;  // "==> stack_rank3.txt <==": several files shown one after another
  LauncherPrefix launcher;
  int64_t timer_s = -1;           // "Timeout (0:00:30)!": faulthandler's timer had run for so long
  bool threads_left_out = false;  // faulthandler stops after a hundred threads
  uint32_t line = 0;
  uint64_t offset = 0;
};

// "Fatal Python error: Segmentation fault"
struct StackFatalRecord {
  uint32_t section = 0;
  std::string_view reason;
  bool by_gdb = false;  // "Program received signal SIGSEGV, Segmentation fault."
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct StackDump {
  std::vector<StackSection> sections;
  std::vector<StackThreadRecord> threads;  // in file order
  std::vector<StackFatalRecord> fatals;
  std::deque<std::string> owned;  // lines that had to be changed: colours dropped, JSON escapes resolved
  uint64_t understood = 0, ignored = 0, not_understood = 0;
  uint32_t first_unknown_line = 0, last_unknown_line = 0;
  bool truncated = false;  // JSON that ends early
};

// A thread keeps this many frames; the innermost tell where it is, and recursion may be endless.
inline constexpr size_t kMaxFramesKept = 1000;

StackDump ParseStacks(std::string_view bytes);

// For recognition: how the lines of a prefix divide.
struct StackSigns {
  uint32_t headers = 0;  // lines that only a stack dump has: thread headers, "Fatal Python error"
  uint32_t frames = 0;
  uint32_t other_known = 0;  // around them
  uint32_t unknown = 0;
  uint32_t headless_stacks = 0;  // of gdb: "#0  0x... in f ()" and what follows, without the head of a thread
  uint32_t unnamed_frames = 0;   // C++ frames without any thread header, as exceptions in a log have them
};
StackSigns CountStackSigns(std::string_view prefix);

// py-spy dump --json. False when the text is something else.
bool LooksLikePySpyJson(std::string_view prefix);
StackDump ParsePySpyJson(std::string_view bytes);

}  // namespace tacet
