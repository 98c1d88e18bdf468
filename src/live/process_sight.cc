// SPDX-License-Identifier: Apache-2.0
#include "live/process_sight.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

namespace tacet {
namespace {

std::string ReadSmall(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(4096, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The link reads "pid:[4026531836]".
uint64_t ReadPidNamespace(const std::string& proc) {
  char text[64];
  const ssize_t size = ::readlink((proc + "/self/ns/pid").c_str(), text, sizeof text);
  const std::string_view link(text, size > 0 ? static_cast<size_t>(size) : 0);
  const size_t open = link.find('[');
  uint64_t inode = 0;
  if (open != std::string_view::npos) std::from_chars(link.data() + open + 1, link.data() + link.size(), inode);
  return inode;
}

}  // namespace

// The name in field 2 may hold blanks and brackets, so fields are counted from the last ')'.
bool ParseProcStat(std::string_view text, char* state, uint64_t* start_jiffies) {
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos || close + 2 >= text.size()) return false;
  *state = text[close + 2];
  size_t at = close;
  for (int field = 2; field < 22; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string_view::npos) return false;
  }
  const char* from = text.data() + at + 1;
  return std::from_chars(from, text.data() + text.size(), *start_jiffies).ec == std::errc();
}

ProcessLooker::ProcessLooker(std::string proc) : proc_(std::move(proc)) {
  boot_id_ = ReadSmall(proc_ + "/sys/kernel/random/boot_id");
  boot_id_ = boot_id_.substr(0, boot_id_.find('\n'));
  pid_namespace_ = ReadPidNamespace(proc_);
}

ProcessSight ProcessLooker::Look(const ProcessName& name) const {
  if (name.pid <= 0 || name.boot_id.empty() || name.boot_id != boot_id_) return ProcessSight::unknown;
  // A pod's pid is another process' here, or nobody's: it tells nothing.
  if (pid_namespace_ != 0 && name.pid_namespace != pid_namespace_) return ProcessSight::unknown;
  char state = 0;
  uint64_t start = 0;
  if (!ParseProcStat(ReadSmall(proc_ + "/" + std::to_string(name.pid) + "/stat"), &state, &start))
    return ProcessSight::gone;
  if (name.start_jiffies != 0 && start != name.start_jiffies) return ProcessSight::gone;  // the pid went to another
  switch (state) {
    case 'T':
    case 't': return ProcessSight::stopped;
    case 'D': return ProcessSight::uninterruptible;
    case 'Z': return ProcessSight::zombie;
    case 'X': return ProcessSight::gone;
    default: return ProcessSight::running;
  }
}

}  // namespace tacet
