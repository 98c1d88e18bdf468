// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

struct PerftestRow {
  int64_t bytes = -1, iterations = -1;
  double peak_gbs = -1, average_gbs = -1, messages_per_us = -1;
  double min_us = -1, max_us = -1, typical_us = -1, average_us = -1, p99_us = -1;
  uint32_t line = 0;
  uint64_t offset = 0;
};

// One run of ib_write_bw, ib_send_lat and their like.
struct PerftestTable {
  std::string title;   // "RDMA_Write BW"
  std::string device;  // "mlx5_0"
  std::string link;    // "IB", "Ethernet"
  int64_t mtu = -1;
  std::string client, server;  // "# pair gpu1 gpu2" above it; the test itself names no host
  std::vector<PerftestRow> rows;
  std::string failure;
  bool concluded = false;  // the closing rule was printed
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct PerftestOutput {
  std::vector<PerftestTable> tables;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

bool IsPerftestHeading(std::string_view line);
PerftestOutput ParsePerftestText(std::string_view bytes);
bool IsPerftestJson(std::string_view prefix);
PerftestOutput ParsePerftestJson(std::string_view bytes);

}  // namespace tacet
