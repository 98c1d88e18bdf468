// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "model/incident.h"
#include "rules/finding.h"

namespace tacet {

// A benchmark between the GPUs of a host measured direct access (P2P) and the way over host memory, and the direct one
// is the slower one.
std::optional<Finding> FindSlowPeerAccess(const Incident& incident);

}  // namespace tacet
