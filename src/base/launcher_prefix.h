// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// What a launcher or a collector wrote before a line of somebody's output. One file may hold the output of many
// processes, told apart only by this.
struct LauncherPrefix {
  enum class Kind : uint8_t {
    none,
    rank,     // "[rank3]:" PyTorch itself: the global rank
    task,     // "3: " srun --label, "[1,3]<stderr>:" mpirun --tag-output: usually the global rank
    local,    // "[default3]:" torchrun --tee: the rank on its node
    process,  // "(trainer pid=1234, ip=10.0.0.7) " Ray
    pod,      // "[pod/trainer-3/main] " kubectl logs --prefix
  };
  Kind kind = Kind::none;
  int64_t number = -1;     // rank, task, local rank or pid; -1 for a pod
  std::string_view label;  // as written; empty where there is none
};

// Takes such a prefix off the front of `line`, several in a row too ("0: [rank3]: "); the one that says most is told.
LauncherPrefix TakeLauncherPrefix(std::string_view& line);

// A line whose writer flushed it in pieces has the tag of mpirun before each: "[1,0]<stderr>:[[1,0]<stderr>:2020-01-21
// [1,0]<stderr>:horovod/...". Only the first tag stays; the tag of another process begins a line of that process.
bool HasInnerTags(std::string_view line);
std::vector<std::string> SplitAtInnerTags(std::string_view line);

// "trainer-3 main text", as stern writes it: cannot be told from a text, so only for a caller who understands the rest.
bool TakePodWord(std::string_view& line, std::string_view* pod);

inline bool HasTerminalCodes(std::string_view line) { return line.find('\x1b') != std::string_view::npos; }
// Without colours and other CSI sequences.
std::string DropTerminalCodes(std::string_view line);

}  // namespace tacet
