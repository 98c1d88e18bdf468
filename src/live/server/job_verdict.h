// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "live/agent/hang_watch.h"
#include "report/report.h"

namespace tacet {

// A small copy of one box, and what its agent's kernel says of the process.
struct FetchedBox {
  std::string path;  // "node7/job/node7-4711.box"
  std::string bytes;
  ProcessSight sight = ProcessSight::unknown;
  int64_t seen_wall_ns = 0;
};

// A process of a job, and where it is.
struct JobMember {
  std::string agent;  // address
  const BoxState* box = nullptr;
};

// Runs the same rules as `tacet diagnose` over the boxes of a job. With suspicions it hangs, whatever the rules make of
// it. `ras` is the answer of NCCL RAS, if any.
Report JudgeJob(std::vector<FetchedBox> boxes, const std::vector<HangSuspicion>& suspicions, const std::string& ras);

// A job in which nothing is wrong, as far as its boxes show.
Report DescribeRunningJob(const std::string& job, const std::vector<JobMember>& members);

}  // namespace tacet
