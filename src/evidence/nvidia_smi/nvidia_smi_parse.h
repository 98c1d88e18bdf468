// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// The matrix of `nvidia-smi topo -m`: what lies between each two GPUs and NICs of a host.
struct SmiMatrix {
  std::vector<std::string> columns;                        // "GPU0", "NIC0", or "mlx5_0" in old versions
  std::vector<std::string> rows;                           // the same, as far as they are there
  std::vector<std::vector<std::string>> cells;             // "X", "NV18", "PIX", ...
  std::vector<std::pair<std::string, std::string>> names;  // {"NIC0", "mlx5_0"}
  uint32_t line = 0;
  uint64_t offset = 0;
};
struct SmiOutput {
  std::vector<SmiMatrix> matrices;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};
SmiOutput ParseSmiTopology(std::string_view text);
// True for the head of such a matrix.
bool IsSmiHead(std::string_view line);

}  // namespace tacet
