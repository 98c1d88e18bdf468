// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tacet {

// Floating-point operations of one matrix operator by its operand shapes; 0 where the shapes do not tell. A
// multiply-add counts as two. Attention is counted without the causal half, as usual for MFU.
//   aten::mm [[2048, 1024], [1024, 4096]]                          2 * 2048 * 1024 * 4096
//   aten::addmm [[4096], [2048, 1024], [1024, 4096], [], []]       the same; the bias comes first
//   aten::bmm [[64, 512, 64], [64, 64, 512]]                       2 * 64 * 512 * 64 * 512
double MatrixFlops(std::string_view operation, const std::vector<std::vector<int64_t>>& dims);

}  // namespace tacet
