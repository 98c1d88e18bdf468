// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch/capture.h"
#include "launch/collect/bundle_entry.h"

namespace tacet {

struct NodeWish {
  std::vector<std::string> paths;
  uint64_t most_file_bytes = uint64_t{64} << 20;
  uint64_t most_bytes = uint64_t{2} << 30;  // of all files together
  int64_t command_ms = 30'000;
  bool host_state = true;  // dmesg, nvidia-smi, counters, RAS
  bool capture = false;    // stacks and /proc of the job's processes
  std::string slurm_job;   // whose processes are meant; empty: none are looked for
  std::vector<int64_t> pids;
};

// What one node has, entry by entry, in the same order whenever the same is there. Returns what is missing. `take` may
// answer false to end it.
std::vector<CaptureNote> CollectNode(const NodeWish& wish, const std::function<bool(BundleEntry)>& take);

}  // namespace tacet
