// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "predict/nccl_cost_model.h"

namespace tacet {

// The two steps of ComputeNcclCosts beside the arithmetic: threads per block, and what settings, paths and hardware
// forbid. Both change `table`.
void FillThreads(const NcclCommunicator& communicator, NcclCostTable& table);
void ApplySwitches(const NcclCommunicator& communicator, NcclCostTable& table);

}  // namespace tacet
