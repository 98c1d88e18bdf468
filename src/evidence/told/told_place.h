// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// Where a sentence says that the job stands still, with its preposition: "at the first weight sync", "in
// `dist.barrier()`", "without NCCL_P2P_DISABLE=1". Empty where it does not say so, denies it, or speaks of its writer
// ("when I use two nodes").
std::string PlaceOfStop(std::string_view line);

// "while DGL's clients connect to its servers (10.3.1.7:30050)", where a text holds the lines of DGL's start; empty: it
// does not.
std::string PlaceOfDgl(std::string_view text);

// The sentence says that the job stands still, and names a data loader or its workers.
bool StopsInLoader(std::string_view line);

}  // namespace tacet
