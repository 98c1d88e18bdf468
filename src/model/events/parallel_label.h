// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// Servers name their processes by their place in each kind of parallelism: "TP3", "DP0 TP3", "PP1_TP3_EP3". The tensor
// rank is the rank in the engine where the process is of the first replica and stage; otherwise the sizes would have
// to be known. -1 where it cannot be told, or where the text is no such name.
int32_t RankOfParallelLabel(std::string_view label);

}  // namespace tacet
