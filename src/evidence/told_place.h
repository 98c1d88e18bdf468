// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// Where a sentence says that the job stands still, with its preposition: "at the first weight sync", "in
// `dist.barrier()`", "without NCCL_P2P_DISABLE=1". Empty where it does not say so, denies it, or speaks of its writer
// ("when I use two nodes").
std::string PlaceOfStop(std::string_view line);

// The sentence says that the job stands still, and names a data loader or its workers.
bool StopsInLoader(std::string_view line);

}  // namespace tacet
