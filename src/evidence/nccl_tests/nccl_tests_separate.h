// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/nccl_tests/nccl_tests_parse.h"

namespace tacet {

// Tests built without MPI, or against another MPI than the launcher's, do not know of each other: each process is rank
// 0 of a run of its own. Fills NcclTestsTable::separate_runs.
void MarkSeparateRuns(NcclTestsOutput& out);

}  // namespace tacet
