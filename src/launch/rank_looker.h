// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/job_processes.h"
#include "launch/still_judge.h"
#include "live/agent/box_watch.h"

namespace tacet {

// A rank with what the looks before have shown of it.
struct WatchedRank {
  JobMemberProcess process;
  RankLook look;
  int64_t running_until_wall_ns = -1;  // the last look at which the kernel would have let it run
  bool has_box = false;
  int world_size = -1;
  int64_t io_after_look = -1, main_io_after_look = -1;  // writing its stack moves bytes, too: those do not count
};

struct LookerOptions {
  ProcessSearch search;
  std::string stacks_folder;  // of the Python hook; empty: there is none
  std::string box_folder;     // empty: no plugin
  int64_t answer_ms = 1500;   // so long a process may take to write its stack
};

// Looks at the ranks of a job on this host: processes, CPU time, black boxes and, when asked, their Python stacks.
// Asking costs a rank a signal and a few hundred microseconds.
class RankLooker {
 public:
  explicit RankLooker(LookerOptions options);

  // `keep_older`: what the stack files hold already stays in them, and this look is added.
  const std::vector<WatchedRank>& Look(int64_t wall_ns, bool with_stacks, bool keep_older = false);
  const std::vector<WatchedRank>& ranks() const { return ranks_; }
  std::vector<RankLook> looks() const;
  std::string StackFileOf(const WatchedRank& rank) const;  // empty where there is none

 private:
  void FindRanks(int64_t wall_ns);
  void ReadBoxes(int64_t wall_ns);
  void AskForStacks(bool keep_older);
  struct Question {
    int64_t size = 0;  // of the file before
    pid_t pid = 0;
  };
  using Asked = std::map<std::string, Question>;  // by stack file
  Asked WaitForAnswers(Asked asked) const;
  void ReadStackFiles();

  LookerOptions options_;
  BoxWatch boxes_;
  std::vector<WatchedRank> ranks_;
  std::map<int64_t, std::string> stack_files_;  // by pid
};

// The same, for one process that is not part of a run and has no hook: by py-spy where it is installed. Empty
// otherwise.
std::string PythonStackByPySpy(int64_t pid);

}  // namespace tacet
