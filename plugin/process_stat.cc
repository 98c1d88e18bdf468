// SPDX-License-Identifier: Apache-2.0
#include "plugin/process_stat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tacet::plugin {

size_t ReadSmallFile(const char* path, char* to, size_t room) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, to, room - 1);
  close(fd);
  const size_t length = got > 0 ? static_cast<size_t>(got) : 0;
  to[length] = 0;
  return length;
}

// 4711 (python (v3) x) S 4710 ... ; field 22 is the start. The name may hold anything, so count from the last ')'.
ProcessStat ReadProcessStat(const char* pid) {
  ProcessStat stat;
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  if (ReadSmallFile(path, text, sizeof text) == 0) return stat;
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return stat;
  const char state = at[2];
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  if (at == nullptr) return stat;
  stat.pid = static_cast<int32_t>(strtol(text, nullptr, 10));
  stat.state = state;
  stat.start_jiffies = strtoull(at + 1, nullptr, 10);
  return stat;
}

uint64_t PidNamespace() {
  struct stat seen {};
  // A container may have the host's /proc: its numbers are not ours then.
  if (ReadProcessStat("self").pid != getpid() || stat("/proc/self/ns/pid", &seen) != 0) return 0;
  return seen.st_ino;
}

}  // namespace tacet::plugin
