// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacet::plugin {

// The beginning of a small file, terminated; gives its length, 0 when it cannot be read.
size_t ReadSmallFile(const char* path, char* to, size_t room);

// A process as /proc/<pid>/stat shows it.
struct ProcessStat {
  int32_t pid = 0;  // 0: there is no such entry
  char state = 0;   // R S D Z T t X I
  uint64_t start_jiffies = 0;
};
ProcessStat ReadProcessStat(const char* pid);  // "self" or a number

// Inode of this process's pid namespace; 0 when /proc shows another one's processes.
uint64_t PidNamespace();

}  // namespace tacet::plugin
