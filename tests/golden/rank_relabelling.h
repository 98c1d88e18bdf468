// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "incident_truth.h"
#include "recorded_files.h"

namespace tacet {

// The incident as if other ranks had played the parts: file names, texts, records and truth are relabelled alike. Empty
// where that cannot be done by exchanging digits: more than ten ranks, or groups smaller than the job, whose own
// numbers look the same. Rank 0 runs the store, so a set-up that fails keeps it.
std::optional<std::vector<RecordedFile>> RelabelRanks(const std::vector<RecordedFile>& files, IncidentTruth& truth,
                                                      const std::function<int(int rank, int world)>& relabel);

}  // namespace tacet
