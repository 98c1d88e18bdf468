// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

struct BenchTableRow {
  int64_t bytes = -1;
  double time_us = -1, algorithm_gbs = -1, bus_gbs = -1;
  uint32_t line = 0;
  uint64_t offset = 0;
};

// What people keep of their sweeps: size, time and bandwidth in columns, between blanks, commas, tabs or bars.
struct BenchTable {
  std::vector<BenchTableRow> rows;
  int64_t ranks = -1;     // "# ranks: 16" above it
  std::string operation;  // "# all_reduce" above it
  bool headed = false;    // units by its heading; else by the figures alone
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct BenchTableOutput {
  std::vector<BenchTable> tables;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

BenchTableOutput ParseBenchTables(std::string_view bytes);

// "65536", "64K", "64KiB", "1 MB" of one cell; -1 where it is none.
int64_t ParseTableSize(std::string_view cell);

}  // namespace tacet
