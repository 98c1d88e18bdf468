// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_import.h"

#include <algorithm>

#include "base/large_pages.h"
#include "base/parallel.h"

namespace tacet {
namespace {

static_assert(kNoStamp == kNoTime);

// A chunk and what is read from it stay in a core's cache.
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kChunksAtOnce = 16;
constexpr size_t kMaxEvents = 2'000'000;
constexpr size_t kMaxRanksInProcess = 64;  // GPUs that one process can drive

struct FunctionTraits {
  OpKind kind = OpKind::unknown;
  bool reduces = false, has_root = false;
};
// By NcclFunction.
constexpr FunctionTraits kTraits[kNcclFunctions] = {
    {},
    {OpKind::all_reduce, true, false},
    {OpKind::all_gather, false, false},
    {OpKind::reduce_scatter, true, false},
    {OpKind::broadcast, false, true},
    {OpKind::reduce, true, true},
    {OpKind::all_to_all, false, false},
    {OpKind::gather, false, true},
    {OpKind::scatter, false, true},
    {OpKind::send, false, true},
    {OpKind::recv, false, true},
    {},
};
const FunctionTraits& TraitsOf(NcclFunction function) { return kTraits[static_cast<size_t>(function)]; }

// NCCL prints elements; the short forms of documents print bytes.
int64_t ElementsOf(const NcclCall& call, DataType type) {
  if (call.count >= 0) return call.count;
  const int size = BytesOf(type);
  return call.bytes >= 0 && size > 0 && call.bytes % size == 0 ? call.bytes / size : -1;
}

}  // namespace

void ReadNcclLog(const FileView& file, Fragment& out) { NcclLogImport(file, out).Run(); }

void NcclLogImport::Run() {
  for (int i = 0; i < kNcclFunctions; ++i) names_[i] = out_.strings.Intern(Name(static_cast<NcclFunction>(i)));
  out_.bytes = {};
  out_.bytes.total = file_.bytes.size();
  const std::vector<std::string_view> parts = SplitLines(file_.bytes, kChunkBytes);
  std::vector<NcclLogChunk> chunks(std::min(parts.size(), kChunksAtOnce));
  ParallelInOrder(
      parts.size(), chunks.size(), [&](size_t i) { chunks[i % chunks.size()].Read(parts[i]); },
      [&](size_t i) { TakeChunk(chunks[i % chunks.size()]); });
  Finish();
}

constexpr size_t kFreeProcesses = 16384, kBytesPerProcess = 512;

void NcclLogImport::TakeChunk(NcclLogChunk& chunk) {
  out_.bytes.ignored += chunk.ignored_bytes;
  out_.bytes.not_understood += chunk.foreign_bytes;
  // Lines before the chunk's first message may go on the last message of the chunk before.
  (in_several_lines_ ? out_.bytes.ignored : out_.bytes.not_understood) += chunk.perhaps_continued_bytes;
  if (chunk.has_messages) in_several_lines_ = chunk.in_several_lines;
  writer_of_chunk_.clear();
  // A process takes most of a kilobyte, and a line of 25 characters is enough to name one; whoever logs writes more.
  const size_t most = kFreeProcesses + file_.bytes.size() / kBytesPerProcess;
  for (const NcclWriter& writer : chunk.writers) {
    const uint32_t index = writers_.Take(writer);
    writer_of_chunk_.push_back(index < most ? index : NcclWriterTable::kNone);
  }
  for (NcclChunkLine& read : chunk.lines) {
    NcclLogLine& line = read.line;
    line.number += lines_before_;
    line.offset += offset_before_;
    switch (ReadLine(read, chunk)) {
      case Use::understood: out_.bytes.understood += line.bytes; break;
      case Use::ignored: out_.bytes.ignored += line.bytes; break;
      case Use::not_understood: out_.bytes.not_understood += line.bytes; break;
    }
  }
  lines_before_ += chunk.line_count;
  offset_before_ += chunk.bytes;
}

NcclLogImport::Use NcclLogImport::ReadLine(NcclChunkLine& read, const NcclLogChunk& chunk) {
  NcclLogLine& line = read.line;
  if (line.kind == NcclLineKind::version) return ReadVersion(line, kNobody);
  line.writer = writer_of_chunk_[line.writer];
  if (line.writer == NcclWriterTable::kNone) return Use::not_understood;
  Process& process = ProcessOf(line);
  if (line.wall_ns != kNoStamp) process.last_wall_ns = line.wall_ns;
  if (line.level == NcclLevel::warn) {
    SettleError(process, false);
    return ReadWarning(line, false);
  }
  const NcclTopic topic = read.topic;
  if (process.error_code >= 0 && topic != NcclTopic::propagation)
    SettleError(process,
                topic == NcclTopic::net_fallback || topic == NcclTopic::interfaces || topic == NcclTopic::network);
  if (topic == NcclTopic::call || topic == NcclTopic::api_call)
    return read.call_fits ? ReadCall(line, read.call, topic == NcclTopic::api_call) : Use::not_understood;
  if (read.connection != NcclChunkLine::kNoConnection) return TakeConnection(line, chunk.connections[read.connection]);
  return ReadMessage(line, topic);
}

NcclLogImport::Use NcclLogImport::ReadMessage(const NcclLogLine& line, NcclTopic topic) {
  switch (topic) {
    case NcclTopic::ignored: return Use::ignored;
    case NcclTopic::topology:
      if (channels_.TakePlace(line, ProcessOf(line).comm)) return Use::understood;
      return ReadWarning(line, true);
    case NcclTopic::net_remark: return channels_.TakeNetRemark(line) ? Use::understood : ReadWarning(line, true);
    case NcclTopic::call:
    case NcclTopic::api_call: break;  // has been read
    case NcclTopic::call_done: return ReadDone(line);
    case NcclTopic::init: return ReadInit(line, false);
    case NcclTopic::api_init: return ReadInit(line, true);
    case NcclTopic::comm_end: return ReadCommEnd(line);
    case NcclTopic::comm_hash: return ReadCommHash(line);
    case NcclTopic::comm_shape: return ReadCommShape(line);
    case NcclTopic::graph: return ReadGraph(line);
    case NcclTopic::tuning_row: return ReadTuningRow(line);
    case NcclTopic::choice: return ReadChoice(line);
    case NcclTopic::version: return ReadVersion(line, SpeakerOf(line));
    case NcclTopic::environment: return ReadEnvironment(line);
    case NcclTopic::network: return ReadNetwork(line);
    case NcclTopic::interfaces: return ReadDevices(line, true);
    case NcclTopic::devices: return ReadDevices(line, false);
    case NcclTopic::no_device: return ReadNoDevice(line);
    case NcclTopic::driver: return ReadDriver(line);
    case NcclTopic::gpu_direct: return ReadGpuDirect(line);
    case NcclTopic::connection: return ReadConnection(line);
    case NcclTopic::propagation: return ReadPropagation(line);
    case NcclTopic::net_fallback: return Use::understood;
    case NcclTopic::kernel_trace: return ReadKernelTrace(line);
    case NcclTopic::abort_called: ProcessOf(line).aborting = true; return Use::understood;
    case NcclTopic::perhaps: return ReadWarning(line, true);
  }
  return Use::ignored;
}

NcclLogImport::Process& NcclLogImport::ProcessOf(const NcclLogLine& line) {
  while (processes_.size() <= line.writer) {
    processes_.emplace_back();
    AddSpeaker(static_cast<uint32_t>(processes_.size() - 1));
  }
  return processes_[line.writer];
}

uint32_t NcclLogImport::AddSpeaker(uint32_t process) {
  const NcclWriter& writer = writers_.all()[process];
  Speaker speaker;
  speaker.host = writer.host;
  speaker.pid = writer.pid;
  out_.speakers.push_back(std::move(speaker));
  voices_.emplace_back();
  voices_.back().process = process;
  const auto index = static_cast<uint32_t>(out_.speakers.size() - 1);
  processes_[process].speakers.push_back(index);
  return index;
}

// Which of a process's ranks a communicator belongs to. A process that takes two places in one communicator, as after
// ncclCommInitAll, drives several GPUs: each is a rank of its own.
uint32_t NcclLogImport::SpeakerFor(uint32_t process, const Communicator& comm) {
  const std::vector<uint32_t>& own = processes_[process].speakers;
  const auto is_seated = [&](uint32_t speaker) { return seats_.contains(MixHash(MixHash(comm.id, process), speaker)); };
  const uint64_t place = MixHash(MixHash(comm.id, process), uint64_t{0x100000000} + static_cast<uint32_t>(comm.rank));
  if (comm.id == 0) {  // releases that print no id: another device is another rank
    for (const uint32_t speaker : own)
      if (out_.speakers[speaker].device == comm.device || out_.speakers[speaker].device < 0) return speaker;
    return comm.device >= 0 && own.size() < kMaxRanksInProcess ? AddSpeaker(process) : own.front();
  }
  if (const auto found = seats_.find(place); found != seats_.end()) return found->second;
  uint32_t chosen = kNobody;
  for (const uint32_t speaker : own) {
    if (is_seated(speaker)) continue;
    const bool fits = own.size() == 1 || out_.speakers[speaker].device == comm.device;
    if (fits || chosen == kNobody) chosen = speaker;
    if (fits) break;
  }
  if (chosen == kNobody) chosen = own.size() < kMaxRanksInProcess ? AddSpeaker(process) : own.front();
  seats_.emplace(place, chosen);
  seats_.emplace(MixHash(MixHash(comm.id, process), chosen), chosen);
  return chosen;
}

GroupIndex NcclLogImport::GroupOf(Communicator& comm) {
  if (comm.group != GroupIndex::none) return comm.group;
  if (comm.id != 0) {
    const auto [begin, end] = group_by_id_.equal_range(comm.id);
    for (auto it = begin; it != end; ++it) {
      Group& known = out_.groups[static_cast<uint32_t>(it->second)];
      if (known.size != comm.nranks) continue;
      known.hidden_id = known.hidden_id && !comm.printed;
      return comm.group = it->second;
    }
  }
  comm.group = static_cast<GroupIndex>(out_.groups.size());
  Group group;
  group.comm_id = comm.id;
  group.hidden_id = !comm.printed;
  group.parent_comm_id = comm.parent_id;
  group.size = comm.nranks;
  group.description = comm.name;
  out_.groups.push_back(std::move(group));
  if (comm.id != 0) group_by_id_.emplace(comm.id, comm.group);
  return comm.group;
}

NcclLogImport::Use NcclLogImport::ReadCall(const NcclLogLine& line, const NcclCall& record, bool from_api) {
  if (record.function == NcclFunction::one_sided) return Use::ignored;  // it has no place in a group's order
  Process& process = processes_[line.writer];
  uint32_t index = process.comm;
  if (index == CommunicatorTable::kNone || comms_[index].address != record.comm ||
      comms_[index].writer != line.writer) {
    index = comms_.FindOrAdd(line.writer, record.comm);
    if (comms_[index].group == GroupIndex::none && !comms_[index].init_seen)
      comms_[index].speaker = process.speakers.front();
    process.comm = index;
  }
  Communicator& comm = comms_[index];
  if (comm.nranks < 0) comm.nranks = record.nranks;
  if (comm.device < 0 && !comm.init_seen) comm.device = line.device;
  process.calls_are_logged = true;
  Voice& voice = voices_[comm.speaker];
  std::vector<Call>& calls = from_api ? voice.api_calls : voice.calls;
  if (calls.size() == calls.capacity()) Grow(calls, line.offset);
  Call& call = calls.emplace_back();
  const FunctionTraits& traits = TraitsOf(record.function);
  const bool p2p = traits.kind == OpKind::send || traits.kind == OpKind::recv;
  call.kind = traits.kind;
  call.seq = ++(from_api ? comm.api_issued : comm.issued)[p2p ? 1 : 0];
  call.group = comm.group != GroupIndex::none ? comm.group : GroupOf(comm);
  call.state = CallState::enqueued;
  call.flags = p2p ? kPointToPoint : 0;
  call.type = DataTypeFromNccl(record.data_type);
  if (traits.reduces) call.reduction = ReduceOpFromNccl(record.reduction);
  if (traits.has_root) call.peer = GroupRank{record.root};
  call.in_elements = ElementsOf(record, call.type);
  call.enter_wall_ns = line.wall_ns;
  call.name = names_[static_cast<size_t>(record.function)];
  call.record = static_cast<uint32_t>(record.op_count);
  if (!p2p && !from_api) {
    comm.calls_since_choice = comm.chosen_since_call ? 1 : comm.calls_since_choice + 1;
    comm.chosen_since_call = false;
    comm.last_type = call.type;
    comm.last_reduction = call.reduction;
  }
  call.thread = ThreadOf(process, line.tid);
  call.line = line.number;
  call.offset = line.offset;
  return Use::understood;
}

// Threads are numbered from 1 as they first issue; a process that uses more than can be told apart shares the last.
uint8_t NcclLogImport::ThreadOf(Process& process, int64_t tid) {
  for (size_t i = 0; i < process.threads.size(); ++i)
    if (process.threads[i] == tid) return static_cast<uint8_t>(i + 1);
  if (process.threads.size() < UINT8_MAX - 1) process.threads.push_back(tid);
  return static_cast<uint8_t>(process.threads.size());
}

// What the rest of the file will bring is known about: calls come as evenly as lines. Room that stays unused costs no
// memory, while copying a few hundred megabytes as lists double costs time.
void NcclLogImport::Grow(std::vector<Call>& calls, uint64_t offset) const {
  size_t wanted = std::max<size_t>(64, calls.size() * 2);
  if (calls.size() >= 4096) {
    const double expected =
        static_cast<double>(calls.size()) * (static_cast<double>(file_.bytes.size()) / static_cast<double>(offset));
    wanted = std::max(wanted, std::min(calls.size() * 16, static_cast<size_t>(expected * 1.02)));
  }
  calls.reserve(wanted);
  PreferLargePages(calls.data(), calls.capacity() * sizeof(Call));
}

// AllReduce: opCount 1e DONE
NcclLogImport::Use NcclLogImport::ReadDone(const NcclLogLine& line) {
  constexpr size_t kLookBack = 4096;  // operations in flight
  NcclCall record;
  if (!ParseCall(line.message, &record)) return Use::not_understood;
  for (const uint32_t speaker : ProcessOf(line).speakers) {
    std::vector<Call>& calls = voices_[speaker].calls;
    const size_t oldest = calls.size() > kLookBack ? calls.size() - kLookBack : 0;
    for (size_t i = calls.size(); i-- > oldest;) {
      Call& call = calls[i];
      if (call.record != static_cast<uint32_t>(record.op_count) || call.kind != TraitsOf(record.function).kind)
        continue;
      call.state = CallState::completed;
      call.finish_wall_ns = line.wall_ns;
      voices_[speaker].tells_finish = true;
      return Use::understood;
    }
  }
  return Use::not_understood;
}

NcclLogImport::Use NcclLogImport::ReadInit(const NcclLogLine& line, bool from_api) {
  NcclInit init;
  if (!(from_api ? ParseApiInit(line.message, &init) : ParseInit(line.message, &init))) return Use::not_understood;
  Process& process = ProcessOf(line);
  const uint32_t index = comms_.Initialise(line.writer, init, process.minor_release);
  const uint32_t speaker = SpeakerFor(line.writer, comms_[index]);
  Communicator& comm = comms_[index];
  comm.speaker = speaker;
  TakeLooseTransports(line, init, index);
  if (!from_api) channels_.TakeInit(line, index, init.complete, process.tells_init_start);
  if (!from_api) BeginOrEndSetup(line, init, index);
  if (out_.speakers[speaker].device < 0) out_.speakers[speaker].device = comm.device;
  const bool again = init.complete && comm.completed && !comm.destroyed && from_api != comm.completed_by_api;
  if (init.complete) {
    comm.completed = true;
    comm.completed_by_api = from_api;
  }
  if (again) return Use::understood;  // the CALL level tells what the INIT subsystem has told
  comm.destroyed = false;
  if (Event* event = AddEvent(init.complete ? EventKind::init_completed : EventKind::init_started, line, speaker)) {
    event->comm = comm.id != 0 ? comm.id : comm.address;
    event->group_rank = GroupRank{comm.rank};
    event->Make<CommunicatorSetup>() = {comm.nranks, comm.device, comm.bus_id};
    if (!init.complete) comm.start_event = static_cast<uint32_t>(out_.events.size() - 1);
  }
  return Use::understood;
}

// Connections are printed before the line that completes the communicator, by the same thread. Where no line has
// announced it, they can be given to it only now.
void NcclLogImport::TakeLooseTransports(const NcclLogLine& line, const NcclInit& init, uint32_t index) {
  Process& process = processes_[line.writer];
  process.comm = index;
  if (!init.complete) process.tells_init_start = true;
  const Communicator& comm = comms_[index];
  for (auto& [tid, event] : process.loose_transports) {
    if (tid != line.tid || event >= out_.events.size()) continue;
    out_.events[event].comm = comm.id != 0 ? comm.id : comm.address;
    out_.events[event].speaker = comm.speaker;
  }
  process.loose_transports.clear();
}

NcclLogImport::Use NcclLogImport::ReadCommEnd(const NcclLogLine& line) {
  NcclCommEnd end;
  if (!ParseCommEnd(line.message, &end)) return Use::not_understood;
  const uint32_t index = comms_.FindOrAdd(line.writer, end.comm);
  Communicator& comm = comms_[index];
  if (!comm.init_seen && comm.group == GroupIndex::none) comm.speaker = SpeakerOf(line);
  if (comm.rank < 0) comm.rank = end.rank;
  if (comm.nranks < 0) comm.nranks = end.nranks;
  const bool destroy = end.kind == NcclCommEnd::Kind::destroy;
  const bool first = destroy ? !comm.destroyed : !comm.aborted;
  if (destroy && !end.complete) return Use::understood;
  (destroy ? comm.destroyed : comm.aborted) = true;
  if (!destroy) ProcessOf(line).aborting = true;
  Voice& voice = voices_[comm.speaker];
  voice.last_end = {FileId{0}, line.number, line.offset};
  voice.last_end_wall_ns = line.wall_ns;
  if (!first) return Use::understood;  // START has told it
  if (Event* event = AddEvent(destroy ? EventKind::comm_destroyed : EventKind::comm_aborted, line, comm.speaker)) {
    event->comm = comm.id != 0 ? comm.id : comm.address;
    event->group_rank = GroupRank{comm.rank};
    const bool abort = end.kind == NcclCommEnd::Kind::abort;
    event->Make<CommunicatorEnd>() = {comm.nranks, destroy ? "destroy" : abort ? "abort" : "revoke"};
  }
  return Use::understood;
}

// A profiler plugin prints the hash that NCCL itself gave the communicator being set up, and its name.
NcclLogImport::Use NcclLogImport::ReadCommHash(const NcclLogLine& line) {
  NcclCommHash record;
  if (!ParseCommHash(line.message, &record)) return Use::not_understood;
  const uint32_t index = ProcessOf(line).comm;
  if (index == CommunicatorTable::kNone) return Use::ignored;
  Communicator& comm = comms_[index];
  const bool fits = comm.group == GroupIndex::none && comm.init_seen && !comm.completed && comm.rank == record.rank &&
                    comm.nranks == record.nranks;
  if (!fits || record.hash == 0) return Use::ignored;
  if (comm.start_event < out_.events.size()) out_.events[comm.start_event].comm = record.hash;
  comm.id = record.hash;
  comm.printed = true;
  if (record.name != "(null)") comm.name = record.name;
  return Use::understood;
}

Event* NcclLogImport::AddEvent(EventKind kind, const NcclLogLine& line, uint32_t speaker, std::vector<Event>* to) {
  std::vector<Event>& events = to ? *to : out_.events;
  if (events.size() >= kMaxEvents) {
    ++events_left_out_;
    return nullptr;
  }
  Event& event = events.emplace_back();
  event.kind = kind;
  event.speaker = speaker;
  event.wall_ns = line.wall_ns;
  event.source = {FileId{0}, line.number, line.offset};
  if (speaker != kNobody) event.pid = out_.speakers[speaker].pid;
  return &event;
}

}  // namespace tacet
