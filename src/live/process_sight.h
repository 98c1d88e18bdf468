// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "live/box_state.h"

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

// Looks processes up in /proc (or in a folder that plays it, for tests).
class ProcessLooker {
 public:
  explicit ProcessLooker(std::string proc = "/proc");
  ProcessSight Look(const ProcessName& name) const;
  const std::string& boot_id() const { return boot_id_; }

 private:
  std::string proc_, boot_id_;
  uint64_t pid_namespace_ = 0;  // 0: not to be had, then all pids are taken for ours
};

}  // namespace tacet
