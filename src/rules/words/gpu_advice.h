// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// An access out of bounds is a kernel's, and so mostly the program's: the device only tells of it.
bool IsOfAKernel(const Event& lead);

// What helps depends on what failed: an Xid has advice of its own, an illegal access is mostly the program's.
std::vector<std::string> GpuAdvice(const Incident& incident, const Event& lead);

}  // namespace tacet
