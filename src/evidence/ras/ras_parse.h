// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/source_ref.h"

namespace tacet {

enum class RasKind : uint8_t {
  answer,            // an answer begins: text = NCCL version
  job_size,          // count = processes, value = GPUs
  group_row,         // group, count = communicators, size, status, text = errors
  rank_counts,       // one rank that answered (JSON): counts, status, value = init state, value2 = asynchronous error
  rank_absent,       // a rank whose process gave no data for this communicator (JSON, or listed under INCOMPLETE)
  rank_launched,     // op, value = operations launched
  ranks_launched,    // count ranks, not all of them named; op, value
  rank_status,       // status
  ranks_status,      // count ranks, status
  rank_error,        // text = error as written
  ranks_error,       // count ranks, text
  process_silent,    // pid, host, device; pid -1 and count where they are not named
  process_dead,      // the same
  timeouts,          // count
  no_communicators,  // the table was empty
  refusal,           // the server did not accept a command: text
  peer_event,        // monitor: text = event name, status = details; pid, host, device, wall_ns
};

struct RasCount {
  std::string_view op;  // "AllReduce"
  int64_t launched = 0;
  SourceRef source{};  // of JSON; line 0: that of the record
};

// One statement of a RAS answer. Views point into the parsed text; JSON strings are raw (escapes unresolved).
struct RasRecord {
  RasKind kind{};
  SourceRef source;
  uint32_t answer = 0;  // which answer of the file, from 0
  uint64_t comm = 0;
  int32_t group = -1;  // row of the group table
  int32_t size = -1;   // ranks of the communicator
  int32_t rank = -1;   // in the communicator
  int64_t count = -1;
  int64_t value = -1, value2 = -1;
  int64_t pid = -1;
  int32_t device = -1;
  bool unresponsive = false, dead = false;
  int64_t wall_ns = INT64_MIN;  // as if the local time were UTC
  std::string_view op;          // empty: all kinds together
  std::string_view status;
  std::string_view host;
  std::string_view text;
  std::vector<RasCount> counts;
};

struct RasParse {
  std::vector<RasRecord> records;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
  uint64_t first_unknown = UINT64_MAX;  // offset of the first byte that was not understood
  bool truncated = false;               // a JSON answer ends early
};

// Reads a file of one or more RAS answers, as text, as JSON or mixed, with or without the protocol's own lines.
RasParse ParseRas(std::string_view text);

// The line without what a launcher put before it: "3: ", "[1,3]<stdout>:", "[rank3]:", "(pid=71) ", "[pod/x/y] ",
// "pod-3 ".
std::string_view StripRasLinePrefix(std::string_view line);

// "2025-12-19 13:06:53" as nanoseconds, as if it were UTC; INT64_MIN where it is no time.
int64_t ParseRasTime(std::string_view text);

}  // namespace tacet
