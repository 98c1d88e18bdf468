// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <algorithm>

#include "base/redact.h"
#include "evidence/black_box/black_box_import.h"
#include "live/agent/box_watch.h"

namespace tacet {
namespace {

template <size_t n>
std::string CleanText(const char (&text)[n]) {
  std::string out(text, ::strnlen(text, n));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

int64_t AgeOf(int64_t then_ns, int64_t wall_ns) {
  return then_ns == kNoTime || then_ns == kNoBoxTime ? -1 : std::max<int64_t>(0, wall_ns - then_ns);
}

const char* CodeOf(BoxTrouble trouble) {
  switch (trouble) {
    case BoxTrouble::other_version: return "other-version";
    case BoxTrouble::other_byte_order: return "other-byte-order";
    case BoxTrouble::not_ready: return "not-ready";
    case BoxTrouble::bad_layout: return "bad-layout";
    default: return "no-black-box";
  }
}

int64_t BytesIn(int64_t elements, DataType type) {
  int64_t bytes = -1;
  const bool known = elements >= 0 && BytesOf(type) > 0;
  return known && !__builtin_mul_overflow(elements, int64_t{BytesOf(type)}, &bytes) ? bytes : -1;
}

OperationState DescribeOperation(const Fragment& fragment, const InFlight& flight, int64_t wall_ns) {
  OperationState state;
  const Call& call = fragment.streams[flight.stream].calls[flight.call];
  state.comm = fragment.groups[static_cast<size_t>(flight.group)].comm_id;
  state.kind = flight.kind;
  state.seq = flight.seq;
  state.bytes = BytesIn(std::max(call.in_elements, call.out_elements), call.type);
  state.age_ns = std::max<int64_t>(0, AgeOf(call.enter_wall_ns, wall_ns));
  state.channels = flight.channels;
  state.channels_started = flight.channels_started;
  state.channels_finished = flight.channels_finished;
  state.host = flight.host;
  state.tells_end = flight.tells_end;
  state.progress =
      static_cast<uint64_t>(flight.channels_started) << 8 | static_cast<uint64_t>(flight.channels_finished);
  for (const Flow& flow : flight.flows) {
    state.progress = state.progress * 1099511628211u + static_cast<uint64_t>(flow.steps_done) + 1;
    state.flows.push_back({flow.peer.value, flow.send, flow.channel, flow.steps_done, flow.steps_total, flow.waiting,
                           AgeOf(flow.waiting_since_wall_ns, wall_ns)});
  }
  return state;
}

// Names that users choose leave the node: as labels of metrics, in pages and messages.
std::string ShownName(std::string name) { return name.empty() ? name : RedactSecrets(name).text; }

void DescribeHeader(const BlackBox& box, int64_t wall_ns, BoxState& state) {
  const box::Header& header = box.header;
  state.job = ShownName(CleanText(header.job));
  state.host = CleanText(header.host);
  state.program = ShownName(CleanText(header.program));
  state.rank = header.rank;
  state.world_size = header.world_size;
  state.local_rank = header.local_rank;
  state.pid = header.pid;
  state.ids = {CleanText(header.slurm_job_id),        CleanText(header.slurm_step_id),
               CleanText(header.kubernetes_pod),      CleanText(header.kubernetes_namespace),
               CleanText(header.torchelastic_run_id), header.restart_count};
  state.ended = header.end_state == box::EndState::exited;
  state.heartbeat_age_ns = AgeOf(box.clock.WallNs(header.heartbeat_ticks), wall_ns);
  state.heartbeat_interval_ns = header.heartbeat_ms > 0 ? int64_t{header.heartbeat_ms} * 1'000'000 : -1;
  std::copy_n(header.drops, state.drops.size(), state.drops.begin());
}

CommState DescribeComm(const BlackBox& box, const box::Comm& comm, int64_t wall_ns) {
  CommState state;
  state.id = comm.comm_id;
  state.name = ShownName(CleanText(comm.name));
  state.rank = comm.rank;
  state.size = comm.size;
  state.issued = comm.collectives + comm.transfers;
  state.finished = comm.finished;
  state.idle_ns = AgeOf(box.clock.WallNs(comm.last_finished_ticks), wall_ns);
  state.live = (comm.word & box::kCommLive) != 0;
  return state;
}

// As nccl-tests define it: data over time, times what the best algorithm has to move.
double BusFactor(OpKind kind, double ranks) {
  switch (kind) {
    case OpKind::all_reduce: return 2 * (ranks - 1) / ranks;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all: return (ranks - 1) / ranks;
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::send:
    case OpKind::recv: return 1;
    default: return 0;
  }
}

}  // namespace

BoxState DescribeBox(const std::string& copy, const BlackBox& box, int64_t wall_ns, size_t most_operations) {
  BoxState state;
  if (box.trouble != BoxTrouble::none) {
    state.trouble = CodeOf(box.trouble);
    state.reason = box.reason;
    return state;
  }
  DescribeHeader(box, wall_ns, state);
  for (const BlackBoxComm& entry : box.comms) {
    state.comms.push_back(DescribeComm(box, entry.comm, wall_ns));
    if (entry.comm.device >= 0) state.device = entry.comm.device;
  }
  for (const BlackBoxPeer& entry : box.peers)
    for (int wait = 0; wait < box::kWaits; ++wait)
      state.wait_seconds[static_cast<size_t>(box::CauseOf(static_cast<box::Wait>(wait)))] +=
          static_cast<double>(box.clock.DurationNs(entry.peer.wait_ticks[wait])) / 1e9;
  Fragment fragment;
  ImportBlackBox({.path = "", .bytes = copy}, fragment);
  for (const InFlight& flight : fragment.in_flight)
    state.operations.push_back(DescribeOperation(fragment, flight, wall_ns));
  std::stable_sort(state.operations.begin(), state.operations.end(),
                   [](const OperationState& a, const OperationState& b) { return a.age_ns > b.age_ns; });
  state.operations_total = state.operations.size();
  if (state.operations.size() > most_operations) state.operations.resize(most_operations);
  return state;
}

FinishedOperation DescribeFinished(const BlackBox& box, const BoxState& state, const box::Op& op) {
  FinishedOperation finished;
  finished.box = &state;
  finished.op = &op;
  if (const BlackBoxComm* comm = box.CommOf(op))
    finished.comm = &state.comms[static_cast<size_t>(comm - box.comms.data())];
  const auto kind = op.kind <= box::Kind::recv ? static_cast<OpKind>(op.kind) : OpKind::unknown;
  static_assert(static_cast<int>(OpKind::recv) == static_cast<int>(box::Kind::recv));
  finished.kind = kind;
  static constexpr uint8_t kBytes[] = {0, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const uint64_t width = op.type <= box::Type::float8_e5m2 ? kBytes[static_cast<int>(op.type)] : 0;
  const uint64_t ranks =
      finished.comm != nullptr && finished.comm->size > 0 ? static_cast<uint64_t>(finished.comm->size) : 1;
  // NCCL counts what one rank contributes (all_gather) or receives (reduce_scatter).
  const bool per_rank = kind == OpKind::all_gather || kind == OpKind::reduce_scatter;
  uint64_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(op.count, width * (per_rank ? ranks : 1), &bytes) && bytes <= INT64_MAX;
  finished.bytes = width > 0 && fits ? static_cast<int64_t>(bytes) : -1;
  finished.issue_wall_ns = std::max<int64_t>(-1, box.clock.WallNs(op.issue_ticks));
  finished.finish_wall_ns = std::max<int64_t>(-1, box.clock.WallNs(op.finish_ticks));
  for (size_t cause = 0; cause < finished.wait_ns.size(); ++cause)
    finished.wait_ns[cause] = box.clock.DurationNs(op.wait_ticks[cause]);
  if ((op.flags & (box::kOpCaptured | box::kOpEndUnknown)) != 0) return finished;
  if (op.issue_ticks != 0 && op.finish_ticks >= op.issue_ticks)
    finished.in_flight_ns = box.clock.DurationNs(op.finish_ticks - op.issue_ticks);
  if (box::HasGpuTimes(op, finished.in_flight_ns))
    finished.duration_ns = static_cast<int64_t>(op.gpu_finish_ns - op.gpu_start_ns);
  else if (op.start_ticks != 0 && op.finish_ticks >= op.start_ticks)
    finished.duration_ns = box.clock.DurationNs(op.finish_ticks - op.start_ticks);
  if (finished.duration_ns > 0 && finished.bytes > 0)
    finished.bus_bytes_per_second = static_cast<double>(finished.bytes) * BusFactor(kind, static_cast<double>(ranks)) *
                                    1e9 / static_cast<double>(finished.duration_ns);
  return finished;
}

}  // namespace tacet
