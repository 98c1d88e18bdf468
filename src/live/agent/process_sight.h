// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "live/agent/box_state.h"

namespace tacet {

// Which process is meant: a pid alone is given out again, together with its start and the boot it names one for ever.
struct ProcessName {
  int64_t pid = -1;
  uint64_t start_jiffies = 0;
  std::string boot_id;
  uint64_t pid_namespace = 0;  // in which the pid is its number
};

// "1234 (python train) T 1 ... 8273645 ...": state and field 22. False where the text is none.
bool ParseProcStat(std::string_view text, char* state, uint64_t* start_jiffies);

// "NSpid:\t17620\t2\n" of /proc/PID/status: the number of the process in each namespace, the innermost last. 0 where
// the process is in the namespace of the reader, or the text tells nothing.
int64_t ParseInnerPid(std::string_view status);

// "Uid:\t1000\t1000\t1000\t1000\n" of /proc/PID/status: real, effective, saved, of the file system. -1 where it is
// not told.
std::array<int64_t, 4> ParseProcUids(std::string_view status);

// Looks processes up in /proc (or in a folder that plays it, for tests). A process of an inner pid namespace, such as a
// pod's, is found by its number there and its start, where /proc shows it (hostPID: true).
class ProcessLooker {
 public:
  explicit ProcessLooker(std::string proc = "/proc");
  ProcessSight Look(const ProcessName& name);
  // Whether the process runs as the user, now or in its past; yes where it cannot be seen.
  bool MayBeOf(const ProcessName& name, int64_t uid);
  const std::string& boot_id() const { return boot_id_; }

 private:
  using InnerName = std::tuple<uint64_t, int64_t, uint64_t>;  // namespace, pid in it, start
  struct Found {
    int64_t pid = 0;  // here; 0 not found
    int searches = 0;
    int64_t searched_ns = 0;
  };
  ProcessSight LookAt(int64_t pid, uint64_t start_jiffies) const;
  int64_t PidHere(const ProcessName& name);  // 0: it cannot be seen
  void ListInnerProcesses();

  std::map<InnerName, Found> inside_;
  std::map<std::pair<int64_t, uint64_t>, std::vector<int64_t>> listed_;  // by inner pid and start
  int64_t listed_ns_ = 0;
  std::string proc_, boot_id_;
  uint64_t pid_namespace_ = 0;  // 0: not to be had, then all pids are taken for ours
};

}  // namespace tacet
