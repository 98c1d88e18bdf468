// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/source_ref.h"

namespace tacet {

// One finished operation, as one line of the file tells it. Views point into the text (escapes unresolved). -1 where
// absent.
struct InspectorRecord {
  SourceRef source;
  uint64_t comm = 0;
  std::string_view comm_name;  // "unknown" before the framework names its communicators
  int32_t rank = -1;           // in the communicator
  int32_t ranks = -1;          // size of the communicator
  std::string_view version;    // "v4.0"
  std::string_view host;
  int64_t pid = -1;
  int64_t dumped_us = -1;  // when the line was written
  bool point_to_point = false;
  bool has_operation = false;  // false: a dump_stats record
  std::string_view op;         // "AllReduce", "Send"
  int64_t seq = -1;
  int32_t peer = -1;
  int64_t bytes = -1;
  double duration_us = -1;
  std::string_view timing_source;  // "kernel_gpu", "kernel_cpu", "collective_cpu"; empty in 2.28's first records
  double bus_gbs = -1;
  int64_t enter_us = -1;   // the host issued it
  int64_t start_us = -1;   // first channel's kernel began
  int64_t finish_us = -1;  // last channel's kernel ended
  int64_t dropped = 0;     // dump_stats: operations that were overwritten before they were written
};

enum class InspectorLine : uint8_t { record, blank, foreign, cut };

// Reads one line. `foreign` is not a record of this tool, `cut` one that ends early.
InspectorLine ParseInspectorLine(std::string_view line, InspectorRecord* record);

}  // namespace tacet
