// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/log_outline.h"
#include "base/string_table.h"
#include "base/training_record.h"
#include "model/benchmark_run.h"
#include "model/call.h"
#include "model/events/event.h"
#include "model/group.h"
#include "model/in_flight.h"
#include "model/measurement.h"
#include "model/nccl_graph.h"
#include "model/pipeline_trace.h"
#include "model/stack.h"
#include "model/timeline.h"
#include "model/topology.h"

namespace tacet {

// How sure a reader is of a rank.
enum class Certainty : uint8_t { none, assumed, stated };

// What an assumed rank is taken from.
enum class RankClue : uint8_t {
  not_told,
  file_name,
  label,       // in front of a line: it may count tasks
  message,     // "[Rank 3]" within a message: it may count within a group
  local_rank,  // the number of a process on its node
};

// Somebody who speaks in a file: a process as that file knows it. A file of one rank has one speaker; a mixed log has
// one for each process. What a file does not say stays empty; the assembly joins speakers of all files into processes.
struct Speaker {
  Rank rank;
  Certainty rank_certainty = Certainty::none;  // assumed: from a file name; stated: the content says so
  std::string host;                            // as written; NCCL cuts it at the first dot
  int64_t pid = -1;
  int32_t device = -1;
  int64_t world_size = -1;
  bool fails = false;  // a line of its own tells of an error, whatever else that line says
  RankClue rank_clue = RankClue::not_told;
  std::string gpu_uuid;  // of its GPU
};

// Bytes of a file: understood + ignored + not_understood == total, always.
struct Accounting {
  uint64_t total = 0;
  uint64_t understood = 0;      // became a record
  uint64_t ignored = 0;         // known, and of no interest
  uint64_t not_understood = 0;  // the rest
};

// All that one file says, in that file's own terms: ids are local to the fragment, nothing is compared with other
// files.
struct Fragment {
  std::string path;  // relative to the argument
  std::string format;
  int64_t modified_wall_ns = kNoTime;
  Accounting bytes;
  StringTable strings;
  StackTable stacks;
  std::vector<Speaker> speakers;
  std::vector<Group> groups;  // CallStream and GroupProgress point here
  std::vector<CallStream> streams;
  std::vector<ThreadStack> threads;
  std::vector<Event> events;
  std::vector<LaunchCounts> launch_counts;
  std::vector<Measurement> measurements;
  std::vector<Diagnostic> diagnostics;
  bool stub = false;        // the file says that nothing was recorded
  bool tops_a_run = false;  // its folder, with all below it, holds one run of one job
  std::vector<Timeline> timelines;
  std::vector<PipelineTrace> pipeline_traces;
  std::vector<BenchmarkRun> benchmark_runs;
  std::vector<TrainingRecord> training;
  std::vector<LogOutline> outlines;
  std::vector<EarlierRun> earlier_runs;
  std::vector<SurvivedError> survived;
  std::vector<InFlight> in_flight;
  std::vector<Pulse> pulses;
  std::vector<Sight> sights;
  std::vector<NcclSetup> nccl_setups;
  std::vector<Transport> transports;  // RankChannels point here
  std::vector<RankChannels> rank_channels;
  std::vector<NetDevices> net_devices;
  std::vector<Hardware> hardware;

  // Written once, in fragment.cc: whoever holds one would else compile all its parts again.
  Fragment();
  Fragment(Fragment&&) noexcept;
  explicit Fragment(const Fragment&);  // by its name only: a fragment may be large
  Fragment& operator=(Fragment&&) noexcept;
  ~Fragment();

  void Note(DiagnosticSeverity severity, std::string code, std::string message, SourceRef source = {},
            std::string hint = "") {
    diagnostics.push_back({severity, std::move(code), std::move(message), source, std::move(hint)});
  }
};

}  // namespace tacet
