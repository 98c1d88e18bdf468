// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/fragment.h"

namespace tacet {

// torchrun starts all workers anew after a failure, and keeps the output of each attempt in a folder of its own
// (RUN/attempt_0/LOCAL_RANK/stderr.log). The newest attempt that wrote something is the job; of those before it what
// ended the last one is kept as an EarlierRun, and a note says that the rest is not used.
void SetEarlierAttemptsAside(std::vector<Fragment>& fragments);

}  // namespace tacet
