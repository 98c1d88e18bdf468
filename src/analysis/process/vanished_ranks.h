// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/process/signs_of_life.h"

namespace tacet {

// Marks the ranks whose process went away without a word (RankLife::vanished, and by one kind of file fell_silent):
// their output just stops, while peers see connections close, or their GPUs report illegal accesses because memory of
// the dead process was mapped into them (P2P, CUDA IPC, MPS). Such errors of the peers are no faults of their GPUs:
// they become shared_gpu_error. Nobody is marked where an error of somebody's own explains the closed connections, or
// where files of some rank are missing; but then, too, errors that all others report may come from the one that is
// missing.
void MarkVanishedRanks(SignsOfLife& signs);

}  // namespace tacet
