// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/rank_looker.h"
#include "launch/still_judge.h"

namespace tacet {

struct CapturePlan {
  std::string folder;         // where everything goes; made if it is not there
  std::string pipe_prefix;    // of PyTorch's dump pipes, empty: none
  std::string flight_prefix;  // what they write: prefix and rank
  bool native = true;         // C and C++ stacks through gdb
  bool ask_ras = true;
  int64_t second_look_ms = 3000;
  int64_t command_ms = 15'000;        // for each program that is asked
  int64_t native_ms = 25'000;         // for the native stacks of all ranks together
  std::optional<StillVerdict> still;  // written down where a hang was decided
  std::string box_folder;
};

// What could not be captured, and why. Everything else is there.
struct CaptureNote {
  std::string what, why;
};

// All that can be known of the job on this host before anything in it ends: stacks of every rank, twice; flight records
// through their pipes, RAS, nvidia-smi, the kernel's log, network counters, /proc of every rank; watch.json. Leaves the
// job as it is.
std::vector<CaptureNote> Capture(RankLooker& looker, const CapturePlan& plan);

// watch.json, which `tacet diagnose` reads.
std::string DescribeWatch(const std::vector<WatchedRank>& ranks, const std::optional<StillVerdict>& still,
                          const std::string& host, int64_t wall_ns);

}  // namespace tacet
