// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/patience.h"

namespace tacet {

// What one look shows of a rank.
struct RankLook {
  enum class Doing : uint8_t {
    unknown,    // no stack could be had
    waits,      // inside communication, or waiting for the GPU with something in flight
    library,    // inside PyTorch, which computes or waits in C++: without CPU time it waits
    user_code,  // elsewhere: it may compute, sleep, read; a hidden wait for the GPU looks the same
  };
  int rank = -1;
  int64_t pid = -1;
  Doing doing = Doing::unknown;
  bool setting_up = false;  // in the set-up of a group
  bool in_flight = false;   // its black box shows an operation that was issued and has not ended
  bool gone = false;        // the process has ended and others go on
  char state = '?';         // as in /proc/PID/stat
  int64_t cpu_ns = 0, io_bytes = 0, main_io_bytes = 0;  // the last: of its main thread
  uint64_t place = 0;                                   // of its stack, without line numbers: loops move between lines
  uint64_t progress = 0;                                // of its black box; changes whenever something gets on
  std::string where;                                    // "evaluate (eval.py:88)" for people; may be empty
};

// Nothing has moved for longer than this job ever paused, and somebody waits.
struct StillVerdict {
  int64_t still_ns = 0, limit_ns = 0;
  std::vector<int> waiting, elsewhere;  // ranks; -1 where the number is unknown
};

// Tells a hang from a pause by looking at the same ranks again and again. A pause has somebody who runs: CPU time or
// bytes or stacks change in user code; or nobody waits. In a hang some wait, and whoever does not wait does nothing
// either. Times come in as arguments, so any history can be played to it.
class StillJudge {
 public:
  explicit StillJudge(Patience patience = {}) : patience_(patience) {}
  std::optional<StillVerdict> Look(const std::vector<RankLook>& ranks, int64_t monotonic_ns);
  bool moved() const { return moved_; }  // at the last look
  // Whether somebody got on since the last look: elsewhere in the program, or further in its black box. CPU time and
  // bytes say nothing here, since a capture may stop processes and make them write.
  bool HaveGotOn(const std::vector<RankLook>& ranks) const;

 private:
  bool HasMoved(const RankLook& before, const RankLook& now, int64_t elapsed_ns) const;

  Patience patience_;
  std::map<int64_t, RankLook> before_;  // by pid
  int64_t looked_ns_ = -1, still_since_ns_ = -1, longest_pause_ns_ = 0;
  bool moved_ = true;
};

}  // namespace tacet
