// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/nccl_tests/nccl_tests_command.h"

namespace tacet {

// Views point into the bytes that were parsed, or into NcclTestsOutput::owned. Negative numbers: not told.

struct NcclTestsFigure {
  double time_us = -1, algorithm_gbs = -1, bus_gbs = -1;
  double wrong = -1;                  // elements; before 2.13 the largest difference, see NcclTestsTable::differences
  std::vector<double> iterations_us;  // -J together with -I
  double min_us = -1, median_us = -1, p95_us = -1, p99_us = -1, max_us = -1;
};

struct NcclTestsRow {
  int64_t bytes = -1, elements = -1;
  std::string_view type, redop;  // "float", "sum"; redop is empty or "none" where there is none
  int64_t root = -1;
  NcclTestsFigure out_of_place, in_place;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct NcclTestsDevice {
  int64_t rank = -1, group = -1, pid = -1, device = -1;
  std::string_view host, bus, name;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct NcclTestsTable {
  std::string_view program;  // "all_reduce_perf"; before 2.17 only where the command line was echoed
  std::string_view version;  // "2.19.6"
  int64_t library = -1;      // 22803
  std::vector<NcclTestsDevice> devices;
  std::vector<NcclTestsRow> rows;
  std::string_view algorithm, protocol;  // NCCL_ALGO and NCCL_PROTO of the run, where something tells them
  bool differences = false;  // the column is headed "error": the largest difference, not a number of elements
  bool host_times = false;   // -C 1
  int64_t out_of_bounds = -1;
  int32_t summaries = 0;  // lines that count them: each run prints one
  double average_gbs = -1;
  bool average_failed = false;  // below NCCL_TESTS_MIN_BW
  bool headed = false;          // the heading of its columns is there
  bool concluded = false;
  NcclTestsSettings settings;
  std::string_view label;  // of the launcher: "[1,0]<stdout>:"
  uint32_t command = 0;    // the command line it stands below, from 1
  // So many processes each ran all of this by itself, as rank 0 of its own; 0: one run, as it should be.
  int32_t separate_runs = 0;
  std::string_view failure;     // of "Test NCCL failure common.cu:958 'unhandled system error / ...'"
  std::string_view last_error;  // what NCCL warned of last; harmless where the test concluded
  uint32_t line = 0, summary_line = 0, failure_line = 0;
  uint64_t offset = 0, summary_offset = 0, failure_offset = 0;
};

struct NcclTestsOutput {
  std::vector<NcclTestsTable> tables;
  std::deque<std::string> owned;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
  bool truncated = false;  // JSON that ends early
};

bool IsNcclTestsJson(std::string_view prefix);

// What the tests print, several runs in a row too, between other lines.
NcclTestsOutput ParseNcclTestsText(std::string_view bytes);
// The file of `-J` (2.17 and later).
NcclTestsOutput ParseNcclTestsJson(std::string_view bytes);

// The value of NAME in "NAME=value", "-x NAME=value", "--export=ALL,NAME=value" or "NAME set by environment to value";
// nothing where the line does not set it.
std::string_view SettingIn(std::string_view line, std::string_view name);

// At least three rows in a row whose figures agree with each other: a table without its heading.
bool HasNcclTestsRows(std::string_view text);

// Some line that only nccl-tests write.
bool IsNcclTestsLine(std::string_view line);

}  // namespace tacet
