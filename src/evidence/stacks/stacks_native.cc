// SPDX-License-Identifier: Apache-2.0
// Lines that gdb and torch's C++ backtraces write, and the lines that collectors put between the stacks of processes.
#include <initializer_list>

#include "base/text_scan.h"
#include "evidence/stacks/stacks_lines.h"
#include "model/events/parallel_label.h"

namespace tacet {
namespace {

// The end of a function's name: the " (" that opens gdb's argument list. Templates and parameter lists of C++ names
// hold blanks and brackets too: "std::map<int, (anonymous namespace)::X>::find(int const&) (this=0x0)".
size_t EndOfName(std::string_view text) {
  int round = 0, angle = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' && round == 0 && angle <= 0 && i > 0 && text[i - 1] == ' ') {
      // "foo (anonymous namespace)::x" cannot start an argument list.
      if (!text.substr(i).starts_with("(anonymous namespace)")) return i - 1;
    }
    if (c == '(') ++round;
    if (c == ')' && round > 0) --round;
    const bool in_operator = i >= 8 && text.substr(i - 8, 8) == "operator";
    if (c == '<' && round == 0 && !in_operator) ++angle;
    if (c == '>' && round == 0 && angle > 0 && text[i - 1] != '-') --angle;
  }
  return text.find(" (");
}

// "… at /src/group.cc:512" or "… from /lib/libc.so.6", wherever it stands last.
void ParsePlace(std::string_view text, FrameLine* out) {
  const size_t at = text.rfind(" at "), from = text.rfind(" from ");
  if (at != std::string_view::npos && (from == std::string_view::npos || at > from)) {
    out->file = Trim(text.substr(at + 4));
    const size_t colon = out->file.rfind(':');
    if (colon == std::string_view::npos) return;
    std::string_view digits = out->file.substr(colon + 1);
    if (TakeNumber(digits, &out->code_line) && digits.empty()) out->file = out->file.substr(0, colon);
  } else if (from != std::string_view::npos) {
    out->file = Trim(text.substr(from + 6));
    // torch's symboliser writes "from ProcessGroupNCCL.cpp:123" or "from ??:0".
    const size_t colon = out->file.rfind(':');
    std::string_view digits = colon == std::string_view::npos ? std::string_view() : out->file.substr(colon + 1);
    uint32_t line = 0;
    if (!digits.empty() && TakeNumber(digits, &line) && digits.empty()) {
      out->file = out->file.substr(0, colon);
      out->code_line = line;
    }
    if (out->file == "??") out->file = {};
  }
}

// The number of "rank=0" or "rank=rank@entry=0" among a frame's arguments; -1 where there is none.
int32_t NumberArgument(std::string_view text, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      if (at == 0 || (text[at - 1] != '(' && text[at - 1] != ' ')) continue;
      std::string_view rest = text.substr(at + name.size());
      if (!TakeLiteral(rest, "=")) continue;
      if (rest.starts_with(name)) {
        rest.remove_prefix(name.size());
        if (!TakeLiteral(rest, "@entry=")) continue;
      }
      int32_t value = -1;
      if (TakeNumber(rest, &value) && value >= 0) return value;
    }
  return -1;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

size_t FindRankWord(std::string_view line) {
  for (size_t i = 0; i + 4 <= line.size(); ++i)
    if (Lower(line[i]) == 'r' && Lower(line[i + 1]) == 'a' && Lower(line[i + 2]) == 'n' && Lower(line[i + 3]) == 'k')
      return i;
  return std::string_view::npos;
}

// "http://node7:25999" and "node7:25999" are node7.
std::string_view HostOf(std::string_view address) {
  if (const auto rest = After(address, "://")) address = *rest;
  if (address.starts_with('['))
    return address.substr(1, address.find(']') == std::string_view::npos ? 0 : address.find(']') - 1);
  return address.substr(0, address.find_first_of(":/ "));
}

}  // namespace

// Thread 7 (Thread 0x7f6c31fff700 (LWP 4321) "pt_nccl_watchdg"):
// Thread 7 (Thread 0x7f6c31fff700 (LWP 4321)):
// Thread 1 (LWP 4242 "python"):
// Thread 1 (process 4242):
bool ParseGdbThread(std::string_view line, ThreadLine* out) {
  if (!line.starts_with("Thread ") || !line.ends_with(':')) return false;
  line.remove_prefix(7);
  if (!TakeNumber(line, &out->number) || !TakeLiteral(line, " (")) return false;
  std::string_view id;
  if (const auto lwp = After(line, "LWP "))
    id = *lwp;
  else if (const auto process = After(line, "process "))
    id = *process;
  else if (line.starts_with("Thread "))
    id = line.substr(7);
  else
    return false;
  out->id = id.substr(0, id.find_first_of(" )\":"));
  const size_t open = line.find('"'), close = line.rfind('"');
  if (open != std::string_view::npos && close > open) out->name = line.substr(open + 1, close - open - 1);
  return !out->id.empty();
}

//   Id   Target Id         Frame
// * 1    Thread 0x7f2273ac5d00 (LWP 40117) "python" 0x00007f2272c8384d in poll () at
// ../sysdeps/unix/syscall-template.S:84
//   2    Thread 0x7f21eb59e700 (LWP 40260) pthread_cond_wait@@GLIBC_2.3.2 () at pthread_cond_wait.S:185
//   3    LWP 40261 "python" poll ()
bool ParseGdbThreadRow(std::string_view line, ThreadLine* out, std::string_view* frame) {
  if (!TakeLiteral(line, "* ") && !TakeLiteral(line, "  ")) return false;
  SkipBlanks(line);
  if (!TakeNumber(line, &out->number) || !line.starts_with(' ')) return false;
  SkipBlanks(line);
  if (TakeLiteral(line, "Thread 0x")) {
    const size_t open = line.substr(0, 24).find(" (LWP ");
    if (open == std::string_view::npos) return false;
    line.remove_prefix(open + 6);
  } else if (!TakeLiteral(line, "LWP ")) {
    return false;
  }
  const size_t digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  out->id = line.substr(0, digits);
  line.remove_prefix(digits);
  TakeLiteral(line, ")");
  SkipBlanks(line);
  if (TakeLiteral(line, "\"")) {
    const size_t close = line.find('"');
    if (close == std::string_view::npos) return false;
    out->name = line.substr(0, close);
    line.remove_prefix(close + 1);
    SkipBlanks(line);
  }
  *frame = line;
  return !line.empty();
}

bool ParseGdbSwitch(std::string_view line, ThreadLine* out) {
  if (!TakeLiteral(line, "[Switching to thread ") || !TakeNumber(line, &out->number)) return false;
  const auto lwp = After(line, "LWP ");
  if (!lwp) return false;
  out->id = lwp->substr(0, lwp->find_first_not_of("0123456789"));
  return !out->id.empty();
}

bool IsHorovodCoordinator(std::string_view line) {
  return ContainsAny(line, {"is_coordinator=true", "is_coordinator@entry=true"});
}

// #0  0x00007f6c4a1d27f6 in pthread_cond_wait@@GLIBC_2.3.2 () from /lib/x86_64-linux-gnu/libpthread.so.0
// #1  ncclGroupEndInternal (simInfo=0x0) at group.cc:512
// #2  <signal handler called>
// #4 c10d::ProcessGroupNCCL::Watchdog::run() from ProcessGroupNCCL.cpp:2200
bool ParseGdbFrame(std::string_view line, FrameLine* out) {
  if (!TakeLiteral(line, "#") || !TakeNumber(line, &out->number)) return false;
  if (!line.starts_with(' ')) return false;
  SkipBlanks(line);
  if (line.starts_with("0x")) {
    uint64_t address = 0;
    if (!TakeHex(line, &address)) return false;
    SkipBlanks(line);
    if (!TakeLiteral(line, "in ")) return false;
    out->address = true;
  }
  if (line.empty()) return false;
  if (line.starts_with("<signal handler called>") || line.starts_with("<function called from gdb>")) {
    out->function = line.substr(0, line.find('>') + 1);
    return true;
  }
  const size_t end = EndOfName(line);
  if (end == std::string_view::npos) {
    const size_t from = line.rfind(" from ");
    if (from == std::string_view::npos) return false;
    out->function = line.substr(0, from);
    ParsePlace(line, out);
    return true;
  }
  out->function = line.substr(0, end);
  ParsePlace(line.substr(end), out);
  const std::string_view arguments = line.substr(end);
  out->group_ranks = NumberArgument(arguments, {"nranks", "nRanks"});
  if (out->group_ranks > 0) out->group_rank = NumberArgument(arguments, {"rank", "myrank"});
  return true;
}

// Program received signal SIGSEGV, Segmentation fault.
// Thread 1 "python" received signal SIGSEGV, Segmentation fault.
// Program terminated with signal SIGABRT, Aborted.          and "with signal 11, Segmentation fault." of old releases
std::string_view ParseGdbSignal(std::string_view line) {
  if (!line.starts_with("Program ") && !line.starts_with("Thread ")) return {};
  for (const std::string_view key : {" received signal SIG", "Program terminated with signal "}) {
    const auto rest = After(line, key);
    if (!rest) continue;
    const size_t comma = rest->find(", ");
    if (comma == std::string_view::npos) return {};
    std::string_view words = Trim(rest->substr(comma + 2));
    if (words.ends_with('.')) words.remove_suffix(1);
    // Who stops a process to look at it sends SIGINT or SIGSTOP.
    for (const std::string_view own :
         {"Segmentation fault", "Bus error", "Illegal instruction", "Aborted", "Arithmetic exception"})
      if (words.starts_with(own)) return words;
    return {};
  }
  return {};
}

// gdb wraps long frames when it runs on a terminal:
//     at ../src/group.cc:512
//     from /usr/lib/libtorch_cuda.so
//     closed=0x0) at misc/socket.cc:54
bool ParseGdbContinuation(std::string_view line, FrameLine* frame) {
  if (!line.starts_with("    ") && !line.starts_with("   from /") && !line.starts_with("   at ")) return false;
  ParsePlace(line.substr(line.find_first_not_of(' ') - 1), frame);
  return true;
}

// frame #5: c10d::ProcessGroupNCCL::Watchdog::run() + 0x14c (0x7f1c21b0 in /x/libtorch_cuda.so)
// frame #6: <unknown function> + 0xdc253 (0x7f2ad1edc253 in /lib/x86_64-linux-gnu/libstdc++.so.6)
bool ParseTorchFrame(std::string_view line, FrameLine* out) {
  SkipBlanks(line);
  if (!TakeLiteral(line, "frame #") || !TakeNumber(line, &out->number) || !TakeLiteral(line, ": ")) return false;
  const size_t place = line.rfind(" (0x");
  if (place != std::string_view::npos) {
    std::string_view inside = line.substr(place);
    const size_t in = inside.find(" in ");
    if (in != std::string_view::npos) {
      out->file = inside.substr(in + 4);
      if (out->file.ends_with(')')) out->file.remove_suffix(1);
    }
    line = line.substr(0, place);
  } else {
    ParsePlace(line, out);
  }
  const size_t offset = line.rfind(" + ");
  out->function = offset == std::string_view::npos ? line : line.substr(0, offset);
  return !out->function.empty();
}

// === Rank 3: http://node7:25999 ===
// ===== rank 12 (node7) =====
// ==> stacks/stack_rank3.txt <==
bool ParseSectionLine(std::string_view line, SectionLine* out) {
  if (line.starts_with("==> ") && line.ends_with(" <==")) {
    out->path = line.substr(4, line.size() - 8);
    return !out->path.empty();
  }
  const size_t rule = line.find_first_not_of("=-#*");
  if (rule == std::string_view::npos || rule < 2 || rule > 80) return false;
  const size_t word = FindRankWord(line);
  if (word == std::string_view::npos || line.find_first_not_of("=-#* [(", 0) != word) return false;
  std::string_view rest = line.substr(word + 4);
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ':' || rest.front() == '=' || rest.front() == '_'))
    rest.remove_prefix(1);
  int32_t rank = -1;
  if (!TakeNumber(rest, &rank) || rank < 0) return false;
  out->rank = rank;
  rest =
      rest.substr(0, rest.find_last_not_of("=-#* ") == std::string_view::npos ? 0 : rest.find_last_not_of("=-#* ") + 1);
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ':' || rest.front() == '(')) rest.remove_prefix(1);
  if (Contains(rest, "://") || Contains(rest, ":")) out->host = HostOf(rest);
  return true;
}

int64_t RankInHeading(std::string_view line) {
  constexpr size_t kLongest = 80;
  line = Trim(line);
  if (line.size() > kLongest) return -1;
  const size_t word = FindRankWord(line);
  // "rank 0 (part of it)", "Rank 3": nothing else stands there.
  const bool alone = word == 0 && (line.ends_with(')') || line.find_first_not_of("0123456789 ", 4) == line.npos);
  if (!line.ends_with(':') && !alone) return -1;
  if (word == std::string_view::npos || (word > 0 && line[word - 1] != ' ' && line[word - 1] != '*')) return -1;
  std::string_view rest = line.substr(word + 4);
  if (FindRankWord(rest) != std::string_view::npos) return -1;  // of several
  SkipBlanks(rest);
  int32_t rank = -1;
  if (!TakeNumber(rest, &rank) || rank < 0) return -1;
  if (alone && (rest.empty() || rest.starts_with(" ("))) return rank;
  if (rest.empty() || !line.ends_with(':')) return -1;
  return rest[0] == ':' || rest[0] == ' ' || rest[0] == '*' || rest[0] == '\'' ? rank : -1;
}

CommandRank RankInCommand(std::string_view command) {
  const auto number = [&](std::initializer_list<std::string_view> keys) -> int64_t {
    for (const std::string_view key : keys)
      if (const auto value = IntAfter<int32_t>(command, key); value && *value >= 0) return *value;
    return -1;
  };
  if (const int64_t rank = number({" RANK=", "--rank=", "--rank "}); rank >= 0) return {rank};
  // "sglang::scheduler_TP3", "VLLM::Worker_TP3": the titles that servers give their processes
  for (const std::string_view title : {"::scheduler_", "::Worker_"})
    if (auto label = After(command, title))
      if (const int32_t rank = RankOfParallelLabel(TakeWord(*label)); rank >= 0) return {rank};
  // The rank on its node is the rank of the job on the first node only.
  if (number({"--node_rank=", "--node-rank=", "--node_rank ", "--node-rank ", "--machine_rank ", "--machine_rank="}) >
      0)
    return {};
  return {number({"--local_rank=", "--local-rank=", "--local_rank ", "--local-rank ", "LOCAL_RANK="}), true};
}

}  // namespace tacet
