// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/fragment.h"

namespace tacet {

struct JobPart {
  std::string label;            // the folder that holds the job's files; empty when there is only one job
  std::vector<size_t> members;  // indices of fragments
};

// Tells the files of several runs apart. Folders are the unit: two folders belong to one job unless both claim the same
// ranks, then they are one job only if they share a communicator id. Files of no rank (a kernel log at the top) go to
// every job. Outputs that tell the same steps but stop at different ones are of different jobs, whatever ranks they
// name, and so are slurm-1.out and slurm-2.out. A launcher's output and the tree of its --log-dir are one job, and so
// are the attempts of that tree. Of black boxes in one folder those are different jobs that claim the same ranks at the
// same time and share no communicator.
std::vector<JobPart> SplitJobs(const std::vector<Fragment>& fragments);

}  // namespace tacet
