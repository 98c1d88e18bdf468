// SPDX-License-Identifier: Apache-2.0
#include "evidence/black_box/black_box_import.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "evidence/black_box/black_box_parse.h"

namespace tacet {
namespace {

OpKind KindOf(box::Kind kind) {
  using box::Kind;
  switch (kind) {
    case Kind::all_reduce: return OpKind::all_reduce;
    case Kind::all_gather: return OpKind::all_gather;
    case Kind::reduce_scatter: return OpKind::reduce_scatter;
    case Kind::broadcast: return OpKind::broadcast;
    case Kind::reduce: return OpKind::reduce;
    case Kind::all_to_all: return OpKind::all_to_all;
    case Kind::gather: return OpKind::gather;
    case Kind::scatter: return OpKind::scatter;
    case Kind::send: return OpKind::send;
    case Kind::recv: return OpKind::recv;
    default: return OpKind::unknown;
  }
}

DataType TypeOf(box::Type type) {
  using box::Type;
  switch (type) {
    case Type::int8: return DataType::int8;
    case Type::uint8: return DataType::uint8;
    case Type::int32: return DataType::int32;
    case Type::uint32: return DataType::uint32;
    case Type::int64: return DataType::int64;
    case Type::uint64: return DataType::uint64;
    case Type::float16: return DataType::float16;
    case Type::float32: return DataType::float32;
    case Type::float64: return DataType::float64;
    case Type::bfloat16: return DataType::bfloat16;
    case Type::float8_e4m3: return DataType::float8_e4m3;
    case Type::float8_e5m2: return DataType::float8_e5m2;
    default: return DataType::unknown;
  }
}

TaskState StateOf(box::SightState state) {
  using box::SightState;
  switch (state) {
    case SightState::running: return TaskState::running;
    case SightState::stopped: return TaskState::stopped;
    case SightState::uninterruptible: return TaskState::uninterruptible;
    case SightState::zombie: return TaskState::zombie;
    case SightState::gone: return TaskState::gone;
    default: return TaskState::unknown;
  }
}

int64_t TimeOf(const BlackBox& box, uint64_t ticks) {
  const int64_t wall = box.clock.WallNs(ticks);
  return wall == kNoBoxTime ? kNoTime : wall;
}

// A char array that may lack its end, with nothing a terminal could trip over.
template <size_t n>
std::string TextOf(const char (&text)[n]) {
  std::string out(text, strnlen(text, n));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

int64_t ElementsOf(uint64_t count, int64_t times) {
  int64_t elements = 0;
  if (count > INT64_MAX || __builtin_mul_overflow(static_cast<int64_t>(count), times, &elements)) return -1;
  return elements;
}

bool IsReplay(const box::Op& op) { return (op.flags & box::kOpGraphReplay) != 0 && !IsPointToPoint(KindOf(op.kind)); }

// An id for the replays on a communicator that all its members come to.
uint64_t ReplaysOf(uint64_t comm_id) { return comm_id ^ 0x5265706c61797321u; }

class Importer {
 public:
  Importer(const BlackBox& box, Fragment& out) : box_(box), out_(out) {}

  void Import() {
    Speak();
    for (const BlackBoxComm& comm : box_.comms) AddGroup(comm.comm.comm_id, &comm.comm);
    OpenStream();
    SetGpuClock();
    // Beside graphs NCCL plans even plain calls when the GPU gets to them: until then they stand behind all replays.
    for (const BlackBoxOp& op : box_.ops)
      if (!IsQueuedBesideGraphs(op)) ImportOp(op);
    for (const BlackBoxOp& op : box_.ops)
      if (IsQueuedBesideGraphs(op)) ImportOp(op);
    Stream().progress = std::move(progress_);
    Complain();
  }

 private:
  CallStream& Stream() { return out_.streams.back(); }

  void Speak() {
    const box::Header& header = box_.header;
    Speaker& speaker = out_.speakers.emplace_back();
    if (header.rank >= 0) {
      speaker.rank = {header.rank};
      speaker.rank_certainty = Certainty::stated;
    }
    speaker.host = TextOf(header.host);
    speaker.pid = header.pid > 0 ? header.pid : -1;
    speaker.gpu_uuid = TextOf(header.gpu_uuid);
    speaker.world_size = header.world_size > 0 ? header.world_size : -1;
    for (const BlackBoxComm& comm : box_.comms)
      if (comm.comm.device >= 0) speaker.device = comm.comm.device;
    Pulse& pulse = out_.pulses.emplace_back();
    pulse.pid = speaker.pid;
    pulse.start_jiffies = header.process_start_jiffies;
    pulse.last_beat_wall_ns = TimeOf(box_, header.heartbeat_ticks);
    pulse.interval_ns = header.heartbeat_ms > 0 ? int64_t{header.heartbeat_ms} * 1'000'000 : -1;
    pulse.ended = header.end_state == box::EndState::exited;
    pulse.source.offset = __builtin_offsetof(box::Header, heartbeats);
    NoteEnd();
    NoteSights();
  }

  void NoteSights() {
    for (const box::Sight& seen : box_.header.sights) {
      const TaskState state = StateOf(seen.state);
      if (state == TaskState::unknown || seen.pid <= 0) continue;
      Sight& sight = out_.sights.emplace_back();
      sight.rank = {seen.rank >= 0 ? seen.rank : -1};
      sight.pid = seen.pid;
      sight.start_jiffies = seen.process_start_jiffies;
      sight.state = state;
      sight.since_wall_ns = seen.since_wall_ns > 0 ? seen.since_wall_ns : kNoTime;
      sight.seen_wall_ns = seen.seen_wall_ns > 0 ? seen.seen_wall_ns : kNoTime;
      sight.source.offset =
          static_cast<uint64_t>(reinterpret_cast<const char*>(&seen) - reinterpret_cast<const char*>(&box_.header));
    }
  }

  // exit() alone says little: an uncaught exception ends in it, too. With all communicators finalized it was an orderly
  // end.
  void NoteEnd() {
    const auto finalized = [](const BlackBoxComm& comm) { return (comm.comm.word & box::kCommLive) == 0; };
    if (!out_.pulses.back().ended || box_.comms.empty() || !std::ranges::all_of(box_.comms, finalized)) return;
    Event& event = out_.events.emplace_back();
    event.kind = EventKind::process_finished;
    event.Make<ProcessFinish>();
    event.wall_ns = TimeOf(box_, box_.header.end_ticks);
    event.pid = out_.speakers.back().pid;
    event.text = "the process finalized all communicators and exited by itself";
    event.source.offset = __builtin_offsetof(box::Header, end_state);
  }

  // Several slots may hold one communicator, when a job makes it again after destroying it.
  GroupIndex AddGroup(uint64_t comm_id, const box::Comm* comm) {
    const auto [found, fresh] = groups_.emplace(comm_id, static_cast<GroupIndex>(out_.groups.size()));
    if (!fresh) return found->second;
    Group& group = out_.groups.emplace_back();
    group.comm_id = comm_id;
    group.hidden_id = true;
    GroupProgress& progress = progress_.emplace_back();
    progress.group = found->second;
    if (comm == nullptr) return found->second;
    group.description = TextOf(comm->name);
    group.size = comm->size > 0 ? comm->size : -1;
    if (comm->rank >= 0 && comm->rank < comm->size && box_.header.rank >= 0)
      group.places.push_back({{comm->rank}, {box_.header.rank}});
    return found->second;
  }

  // Replays have numbers of their own, and so a group of their own.
  GroupIndex GroupOf(const box::Op& op, const box::Comm* comm) {
    const GroupIndex calls = AddGroup(op.comm_id, comm);
    if (!IsReplay(op)) return calls;
    const GroupIndex replays = AddGroup(ReplaysOf(op.comm_id), comm);
    Group& group = out_.groups[static_cast<uint32_t>(replays)];
    group.replays_of = op.comm_id;
    group.description.clear();
    return replays;
  }

  void OpenStream() {
    CallStream& stream = out_.streams.emplace_back();
    const box::Header& header = box_.header;
    stream.source = CallSource::black_box;
    stream.from_start = !box_.ring_lapped && !box_.cut && Drops(box::Drop::op_table_full) == 0 &&
                        Drops(box::Drop::ring_busy) == 0 && Drops(box::Drop::comm_table_full) == 0;
    const bool kernels = header.api_version >= 3 && (header.event_mask & 0x40) != 0;
    stream.knows_start = stream.knows_finish = kernels;
    stream.cut = box_.cut;
    stream.captured_wall_ns = TimeOf(box_, header.latest[header.clock_updates % 2].ticks);
    stream.calls.reserve(box_.ops.size());
  }

  // Ends are noticed by polling, milliseconds late; the GPU's own clock is exact, and only its distance to the wall
  // clock is not known. The end that was noticed soonest tells it best.
  void SetGpuClock() {
    for (const BlackBoxOp& entry : box_.ops) {
      if (!HasGpuTimes(entry.op)) continue;
      const int64_t noticed = TimeOf(box_, entry.op.finish_ticks);
      int64_t ahead = 0;
      if (noticed == kNoTime || entry.op.gpu_finish_ns > INT64_MAX ||
          __builtin_sub_overflow(noticed, static_cast<int64_t>(entry.op.gpu_finish_ns), &ahead))
        continue;
      gpu_ahead_ns_ = gpu_ahead_ns_ == kNoTime ? ahead : std::min(gpu_ahead_ns_, ahead);
    }
  }
  bool HasGpuTimes(const box::Op& op) const {
    const bool whole = op.issue_ticks != 0 && op.finish_ticks >= op.issue_ticks;
    return box::HasGpuTimes(op, whole ? box_.clock.DurationNs(op.finish_ticks - op.issue_ticks) : -1);
  }
  int64_t GpuTimeOf(uint64_t gpu_ns) const {
    int64_t wall = 0;
    if (gpu_ahead_ns_ == kNoTime || gpu_ns > INT64_MAX ||
        __builtin_add_overflow(gpu_ahead_ns_, static_cast<int64_t>(gpu_ns), &wall))
      return kNoTime;
    return wall;
  }

  uint64_t Drops(box::Drop why) const { return box_.header.drops[static_cast<int>(why)]; }

  void ImportOp(const BlackBoxOp& entry) {
    const box::Op& op = entry.op;
    if ((op.flags & box::kOpCaptured) != 0) return;  // put into a graph; what runs are its replays
    const BlackBoxComm* comm = box_.CommOf(op);
    const GroupIndex group = GroupOf(op, comm == nullptr ? nullptr : &comm->comm);
    const bool ended = box_.HasEnded(entry);
    const Call& call = Stream().calls.emplace_back(MakeCall(entry, group, comm, ended));
    Advance(call);
    Stream().captured_wall_ns = std::max({Stream().captured_wall_ns, call.enter_wall_ns, call.finish_wall_ns});
    if (ended && call.state == CallState::completed)
      Measure(entry, comm, call);
    else if (entry.in_table())
      NoteInFlight(entry, call);
  }

  Call MakeCall(const BlackBoxOp& entry, GroupIndex group, const BlackBoxComm* comm, bool ended) {
    const box::Op& op = entry.op;
    Call call;
    call.group = group;
    call.seq = static_cast<uint32_t>(op.seq);
    call.kind = KindOf(op.kind);
    call.state = ended                     ? CallState::completed
                 : op.channels_started > 0 ? CallState::started
                 : IsGivenUp(entry)        ? CallState::unknown
                                           : CallState::enqueued;
    call.flags = IsPointToPoint(call.kind) ? kPointToPoint : 0;
    call.type = TypeOf(op.type);
    call.peer = {op.peer};
    // NCCL counts what one rank contributes (all_gather) or receives (reduce_scatter).
    const int64_t ranks = comm != nullptr && comm->comm.size > 0 ? comm->comm.size : -1;
    const bool gathers = op.kind == box::Kind::all_gather, scatters = op.kind == box::Kind::reduce_scatter;
    call.in_elements = scatters ? (ranks > 0 ? ElementsOf(op.count, ranks) : -1) : ElementsOf(op.count, 1);
    call.out_elements = gathers ? (ranks > 0 ? ElementsOf(op.count, ranks) : -1) : ElementsOf(op.count, 1);
    call.enter_wall_ns = TimeOf(box_, op.issue_ticks);
    call.start_wall_ns = TimeOf(box_, op.start_ticks);
    if (ended) call.finish_wall_ns = TimeOf(box_, op.finish_ticks);
    if (ended && HasGpuTimes(op))
      call.duration_ms = static_cast<float>(static_cast<double>(op.gpu_finish_ns - op.gpu_start_ns) / 1e6);
    call.record = static_cast<uint32_t>(op.serial);
    call.offset = entry.offset;
    return call;
  }

  bool IsUnplanned(const BlackBoxOp& entry) const {
    return entry.in_table() && (entry.op.flags & box::kOpPlanned) == 0 && (entry.word & box::kWordEnqueued) == 0;
  }

  bool IsQueuedBesideGraphs(const BlackBoxOp& entry) const {
    if (!IsUnplanned(entry)) return false;
    const BlackBoxComm* comm = box_.CommOf(entry.op);
    return comm != nullptr && comm->comm.replays > 0;
  }

  // The host left NCCL without a plan for the operation: the call failed, no GPU will ever get it.
  bool IsGivenUp(const BlackBoxOp& entry) const {
    if (!IsUnplanned(entry) || IsQueuedBesideGraphs(entry)) return false;
    const box::Group* group = box_.GroupOf(entry.op);
    return group != nullptr && static_cast<box::GroupState>(group->word & 0xff) == box::GroupState::done;
  }

  void Advance(const Call& call) {
    if (call.has(kPointToPoint)) return;
    GroupProgress& progress = progress_[static_cast<size_t>(call.group)];
    const int64_t seq = call.seq;
    progress.last_enqueued = std::max(progress.last_enqueued, seq);
    if (call.state >= CallState::started) progress.last_started = std::max(progress.last_started, seq);
    if (call.state == CallState::completed) progress.last_completed = std::max(progress.last_completed, seq);
  }

  void Measure(const BlackBoxOp& entry, const BlackBoxComm* comm, const Call& call) {
    const box::Op& op = entry.op;
    Measurement measured;
    measured.comm = IsReplay(op) ? ReplaysOf(op.comm_id) : op.comm_id;
    if (comm != nullptr) measured.comm_size = comm->comm.size, measured.group_rank = {comm->comm.rank};
    measured.op = call.kind;
    if (call.has(kPointToPoint)) measured.peer = call.peer;
    measured.seq = call.seq;
    measured.bytes = ElementsOf(op.count, BytesOf(call.type));
    const bool by_gpu = HasGpuTimes(op);
    if (by_gpu)
      measured.duration_ns = static_cast<int64_t>(op.gpu_finish_ns - op.gpu_start_ns);
    else if (op.start_ticks != 0 && op.finish_ticks >= op.start_ticks)
      measured.duration_ns = box_.clock.DurationNs(op.finish_ticks - op.start_ticks);
    if (measured.duration_ns < 0) return;  // its end was only implied
    measured.enter_wall_ns = call.enter_wall_ns;
    measured.start_wall_ns = call.start_wall_ns;
    measured.finish_wall_ns = call.finish_wall_ns;
    if (by_gpu && gpu_ahead_ns_ != kNoTime) {
      measured.start_wall_ns = GpuTimeOf(op.gpu_start_ns);
      measured.finish_wall_ns = GpuTimeOf(op.gpu_finish_ns);
    }
    measured.host_timed = !by_gpu;
    measured.source.offset = entry.offset;
    out_.measurements.push_back(measured);
  }

  void NoteInFlight(const BlackBoxOp& entry, const Call& call) {
    const box::Op& op = entry.op;
    InFlight flight;
    flight.group = call.group;
    flight.stream = static_cast<uint32_t>(out_.streams.size() - 1);
    flight.call = static_cast<uint32_t>(Stream().calls.size() - 1);
    flight.seq = call.seq;
    flight.kind = call.kind;
    const bool planned = (op.flags & box::kOpPlanned) != 0;
    flight.channels = planned && (op.flags & box::kOpChannelsAtMost) == 0 ? op.channels : -1;
    flight.channels_started = op.channels_started;
    flight.channels_finished = op.channels_stopped;
    PlaceHost(entry, flight);
    const bool kernel_events = (op.flags & (box::kOpKernelTimed | box::kOpCopyEngine)) == box::kOpKernelTimed;
    flight.tells_end = planned ? kernel_events : flight.host != HostStage::away;
    flight.source.offset = entry.offset;
    const auto slot = static_cast<uint32_t>(op.serial % box_.header.ops.count);
    for (const uint32_t index : box_.ProxiesOf(slot, box::WordGeneration(entry.word)))
      flight.flows.push_back(FlowOf(box_.proxies[index].proxy));
    out_.in_flight.push_back(std::move(flight));
  }

  void PlaceHost(const BlackBoxOp& entry, InFlight& flight) const {
    using box::GroupState;
    const box::Op& op = entry.op;
    if ((entry.word & box::kWordEnqueued) != 0) {
      flight.host = HostStage::away;
      flight.host_since_wall_ns = TimeOf(box_, op.enqueue_ticks);
      return;
    }
    const box::Group* group = box_.GroupOf(op);
    if (group == nullptr) return;
    flight.host_since_wall_ns = TimeOf(box_, group->since_ticks);
    switch (static_cast<GroupState>(group->word & 0xff)) {
      case GroupState::open:
      case GroupState::filled: flight.host = HostStage::in_group; break;
      case GroupState::ending:
      case GroupState::launched: flight.host = HostStage::in_group_end; break;
      case GroupState::launching: flight.host = HostStage::in_launch; break;
      case GroupState::done: flight.host = HostStage::away; break;
      default: break;
    }
  }

  Flow FlowOf(const box::ProxySlot& proxy) const {
    Flow flow;
    flow.peer = {proxy.peer};
    flow.send = (proxy.flags & box::kProxySend) != 0;
    flow.channel = proxy.channel;
    flow.steps_done = static_cast<int32_t>(std::min<uint32_t>(proxy.steps_done, INT32_MAX));
    flow.steps_total = proxy.steps;
    flow.bytes = static_cast<int64_t>(std::min<uint64_t>(proxy.bytes, INT64_MAX));
    flow.progress_wall_ns = TimeOf(box_, proxy.progress_ticks);
    // Steps end in order, so the first one not yet done is what all later ones wait behind.
    const uint64_t lane = proxy.lanes[proxy.steps_done % box::kLanes];
    const uint64_t state = lane >> 56;
    if (state == 0 || state > box::kWaits) return flow;
    flow.waiting_since_wall_ns = TimeOf(box_, box_.header.first.ticks + (lane & box::kLaneTicks));
    switch (box::CauseOf(static_cast<box::Wait>(state - 1))) {
      case box::Cause::own_gpu: flow.waiting = FlowWait::own_gpu; break;
      case box::Cause::peer_credit: flow.waiting = FlowWait::peer_credit; break;
      case box::Cause::network: flow.waiting = FlowWait::network; break;
      case box::Cause::data: flow.waiting = FlowWait::data; break;
    }
    return flow;
  }

  void Complain() {
    if (box_.cut)
      out_.Note(DiagnosticSeverity::warning, "truncated", "the box is shorter than it says; its end is missing", {},
                "copy it again");
    if (box_.torn > 0)
      out_.Note(DiagnosticSeverity::note, "torn-records",
                std::to_string(box_.torn) + " records were being written when the box was copied or its process died");
    const uint64_t lost = Drops(box::Drop::op_table_full) + Drops(box::Drop::ring_busy);
    if (lost > 0)
      out_.Note(DiagnosticSeverity::warning, "operations-lost",
                std::to_string(lost) + " operations did not fit in the box", {}, "give it more room: TACET_BOX_MB");
    if (!box_.clock.ok())
      out_.Note(DiagnosticSeverity::warning, "no-clock", "the box has no usable clock; its times are ignored");
  }

  const BlackBox& box_;
  Fragment& out_;
  std::unordered_map<uint64_t, GroupIndex> groups_;
  std::vector<GroupProgress> progress_;  // by group
  int64_t gpu_ahead_ns_ = kNoTime;       // wall clock minus the GPU's
};

const char* CodeOf(BoxTrouble trouble) {
  switch (trouble) {
    case BoxTrouble::other_version: return "other-version";
    case BoxTrouble::other_byte_order: return "other-byte-order";
    case BoxTrouble::not_ready: return "not-ready";
    case BoxTrouble::bad_layout: return "bad-layout";
    default: return "no-black-box";
  }
}

const char* HintOf(BoxTrouble trouble) {
  switch (trouble) {
    case BoxTrouble::other_version: return "use the tacet that came with the plugin";
    case BoxTrouble::other_byte_order: return "boxes of big-endian machines cannot be read";
    case BoxTrouble::not_ready: return "it is empty; the output of that process shows why it ended so early";
    case BoxTrouble::bad_layout: return "copy it again; if that does not help, something else wrote into it";
    default: return "copy it again, whole";
  }
}

}  // namespace

void ImportBlackBox(const FileView& file, Fragment& out) {
  const BlackBox box = ParseBlackBox(file.bytes);
  out.bytes.total = file.bytes.size();
  if (box.trouble != BoxTrouble::none) {
    out.bytes.not_understood = out.bytes.total;
    out.Note(DiagnosticSeverity::error, CodeOf(box.trouble), box.reason, {}, HintOf(box.trouble));
    return;
  }
  Importer(box, out).Import();
  out.bytes.understood = box.bytes_understood;
  out.bytes.ignored = out.bytes.total - box.bytes_understood - box.bytes_torn;  // empty slots and padding
  out.bytes.not_understood = box.bytes_torn;
}

}  // namespace tacet
