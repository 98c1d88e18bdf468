// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

inline constexpr std::string_view kStoppedByCheck =
    "PyTorch's check of the calls (TORCH_DISTRIBUTED_DEBUG=DETAIL) stopped the job";

// Against sizes that differ between ranks: mostly they follow the batch.
std::vector<std::string> UnequalSizeSteps(std::string look);

// What the reports of TORCH_DISTRIBUTED_DEBUG=DETAIL tell of shapes, beyond that they differ: who passed which, and
// whose is the odd one where most ranks agree. `sample` is the report that is cited.
void TellReportedShapes(const Case& facts, const Event& sample, Finding& finding);
// The same of operations: "rank 0 called reduce at #13, where ranks 1-3 called all_reduce".
void TellReportedOperations(const Case& facts, const Event& sample, Finding& finding);

}  // namespace tacet
