// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/fragment.h"
#include "model/patience.h"

namespace tacet {

// One input file as the report lists it.
struct InputFile {
  std::string path;
  std::string format;
  Rank rank;
  Accounting bytes;
  int64_t modified_wall_ns = kNoTime;
  bool stub = false;
};

// A file that several formats share has all their names: "nccl_log+torch_log".
bool IsReadAs(const InputFile& file, std::string_view format);

// One process of the job: the join of all speakers that are the same.
struct Process {
  Rank rank;
  Certainty rank_certainty = Certainty::none;
  std::string host;
  int64_t pid = -1;
  int32_t device = -1;
  std::vector<FileId> files;  // that speak of it
  bool fails = false;         // see Speaker
  RankClue rank_clue = RankClue::not_told;
  std::string gpu_uuid;  // of its GPU; empty where not told
};

// The whole: everything known of one job, in one set of ids.
struct Incident {
  std::string label;        // tells jobs apart when a folder holds several; empty for one
  int64_t world_size = -1;  // -1 unknown
  bool world_told = false;  // false: the size is no more than the highest rank that was seen, and one
  bool lists_world = true;  // false: the claimed size is out of proportion to the input, see rank_room.h
  std::vector<InputFile> files;
  StringTable strings;
  StackTable stacks;
  std::vector<Process> processes;
  std::map<Rank, uint32_t> process_of;  // rank -> index into processes
  std::vector<Group> groups;
  std::vector<CallStream> streams;  // sorted by (source, rank)
  std::vector<ThreadStack> threads;
  std::vector<Event> events;  // in file order
  std::vector<LaunchCounts> launch_counts;
  std::vector<Measurement> measurements;
  std::vector<Diagnostic> diagnostics;
  std::vector<Timeline> timelines;  // sorted by rank
  std::vector<PipelineTrace> pipeline_traces;
  std::vector<BenchmarkRun> benchmark_runs;
  std::vector<TrainingRecord> training;  // one a process that prints figures of its steps
  std::vector<SurvivedError> survived;   // errors after which the one that printed them went on
  std::vector<EarlierRun> earlier_runs;
  std::vector<LogOutline> outlines;      // one a file whose lines have the shape of a log
  std::vector<InFlight> in_flight;       // of the streams above
  std::vector<Pulse> pulses;             // at most one a rank, sorted by rank
  std::vector<NcclSetup> nccl_setups;    // one a communicator and process that its log tells of, in file order
  std::vector<Transport> transports;     // RankChannels point here; each text once
  std::vector<RankChannels> rank_channels;
  std::vector<NetDevices> net_devices;
  std::vector<Hardware> hardware;
  std::vector<Sight> sights;  // of processes that have a pulse, by rank, witness and time
  Patience patience;          // the limits by which this job is judged

  // Written once, in incident.cc: whoever holds one would else compile all its parts again.
  Incident();
  Incident(Incident&&) noexcept;
  Incident& operator=(Incident&&) noexcept;
  ~Incident();

  std::vector<Rank> RanksSeen() const;  // ranks that some file speaks of, sorted
  std::vector<Rank> AllRanks() const;   // 0..world_size-1, or those seen where that is too many
  const CallStream* StreamOf(Rank rank, CallSource source) const;
  bool HasFileOf(Rank rank, std::string_view format) const;
  std::string_view PathOf(FileId file) const { return files[static_cast<uint32_t>(file)].path; }
};

}  // namespace tacet
