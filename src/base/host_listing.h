// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tacet {

// What tools of a host or of a cluster list. -1 and empty: not told.

// A GPU in the table of nvidia-smi or gpustat, or in a sentence of whoever wrote the text.
struct GpuLoad {
  std::string host;
  int32_t index = -1;
  float percent = -1;  // utilization: the share of time in which some kernel ran
  float watts = -1, most_watts = -1;
  int32_t memory_mib = -1;
};

// A file system in the rows of df; of several rows the last, and where they began.
struct SpaceUse {
  std::string host, mount;
  std::string size, used;  // as they are written: "24G"
  int32_t percent = -1, first_percent = -1;
  int32_t rows = 0;
  bool inodes = false;
};

// A test of `dcgmi diag`.
struct GpuCheck {
  std::string test;  // "GPU Memory"
  std::string gpus;  // of a test that failed: "6", "1, 6"; empty: all, or not told
  bool failed = false;
  bool of_setup = false;  // it looks at the host's software, not at a device: "Persistence Mode"
  bool remark = false;    // no test but what one says of its failure; of the setup alone, `test` is a sentence about it
};

enum class NodeCondition : uint8_t {
  takes_jobs,     // idle, mixed, allocated
  draining,       // its jobs end and no new ones begin
  maintained,     // in maintenance, reserved, or off to save power
  failed,         // down or failing
  silent,         // ... and it does not answer the controller
  prolog_failed,  // what the scheduler runs before a job failed there
};

// Nodes in a list of Slurm, or in a line of its tools.
struct ListedNodes {
  std::string nodes;  // "g[003,005]", as they are written
  std::string partition;
  std::string word;  // "drng@"; the reason where a list gives one
  int32_t count = -1;
  NodeCondition condition = NodeCondition::takes_jobs;
};

}  // namespace tacet
