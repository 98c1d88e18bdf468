// SPDX-License-Identifier: Apache-2.0
// NCCL's own account of a communicator: what its searches found, what it expects of each algorithm, what it chose.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_import.h"
#include "evidence/nccl_log/nccl_log_topology.h"

namespace tacet {
namespace {

constexpr size_t kMaxSystemRows = 1 << 16;  // of one communicator; a node has a few hundred
constexpr size_t kMaxGraphRows = 1 << 12;
constexpr size_t kMaxGraphs = 16;
constexpr size_t kMaxBareSetups = 1 << 15;  // of communicators of which only the end of the set-up is told
constexpr size_t kMaxChoices = 500'000;     // different ones, all communicators together

// Which graph a pattern stands for. The chain of CollNet is searched after the tree, with a tree's pattern.
NcclAlgorithm GraphAlgorithm(int32_t pattern, const NcclSetup& setup) {
  if (pattern == kPatternRing) return NcclAlgorithm::ring;
  if (pattern == kPatternNvls) return NcclAlgorithm::nvls;
  if (pattern == kPatternCollNetDirect) return NcclAlgorithm::collnet_direct;
  return setup.GraphOf(NcclAlgorithm::tree) ? NcclAlgorithm::collnet_chain : NcclAlgorithm::tree;
}

}  // namespace

uint32_t NcclLogImport::AddSetup(const NcclLogLine& line, uint32_t comm) {
  const auto index = static_cast<uint32_t>(out_.nccl_setups.size());
  NcclSetup& setup = out_.nccl_setups.emplace_back();
  setup.source = {FileId{0}, line.number, line.offset};
  setup.speaker = SpeakerOf(line);
  comm_of_setup_.push_back(comm);
  if (comm != CommunicatorTable::kNone) comms_[comm].setup = index;
  return index;
}

// One thread sets up one communicator at a time, so what it prints between two init lines is about one of them.
NcclLogImport::OpenSetup& NcclLogImport::OpenSetupOf(const NcclLogLine& line) {
  OpenSetup& open = open_setups_[MixHash(line.writer, static_cast<uint64_t>(line.tid))];
  if (open.setup == CommunicatorTable::kNone) open.setup = AddSetup(line, CommunicatorTable::kNone);
  return open;
}

void NcclLogImport::BeginOrEndSetup(const NcclLogLine& line, const NcclInit& init, uint32_t comm) {
  const uint64_t key = MixHash(line.writer, static_cast<uint64_t>(line.tid));
  if (!init.complete) {
    open_setups_[key] = {};
    open_setups_[key].setup = AddSetup(line, comm);
    return;
  }
  const auto found = open_setups_.find(key);
  const uint32_t open = found == open_setups_.end() ? CommunicatorTable::kNone : found->second.setup;
  if (found != open_setups_.end()) open_setups_.erase(found);
  if (comms_[comm].setup != CommunicatorTable::kNone) return;
  if (open == CommunicatorTable::kNone || comm_of_setup_[open] != CommunicatorTable::kNone) {
    if (out_.nccl_setups.size() < kMaxBareSetups) AddSetup(line, comm);
  } else {
    comm_of_setup_[open] = comm;
    comms_[comm].setup = open;
  }
}

NcclLogImport::Use NcclLogImport::ReadCommShape(const NcclLogLine& line) {
  NcclCommShape shape;
  if (!ParseCommShape(line.message, &shape)) return Use::not_understood;
  Process& process = ProcessOf(line);
  OpenSetup& open = OpenSetupOf(line);
  uint32_t comm = comms_.Find(line.writer, shape.comm);
  if (comm != CommunicatorTable::kNone) process.comm = comm;
  NcclSetup& setup = out_.nccl_setups[open.setup];
  setup.ranks = shape.ranks;
  setup.nodes = shape.nodes;
  setup.local_ranks = shape.local_ranks;
  setup.local_rank = shape.local_rank;
  setup.mnnvl = shape.mnnvl;
  setup.group_rank = GroupRank{shape.rank};
  return ReadNodes(line);
}

NcclLogImport::Use NcclLogImport::ReadGraph(const NcclLogLine& line) {
  const std::string_view message = line.message;
  const SourceRef source{FileId{0}, line.number, line.offset};
  NcclGraphSearch graph;
  if (NcclSystemLine system; ParseSystemLine(message, &system)) {
    StartAfresh(line, [](const NcclSetup& setup) { return setup.max_bw >= 0; });
    NcclSetup& setup = out_.nccl_setups[OpenSetupOf(line).setup];
    setup.max_bw = system.max_bw;
    setup.total_bw = system.total_bw;
    setup.system_source = source;
    return Use::understood;
  }
  if (ParseGraphSearch(message, &graph)) {
    if (graph.pattern == kPatternRing)
      StartAfresh(line, [](const NcclSetup& setup) { return setup.GraphOf(NcclAlgorithm::ring) != nullptr; });
    OpenSetup& open = OpenSetupOf(line);
    NcclSetup& setup = out_.nccl_setups[open.setup];
    if (setup.graphs.size() >= kMaxGraphs) return Use::not_understood;
    graph.algorithm = GraphAlgorithm(graph.pattern, setup);
    graph.simple_order = std::exchange(open.simple_order, -1) == graph.pattern;
    graph.source = source;
    setup.graphs.push_back(std::move(graph));
    return Use::understood;
  }
  NcclSetup& setup = out_.nccl_setups[OpenSetupOf(line).setup];
  if (NcclGraphRow row; ParseGraphRow(message, &row)) {
    if (setup.graphs.empty() || setup.graphs.back().rows.size() >= kMaxGraphRows) return Use::ignored;
    setup.graphs.back().rows.push_back(out_.strings.Intern(row.devices));
    return Use::understood;
  }
  if (NcclChannelCounts counts; ParseChannelCounts(message, &counts)) {
    setup.coll_channels = counts.coll;
    setup.collnet_channels = counts.collnet;
    setup.nvls_channels = counts.nvls;
    setup.p2p_channels = counts.p2p;
    setup.p2p_channels_per_peer = counts.p2p_per_peer;
    return Use::understood;
  }
  std::vector<StringId>* rows = IsSystemRow(message) ? &setup.system_rows
                                : IsPathRow(message) ? &setup.path_rows
                                                     : nullptr;
  if (rows && setup.graphs.empty() && rows->size() < kMaxSystemRows) {
    if (setup.system_source.line == 0) setup.system_source = {FileId{0}, line.number, line.offset};
    rows->push_back(out_.strings.Intern(message.substr(0, message.find_last_not_of(" \r") + 1)));
    return Use::understood;
  }
  if (ParseThreadThresholds(message, &setup.thread_thresholds)) return Use::understood;
  if (const auto pattern = IntAfter<int32_t>(message, "Could not find a path for pattern ")) {
    OpenSetupOf(line).simple_order = *pattern;
    return Use::understood;
  }
  return Use::ignored;
}

// Where no init lines are printed, a line that can come only once begins the next communicator.
void NcclLogImport::StartAfresh(const NcclLogLine& line, bool (*is_there)(const NcclSetup&)) {
  OpenSetup& open = OpenSetupOf(line);
  const NcclSetup& setup = out_.nccl_setups[open.setup];
  if (is_there(setup) && comm_of_setup_[open.setup] == CommunicatorTable::kNone) {
    open = {};
    open.setup = AddSetup(line, CommunicatorTable::kNone);
  }
}

NcclLogImport::Use NcclLogImport::ReadTuningRow(const NcclLogLine& line) {
  const SourceRef source{FileId{0}, line.number, line.offset};
  OpenSetup& open = OpenSetupOf(line);
  NcclSetup& setup = out_.nccl_setups[open.setup];
  if (NcclTableColumns columns; ParseTableHead(line.message, &columns)) {
    open.columns = columns;
    if (setup.tables.empty()) {
      setup.tables.emplace_back();
      setup.tables.back().source = source;
    }
    return Use::understood;
  }
  int op = -1;
  if (setup.tables.empty() || !ParseTableRow(line.message, open.columns, &setup.tables.back(), &op))
    return Use::ignored;
  if (op >= 0 && setup.tables.back().row_sources[op].line == 0) setup.tables.back().row_sources[op] = source;
  return Use::understood;
}

NcclLogImport::Use NcclLogImport::ReadChoice(const NcclLogLine& line) {
  Process& process = ProcessOf(line);
  if (NcclTuningInput input; ParseTuningInput(line.message, &input)) {
    process.tuning_input = input;
    if (const uint32_t comm = comms_.Find(line.writer, input.comm); comm != CommunicatorTable::kNone)
      process.comm = comm;
    return Use::understood;
  }
  NcclLoggedChoice choice;
  uint32_t setup = CommunicatorTable::kNone;
  if (process.comm != CommunicatorTable::kNone) {
    Communicator& comm = comms_[process.comm];
    if (comm.setup == CommunicatorTable::kNone) AddSetup(line, process.comm);
    setup = comm.setup;
    comm.chosen_since_call = true;
    choice.type = comm.last_type;
    choice.reduction = comm.last_reduction;
    choice.grouped = comm.calls_since_choice > 1;
  } else {
    setup = OpenSetupOf(line).setup;
  }
  // Most choices repeat an earlier one word for word.
  uint64_t key = MixHash(std::hash<std::string_view>()(line.message), setup);
  key = MixHash(key, static_cast<uint64_t>(choice.type) << 16 | static_cast<uint64_t>(choice.reduction) << 8 |
                         static_cast<uint64_t>(choice.grouped));
  if (process.tuning_input.bytes >= 0) key = MixHash(key, static_cast<uint64_t>(process.tuning_input.bytes));
  std::vector<NcclLoggedChoice>& choices = out_.nccl_setups[setup].choices;
  if (const auto found = choice_index_.find(key); found != choice_index_.end()) {
    ++choices[found->second].times;
    process.tuning_input = {};
    return Use::understood;
  }
  if (choice_index_.size() >= kMaxChoices) return Use::ignored;
  if (!FillChoice(line, process, &choice)) return Use::not_understood;
  choice_index_.emplace(key, static_cast<uint32_t>(choices.size()));
  choices.push_back(choice);
  return Use::understood;
}

bool NcclLogImport::FillChoice(const NcclLogLine& line, Process& process, NcclLoggedChoice* choice) {
  choice->times = 1;
  choice->source = {FileId{0}, line.number, line.offset};
  std::string_view kernel;
  if (ParseBestTuning(line.message, choice, &kernel)) {
    const NcclTuningInput input = std::exchange(process.tuning_input, {});
    choice->op = input.op;
    choice->bytes = input.bytes;
    choice->type = DataTypeFromNccl(input.data_type);
    choice->reduction = ReduceOpFromNccl(input.reduction);
    choice->grouped = input.operations > 1;
    choice->kernel = out_.strings.Intern(kernel);
    if (!kernel.empty()) choice->variant = out_.strings.Intern("Symmetric");
    return true;
  }
  NcclChoice record;
  if (!ParseChoice(line.message, &record)) return false;
  choice->op = ParseOpKind(record.function);
  choice->bytes = record.bytes;
  choice->first_channel = record.first_channel;
  choice->last_channel = record.last_channel;
  choice->time_us = record.time_us;
  if (record.variant.empty()) {
    choice->algorithm = ParseNcclAlgorithm(record.algorithm);
    choice->protocol = ParseNcclProtocol(record.protocol);
  } else {
    choice->kernel = out_.strings.Intern(record.algorithm.substr(0, Event::kMaxText));
    choice->variant = out_.strings.Intern(record.variant);
  }
  return true;
}

// Once communicators, ranks and versions are known.
void NcclLogImport::FinishSetups() {
  for (uint32_t i = 0; i < out_.nccl_setups.size(); ++i) {
    NcclSetup& setup = out_.nccl_setups[i];
    const uint32_t index = comm_of_setup_[i];
    if (index != CommunicatorTable::kNone) {
      const Communicator& comm = comms_[index];
      setup.speaker = comm.speaker;
      setup.group = comm.group;
      if (comm.rank >= 0) setup.group_rank = GroupRank{comm.rank};
      if (comm.nranks > 0) setup.ranks = comm.nranks;
      setup.device = comm.device;
      setup.bus_id = out_.strings.Intern(comm.bus_id);
    }
    const Process& process = processes_[voices_[setup.speaker].process];
    setup.version = process.version != StringId{} ? process.version : file_version_;
    setup.host = out_.strings.Intern(out_.speakers[setup.speaker].host);
  }
  // A stray line that only looks like one of these.
  std::erase_if(out_.nccl_setups, [](const NcclSetup& setup) {
    return setup.group == GroupIndex::none && setup.ranks < 0 && setup.graphs.empty() && setup.tables.empty() &&
           setup.choices.empty() && setup.system_rows.empty() && setup.coll_channels < 0;
  });
}

}  // namespace tacet
