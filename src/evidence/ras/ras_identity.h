// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "evidence/ras/ras_parse.h"
#include "model/fragment.h"

namespace tacet {

// Gives speakers their rank in the job, and groups their members, where the report allows it. `job_gpus` is what the
// job summary counts (-1 where there is none), `largest_row` the largest communicator of the group table.
void NameRasRanks(int64_t job_gpus, int32_t largest_row, Fragment& out);

// Sets LaunchCounts::moved against the answer `before`: two answers tell "busy" from "stuck".
void CompareRasAnswers(const std::vector<RasRecord>& records, uint32_t before, Fragment& out);

}  // namespace tacet
