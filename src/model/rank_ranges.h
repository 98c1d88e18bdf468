// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/ids.h"

namespace tacet {

// Members of a group in few words: "0-7", "0-3,8-11", "0,8,...,56" where they are evenly spaced; a long list is cut,
// "0,3,7,... (12 ranks)".
std::string RankRanges(const std::vector<Rank>& ranks);

}  // namespace tacet
