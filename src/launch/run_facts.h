// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tacet {

// The communication that takes most of a step.
struct RunTransfer {
  std::string name;    // "all_reduce on default_pg, up to 16 MiB"
  double bus_gbs = 0;  // 0: unknown
};

// What the files of a run tell beyond its verdict. Of several jobs, the one with the most processes.
struct RunFacts {
  std::map<std::string, std::vector<std::string>> settings;  // variables that NCCL's logs name, with their values
  std::vector<std::string> rings;                            // "default_pg, channels 0 and 1: 0 1 2 3"
  int64_t step_ns = 0;                                       // mean; 0: unknown
  double exposed_share = -1;                                 // of the step, communication that nothing hides
  std::vector<RunTransfer> transfers;                        // longest first
};
RunFacts ReadRunFacts(const std::string& path);

}  // namespace tacet
