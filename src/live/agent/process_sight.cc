// SPDX-License-Identifier: Apache-2.0
#include "live/agent/process_sight.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
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
uint64_t ReadPidNamespace(const std::string& process) {
  char text[64];
  const ssize_t size = ::readlink((process + "/ns/pid").c_str(), text, sizeof text);
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
  pid_namespace_ = ReadPidNamespace(proc_ + "/self");
}

int64_t ParseInnerPid(std::string_view status) {
  const size_t at = status.find("\nNSpid:");
  if (at == std::string_view::npos) return 0;
  std::string_view line = status.substr(at + 7);
  line = line.substr(0, line.find('\n'));
  const size_t last = line.find_last_of("\t ");
  if (last == std::string_view::npos || line.find_first_not_of("\t ") > last) return 0;  // one number only
  int64_t pid = 0;
  std::from_chars(line.data() + last + 1, line.data() + line.size(), pid);
  return pid;
}

std::array<int64_t, 4> ParseProcUids(std::string_view status) {
  std::array<int64_t, 4> uids = {-1, -1, -1, -1};
  const size_t at = status.find("\nUid:");
  if (at == std::string_view::npos) return uids;
  std::string_view line = status.substr(at + 5);
  line = line.substr(0, line.find('\n'));
  for (int64_t& uid : uids) {
    const size_t begin = line.find_first_of("0123456789");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const auto end = std::from_chars(line.data(), line.data() + line.size(), uid).ptr;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
  }
  return uids;
}

ProcessSight ProcessLooker::Look(const ProcessName& name) {
  const int64_t pid = PidHere(name);
  return pid == 0 ? ProcessSight::unknown : LookAt(pid, name.start_jiffies);
}

bool ProcessLooker::MayBeOf(const ProcessName& name, int64_t uid) {
  const int64_t pid = PidHere(name);
  if (pid == 0 || HasEnded(LookAt(pid, name.start_jiffies))) return true;
  const auto uids = ParseProcUids(ReadSmall(proc_ + "/" + std::to_string(pid) + "/status"));
  return uids[0] < 0 || std::find(uids.begin(), uids.end(), uid) != uids.end() ||
         HasEnded(LookAt(pid, name.start_jiffies));  // the pid may have gone to another in between
}

// Only what was once found can be missed. It is looked for a few times: a box may be seen before its process is listed,
// but an agent that cannot see into pods at all must not search for ever.
int64_t ProcessLooker::PidHere(const ProcessName& name) {
  if (name.pid <= 0 || name.boot_id.empty() || name.boot_id != boot_id_) return 0;
  // A pod's pid is another process' here, or nobody's: it tells nothing.
  if (pid_namespace_ == 0 || name.pid_namespace == pid_namespace_) return name.pid;
  if (name.pid_namespace == 0 || name.start_jiffies == 0) return 0;
  constexpr size_t kMostNames = 8192;
  constexpr int kMostSearches = 3;
  if (inside_.size() > kMostNames) inside_.clear();
  Found& found = inside_[{name.pid_namespace, name.pid, name.start_jiffies}];
  if (found.pid == 0 && found.searches < kMostSearches) {
    ListInnerProcesses();
    if (found.searched_ns != listed_ns_) {
      found.searched_ns = listed_ns_;
      ++found.searches;
      std::vector<int64_t> fit = listed_[{name.pid, name.start_jiffies}];
      // Two pods may be started in the same moment and give the same number; the namespace is not always to be read.
      std::erase_if(fit, [&](int64_t pid) {
        const uint64_t inner = ReadPidNamespace(proc_ + "/" + std::to_string(pid));
        return inner != 0 && inner != name.pid_namespace;
      });
      if (fit.size() == 1) found.pid = fit[0];
    }
  }
  return found.pid;
}

void ProcessLooker::ListInnerProcesses() {
  constexpr int64_t kListAgainNs = 2'000'000'000;
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (listed_ns_ != 0 && now - listed_ns_ < kListAgainNs) return;
  listed_ns_ = now;
  listed_.clear();
  DIR* folder = ::opendir(proc_.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view digits = entry->d_name;
    int64_t pid = 0;
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) continue;
    std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    const std::string process = proc_ + "/" + entry->d_name;
    const int64_t inner = ParseInnerPid(ReadSmall(process + "/status"));
    char state = 0;
    uint64_t start = 0;
    if (inner > 0 && ParseProcStat(ReadSmall(process + "/stat"), &state, &start))
      listed_[{inner, start}].push_back(pid);
  }
  ::closedir(folder);
}

ProcessSight ProcessLooker::LookAt(int64_t pid, uint64_t start_jiffies) const {
  char state = 0;
  uint64_t start = 0;
  if (!ParseProcStat(ReadSmall(proc_ + "/" + std::to_string(pid) + "/stat"), &state, &start)) return ProcessSight::gone;
  if (start_jiffies != 0 && start != start_jiffies) return ProcessSight::gone;  // the pid went to another
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
