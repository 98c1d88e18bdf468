// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// What one line of each tool says. Pure: no state between lines.

struct ThreadLine {
  std::string_view id, name, state;
  uint32_t number = 0;
  bool current = false;
};
struct FrameLine {
  std::string_view function, file;
  uint32_t code_line = 0;
  uint32_t number = 0;                        // gdb and torch count their frames
  bool address = false;                       // "0x00007f6c4a1d27f6 in "
  int32_t group_rank = -1, group_ranks = -1;  // of "(..., rank=0, nranks=2, ...)"
};

bool ParseFaulthandlerThread(std::string_view line, ThreadLine* out);
bool ParseFaulthandlerFrame(std::string_view line, FrameLine* out);
bool ParsePythonCStackFrame(std::string_view line, FrameLine* out);
bool ParsePyBtFrame(std::string_view line, FrameLine* out);

struct ProcessLine {
  int64_t pid = -1;
  std::string_view command;
};
bool ParsePySpyProcess(std::string_view line, ProcessLine* out);
bool ParsePySpyThread(std::string_view line, ThreadLine* out);
bool ParsePySpyFrame(std::string_view line, FrameLine* out);

bool ParseGdbThread(std::string_view line, ThreadLine* out);
// A row of `info threads`: the thread, and the frame it is in as `frame` ("poll () at poll.c:29", without its number).
bool ParseGdbThreadRow(std::string_view line, ThreadLine* out, std::string_view* frame);
// "[Switching to thread 12 (Thread 0x7f1a88c00700 (LWP 20117))]": whose the frames below are.
bool ParseGdbSwitch(std::string_view line, ThreadLine* out);
bool ParseGdbFrame(std::string_view line, FrameLine* out);
// Horovod's background loop on its coordinator, which is rank 0: "RunLoopOnce (state=..., is_coordinator=true)".
bool IsHorovodCoordinator(std::string_view line);
// "Program received signal SIGSEGV, Segmentation fault.": what a process ended with; empty where the line is another,
// or where somebody only stopped the process.
std::string_view ParseGdbSignal(std::string_view line);
bool ParseGdbContinuation(std::string_view line, FrameLine* frame);
bool ParseTorchFrame(std::string_view line, FrameLine* out);

struct SectionLine {
  int64_t rank = -1;
  std::string_view host;
  std::string_view path;
};
bool ParseSectionLine(std::string_view line, SectionLine* out);

// "The stack for rank0:", "rank 3 hangs here:": whose the stack below is, in somebody's own words. -1 where it is no
// such line.
int64_t RankInHeading(std::string_view line);
// "python train.py --local_rank=2", "env RANK=2 python train.py"; -1 where the command does not tell.
struct CommandRank {
  int64_t rank = -1;
  bool local = false;  // the number of the process on its node
};
CommandRank RankInCommand(std::string_view command);

}  // namespace tacet
