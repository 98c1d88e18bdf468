// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/source_ref.h"
#include "base/string_table.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// How far one rank got with one operation. `enqueued` also covers "the record cannot tell whether it started".
enum class CallState : uint8_t { unknown, enqueued, started, completed };

enum CallFlag : uint8_t {
  kPointToPoint = 1,      // numbered by the group's p2p counter, not by its collective counter
  kCoalescedMember = 2,   // inside a coalesced group: its own state never advances; the closing entry has the truth
  kCoalescedEnd = 4,      // closes a coalesced group
  kRetired = 8,           // the watchdog took it off its list
  kEndedByAbort = 16,     // reads completed, but only because the communicator was aborted after the timeout
};

// One operation that one rank issued on one group. There are millions of these, so the struct stays small: sizes are
// element counts, names and stacks are ids, the source file is the stream's.
struct Call {
  GroupIndex group = GroupIndex::none;
  uint32_t seq = 0;                  // collective or p2p number in its group, the framework's, else counted from 1
  OpKind kind = OpKind::unknown;
  CallState state = CallState::unknown;
  uint8_t flags = 0;                 // CallFlag
  DataType type = DataType::unknown;
  ReduceOp reduction = ReduceOp::unknown;
  uint8_t thread = 0;                // of its process, numbered from 1 as they first issue; 0: not recorded
  GroupRank peer;                    // root of a rooted collective, or the other side of a send/recv
  int64_t in_elements = -1;          // -1: not recorded
  int64_t out_elements = -1;
  int64_t enter_wall_ns = kNoTime;   // the host issued it
  int64_t start_wall_ns = kNoTime;   // somebody noticed that the GPU began it (late by the poll interval)
  int64_t finish_wall_ns = kNoTime;  // somebody noticed that it ended
  float duration_ms = -1;            // GPU time, -1: not recorded
  StackId stack{};                   // call stack at issue
  StringId name{};                   // as the tool wrote it
  StringId shape{};                  // input shape as text, "[[262144]]", empty where unknown
  uint32_t record = 0;               // the tool's own record number
  uint32_t timeout_ms = 0;
  uint32_t line = 0;                 // where in the stream's file
  uint64_t offset = 0;

  bool has(CallFlag flag) const { return (flags & flag) != 0; }
  int64_t Bytes() const { return in_elements < 0 ? -1 : in_elements * BytesOf(type); }
};

enum class CallSource : uint8_t { flight_recorder, nccl_log, inspector, black_box, trace };

// What a tool says of one group as a whole on one rank (Flight Recorder's pg_status). -1: none or not recorded. The numbers
// may come from the p2p counter where the group does both.
struct GroupProgress {
  GroupIndex group = GroupIndex::none;
  int64_t last_enqueued = -1, last_started = -1, last_completed = -1;
};

// All calls of one rank that one tool recorded in one file, in program order (the order of issue on the host).
struct CallStream {
  uint32_t speaker = 0;            // index into Fragment::speakers, later into Incident::processes
  Rank rank;                       // filled by the assembly
  CallSource source = CallSource::flight_recorder;
  FileId file{};
  bool from_start = true;          // nothing before the first call was lost
  bool only_active = false;        // completed calls were left out on purpose
  bool knows_start = false;        // the tool records when the GPU began (timing was on)
  bool knows_finish = false;       // the tool records completion at all
  bool cut = false;                // the file ended early
  bool ended_by_error = false;     // filled by the assembly: the rank lost a peer, so a missing next call is a consequence
  bool stub = false;               // the recorder was off: no calls says nothing
  int64_t captured_wall_ns = kNoTime;  // latest time seen in the record
  std::vector<Call> calls;
  std::vector<GroupProgress> progress;
};

}  // namespace tacet
