// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// One table of a test: "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)".
struct NvbandwidthTable {
  std::string title;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> cells;  // as printed; NaN for N/A
  bool nanoseconds = false;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct NvbandwidthTest {
  std::string name;  // "device_to_device_memcpy_read_ce"
  std::vector<NvbandwidthTable> tables;
  double sum = -1;      // as printed
  std::string failure;  // "Error: ..."
  bool waived = false, concluded = false;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct NvbandwidthOutput {
  std::string version;               // "v0.8"
  std::vector<std::string> devices;  // "NVIDIA H100 80GB HBM3"
  std::string host;
  std::vector<NvbandwidthTest> tests;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

bool IsNvbandwidthJson(std::string_view prefix);
NvbandwidthOutput ParseNvbandwidthText(std::string_view bytes);
NvbandwidthOutput ParseNvbandwidthJson(std::string_view bytes);

}  // namespace tacet
