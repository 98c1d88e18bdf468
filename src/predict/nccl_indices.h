// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tacet {

// NCCL's tables are arrays; these are their indices, the enums of model/nccl_graph.h as numbers.
inline constexpr int kTree = 0, kRing = 1, kDirect = 2, kChain = 3, kNvls = 4, kNvlsTree = 5, kPat = 6;
inline constexpr int kLl = 0, kLl128 = 1, kSimple = 2;
inline constexpr int kNvlink = 0, kPci = 1, kNet = 2;

}  // namespace tacet
