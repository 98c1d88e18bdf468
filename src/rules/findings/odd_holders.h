// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/events/event.h"

namespace tacet {

using Holders = std::map<std::string, std::vector<const Event*>>;  // value -> where a rank states it

// The ranks whose value is not that of most ranks, sorted. Ranks count, not lines: a rank states its settings once for
// every communicator. Empty where no value has more ranks than every other: of two halves neither is the odd one.
std::vector<Rank> OddHolders(const Holders& holders);

}  // namespace tacet
