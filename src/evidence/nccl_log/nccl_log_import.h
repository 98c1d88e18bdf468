// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "evidence/format.h"
#include "evidence/nccl_log/nccl_log_channels.h"
#include "evidence/nccl_log/nccl_log_chunk.h"
#include "evidence/nccl_log/nccl_log_communicators.h"
#include "evidence/nccl_log/nccl_log_graph.h"
#include "evidence/nccl_log/nccl_log_identity.h"
#include "evidence/nccl_log/nccl_log_line.h"
#include "evidence/nccl_log/nccl_log_trace.h"
#include "model/events/nccl_warnings.h"

namespace tacet {

void ReadNcclLog(const FileView& file, Fragment& out);

inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  // Both may be small numbers that lie close together: each is spread before they meet.
  hash = (hash * 0x9e3779b97f4a7c15u ^ value) * 0xbf58476d1ce4e5b9u;
  return hash ^ (hash >> 29);
}

// Turns the lines of one log into a Fragment.
class NcclLogImport {
 public:
  NcclLogImport(const FileView& file, Fragment& out) : file_(file), out_(out) {}
  void Run();

 private:
  // What became of a line's bytes.
  enum class Use { understood, ignored, not_understood };

  // A process by host and pid. Almost always one rank; a process that drives several GPUs speaks for several.
  struct Process {
    std::vector<uint32_t> speakers;
    uint32_t comm = CommunicatorTable::kNone;  // the one that lines without an address are about
    int minor_release = -1;
    StringId version{};
    NcclTuningInput tuning_input;                                // of the choice that comes next (2.31 and later)
    bool tells_init_start = false;                               // releases before 2.18 print only the end of it
    std::vector<std::pair<int64_t, uint32_t>> loose_transports;  // (thread, event): the init line is still to come
    std::vector<int64_t> threads;                                // that issued calls
    uint32_t transports_told = 0;
    int64_t last_wall_ns = kNoTime;
    bool calls_are_logged = false;  // COLL is among the printed subsystems
    bool aborting = false;
    NcclKernels kernels;
    bool error_told = false;
    int64_t error_code = -1;  // a propagation line that may still turn out harmless
    NcclLogLine error_line;
  };
  struct Voice {  // of a speaker
    uint32_t process = 0;
    std::vector<Call> calls, api_calls;
    bool tells_finish = false;
    // As its proxy thread and the connections that it prints name it; RankEvidence::kSeveral where they name several.
    int32_t proxy_rank = -1;
    SourceRef last_end;  // where its last communicator ended
    int64_t last_end_wall_ns = kNoTime;
  };
  struct OpenSetup {  // what one thread is setting up
    uint32_t setup = CommunicatorTable::kNone;
    NcclTableColumns columns;
    int32_t simple_order = -1;  // the pattern for which no path was found
  };
  struct Repeated {
    uint32_t first_event = 0, kept = 0;
  };

  void TakeChunk(NcclLogChunk& chunk);
  Use ReadLine(NcclChunkLine& read, const NcclLogChunk& chunk);
  Use ReadMessage(const NcclLogLine& line, NcclTopic topic);
  Use ReadCall(const NcclLogLine& line, const NcclCall& record, bool from_api);
  static uint8_t ThreadOf(Process& process, int64_t tid);
  void Grow(std::vector<Call>& calls, uint64_t offset) const;
  Use ReadDone(const NcclLogLine& line);
  Use ReadKernelTrace(const NcclLogLine& line);  // nccl_log_trace.cc
  Use ReadInit(const NcclLogLine& line, bool from_api);
  void TakeLooseTransports(const NcclLogLine& line, const NcclInit& init, uint32_t index);
  Use ReadCommEnd(const NcclLogLine& line);
  Use ReadCommHash(const NcclLogLine& line);
  // nccl_log_import_events.cc
  Use ReadVersion(const NcclLogLine& line, uint32_t speaker);
  Use ReadEnvironment(const NcclLogLine& line);
  Use ReadNetwork(const NcclLogLine& line);
  Use ReadDevices(const NcclLogLine& line, bool are_interfaces);
  void ExcuseUnopened(uint32_t speaker);
  void TellDevices(const NcclLogLine& line, EventKind kind, std::string_view list, DeviceUse use);
  Use ReadNoDevice(const NcclLogLine& line);
  Use ReadNodes(const NcclLogLine& line);
  Use ReadDriver(const NcclLogLine& line);
  Use ReadGpuDirect(const NcclLogLine& line);
  Use ReadConnection(const NcclLogLine& line);
  Use TakeConnection(const NcclLogLine& line, const NcclConnectionLines& lines);
  Use ReadPropagation(const NcclLogLine& line);
  void NotePlace(int64_t rank, uint32_t speaker);
  void NoteProxyRank(const NcclLogLine& line, uint32_t speaker);
  Use ReadWarning(const NcclLogLine& line, bool at_info_level);
  void SettleError(Process& process, bool harmless);

  // nccl_log_import_graph.cc
  uint32_t AddSetup(const NcclLogLine& line, uint32_t comm);
  OpenSetup& OpenSetupOf(const NcclLogLine& line);
  void BeginOrEndSetup(const NcclLogLine& line, const NcclInit& init, uint32_t comm);
  void StartAfresh(const NcclLogLine& line, bool (*is_there)(const NcclSetup&));
  Use ReadCommShape(const NcclLogLine& line);
  Use ReadGraph(const NcclLogLine& line);
  Use ReadTuningRow(const NcclLogLine& line);
  Use ReadChoice(const NcclLogLine& line);
  bool FillChoice(const NcclLogLine& line, Process& process, NcclLoggedChoice* choice);
  void FinishSetups();
  void FinishChannels();

  Process& ProcessOf(const NcclLogLine& line);
  uint32_t AddSpeaker(uint32_t process);
  uint32_t SpeakerOf(const NcclLogLine& line) { return ProcessOf(line).speakers.front(); }
  uint32_t SpeakerFor(uint32_t process, const Communicator& comm);
  GroupIndex GroupOf(Communicator& comm);
  // nullptr once the file has told more than anybody can read. What is known only later goes to late_events_.
  Event* AddEvent(EventKind kind, const NcclLogLine& line, uint32_t speaker, std::vector<Event>* to = nullptr);
  bool IsNew(EventKind kind, uint32_t speaker, std::string_view subject, std::string_view text);

  // nccl_log_import_finish.cc
  void Finish();
  void SettleKernelTraces();  // nccl_log_trace.cc
  void AssumePlaces();
  void NameLargestCommunicators();
  void SettleRanks();
  void PlaceLastProcess(int32_t world);
  void FillGroups();
  void TellFinishedProcesses();
  void MakeStreams();
  void MergeLateEvents();

  const FileView& file_;
  Fragment& out_;
  NcclWriterTable writers_;
  std::vector<uint32_t> writer_of_chunk_;  // a chunk's index of a writer -> ours
  uint64_t offset_before_ = 0;             // of the chunk being taken
  uint32_t lines_before_ = 0;
  bool in_several_lines_ = false;
  CommunicatorTable comms_;
  NcclLogChannels channels_{comms_, out_};
  std::vector<Process> processes_;                // by the walker's writer
  std::vector<Voice> voices_;                     // by speaker
  std::unordered_map<uint64_t, uint32_t> seats_;  // (communicator, process, rank) and (.., speaker) -> speaker
  std::unordered_multimap<uint64_t, GroupIndex> group_by_id_;
  std::unordered_map<uint64_t, uint32_t> transport_event_;
  std::unordered_map<uint64_t, Repeated> warnings_;
  std::vector<uint32_t> unopened_;  // events: adapters that could not be opened by processes that have none so far
  std::unordered_set<uint64_t> told_;
  std::vector<Event> late_events_;
  std::unordered_map<uint64_t, OpenSetup> open_setups_;  // by process and thread
  std::vector<uint32_t> comm_of_setup_;                  // by index into Fragment::nccl_setups
  std::unordered_map<uint64_t, uint32_t> choice_index_;  // a choice's words and setup -> its index there
  StringId file_version_{};
  StringId names_[kNcclFunctions] = {};
  uint64_t events_left_out_ = 0;
};

}  // namespace tacet
