// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// What would show which rank makes the others wait, without what was read of all ranks already.
std::string HangCapture(const Case& facts);
// Flight records are PyTorch's own: Horovod, which reports by tensors, keeps none.
bool MayHaveFlightRecords(const Incident& incident);
bool HasAllStacks(const Case& facts);

}  // namespace tacet
