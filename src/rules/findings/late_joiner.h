// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "rules/findings/init_finding.h"
#include "rules/rule.h"

namespace tacet {

// Those of these ranks that tried to reach the store only when it had given up waiting: they came too late, and found
// nobody. Empty unless they are as many as the store counted as missing.
std::vector<Rank> LateJoiners(const Case& facts, const Event& gave_up, const std::vector<Rank>& ranks);

// There is a file of each rank from 1 on, and each says that nothing listens where rank 0 runs the store: rank 0 most
// likely was not started.
std::optional<Finding> FindUnstartedStore(const Case& facts, const InitView& init);

// Of several ranks one alone waits in the store, behind a line that no other prints: it alone made the call that sets
// up another group.
std::optional<Finding> FindLoneGroup(const Case& facts);

}  // namespace tacet
