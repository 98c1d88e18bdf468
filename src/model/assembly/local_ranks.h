// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/fragment.h"

namespace tacet {

// A mere number ("034.log", "run_7.log") tells a rank only where the folder holds others of the kind, their numbers
// count from 0 with few missing, and what the files state does not contradict them.
void ForgetLonelyNumbers(std::vector<Fragment>& fragments);

// Files of a node are often named by local rank: node3/rank5.log is rank 21 of the job. Where the files of a folder
// that state their rank all lie off their names by the same number, the names of the others are off by it too.
void ShiftLocalRanks(std::vector<Fragment>& fragments);

// torchrun and torch.multiprocessing.spawn number the processes of their own node: "local_rank: 3", "process 3". Where
// nothing tells of a second node, that is the rank.
void NameLocalRanks(std::vector<Fragment>& fragments);

}  // namespace tacet
