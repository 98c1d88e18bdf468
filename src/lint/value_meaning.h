// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lint/environment_lint.h"

namespace tacet {

// What a number amounts to, where its name does not tell: the time that NCCL_IB_TIMEOUT=22 means. Empty: nothing to
// add.
std::string MeaningOfValue(const GivenEnvironment& environment, const GivenVariable& variable);

}  // namespace tacet
