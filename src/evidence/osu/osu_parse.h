// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

struct OsuRow {
  int64_t bytes = -1;
  double time_us = -1, min_us = -1, max_us = -1;
  double gbs = -1;
  bool failed = false;  // the column Validation says Fail
  uint32_t line = 0;
  uint64_t offset = 0;
};

// One program of the OSU micro-benchmarks.
struct OsuTable {
  std::string title;    // "MPI-CUDA Allreduce Latency"
  std::string version;  // "v7.1"
  bool validated = false;
  std::vector<OsuRow> rows;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct OsuOutput {
  std::vector<OsuTable> tables;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

OsuOutput ParseOsu(std::string_view bytes);
// # OSU MPI Bandwidth Test v7.1
bool IsOsuTitle(std::string_view line);

}  // namespace tacet
