// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// One matrix of CUDA's sample p2pBandwidthLatencyTest.
struct P2pTable {
  std::string title;   // "Unidirectional P2P=Enabled Bandwidth (P2P Writes)"
  std::string corner;  // "D\D"; of latencies "GPU" or "CPU": who took the time
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> cells;
  bool is_latency = false;
  bool whole = false;  // as many rows as columns
  uint32_t line = 0;
  uint64_t offset = 0;
};

// "Device=0 CANNOT Access Peer Device=2", or a cell of the connectivity matrix.
struct P2pReach {
  int64_t from = -1, to = -1;
  bool can = false;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct P2pOutput {
  std::vector<P2pReach> reach;
  std::vector<std::string> devices;  // "NVIDIA H100 80GB HBM3"
  std::vector<P2pTable> tables;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

P2pOutput ParseP2pTest(std::string_view bytes);

}  // namespace tacet
