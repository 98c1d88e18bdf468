// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// What a table of nvidia-smi says about the GPUs of a job. It names nobody: which GPU belongs to which rank is not in
// it.
struct GpuLoadView {
  std::string words;                // empty: nothing worth saying
  std::vector<const Event*> cited;  // the rows that show it
  std::string idle;                 // "GPU 3": at 0 % and in use, while the others are busy
  bool all_idle = false;            // no kernel runs on any of them
};

// "GPU 0: 100 % at 62 W of 165 W"
std::string GpuLoadWords(const Event& row);

// `hangs`: whoever wrote the text says that the job hangs. Otherwise only what would be odd in any job is said.
GpuLoadView ReadGpuLoads(const Incident& incident, bool hangs);

}  // namespace tacet
