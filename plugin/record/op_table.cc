// SPDX-License-Identifier: Apache-2.0
#include "plugin/record/op_table.h"

#include <initializer_list>

#include "plugin/record/comm_table.h"
#include "plugin/record/group_table.h"
#include "plugin/record/ring_writer.h"

namespace tacet::plugin {
namespace {

using box::OpSlot;

constexpr int kClaimTries = 16;  // slots looked at before a new operation is dropped
constexpr int kWordTries = 256;  // lost races before an event is dropped; a race is lost only when another one advances

bool IsPointToPoint(box::Kind kind) {
  return kind == box::Kind::send || kind == box::Kind::recv || kind == box::Kind::send_recv;
}

// The slot a handle names if its operation is still there. NCCL handed the handle over, and with it what was written
// before: nothing to acquire here.
OpSlot* FindSlot(OpenBox& box, EventHandle handle) {
  OpSlot& slot = box.ops[handle.slot() & box.op_mask];
  const uint64_t word = Load(slot.word);
  if (box::WordGeneration(word) == handle.generation(box) && (word & box::kWordLive) != 0) return &slot;
  CountDrop(box, box::Drop::stale_handle);
  return nullptr;
}

// Applies `change` to the word as long as it is the same operation's; gives the new word, 0 when it is gone.
// With `hands_on` whoever sees the new word also sees what was written before it.
template <bool hands_on, typename Change>
uint64_t Advance(OpenBox& box, OpSlot& slot, uint32_t generation, Change change) {
  uint64_t word = Load(slot.word);
  for (int tries = 0; tries < kWordTries; ++tries) {
    if (box::WordGeneration(word) != generation || (word & box::kWordLive) == 0) {
      CountDrop(box, box::Drop::stale_handle);
      return 0;
    }
    const uint64_t next = change(word);
    if (hands_on ? Swap(slot.word, word, next) : Claim(slot.word, word, next)) return next;
  }
  CountDrop(box, box::Drop::contended);
  return 0;
}

// Moves the operation to the ring and frees the slot. Only the thread that sets the busy bit gets here.
void Retire(OpenBox& box, OpSlot& slot, uint64_t word, uint16_t more_flags) {
  const uint16_t comm_slot = Load(slot.op.comm);
  const bool seen_to_end = (more_flags & (box::kOpEndImplied | box::kOpEndUnknown)) == 0;
  // The communicator's slot may hold another one by now.
  if (seen_to_end && comm_slot != box::kNoComm && Load(box.comms[comm_slot].comm_id) == Load(slot.op.comm_id)) {
    box::Comm& comm = box.comms[comm_slot];
    Add(comm.finished, 1);
    RaiseAlone(comm.last_finished_serial, Load(slot.op.serial) + 1);  // too low for a moment does no harm
    Store(comm.last_finished_ticks, Load(slot.op.finish_ticks));
  }
  AppendRecord(box, slot.op, more_flags, box::WordStarted(word), box::WordStopped(word));
  StoreRelease(slot.word, uint64_t{box::WordGeneration(word)} << 32);
}

bool IsComplete(uint64_t word, uint8_t channels, uint16_t flags) {
  return channels != 0 && (flags & box::kOpChannelsAtMost) == 0 && box::WordStopped(word) >= channels &&
         box::WordStopped(word) == box::WordStarted(word) && box::WordProxies(word) == 0 &&
         (word & box::kWordEnqueued) != 0;
}

// Advances the word, and in the same step takes the operation away for the ring if that completes it.
template <typename Change>
void AdvanceOrRetire(OpenBox& box, OpSlot& slot, uint32_t generation, Change change) {
  const uint8_t channels = Load(slot.op.channels);
  const uint16_t flags = Load(slot.op.flags);
  uint64_t final = 0;
  const uint64_t word = Advance<true>(box, slot, generation, [&](uint64_t old) {
    const uint64_t next = change(old);
    final = IsComplete(next, channels, flags) ? next : 0;
    return final != 0 ? (next & ~box::kWordLive) | box::kWordBusy : next;
  });
  if (word != 0 && final != 0) Retire(box, slot, final, 0);
}

// Takes a free slot for a new operation; its word stays busy until Publish.
OpSlot* ClaimSlot(OpenBox& box, uint64_t* serial) {
  for (int tries = 0; tries < kClaimTries; ++tries) {
    *serial = Add(box.header->op_next, ProbeStep(tries));
    OpSlot& slot = box.ops[*serial & box.op_mask];
    Prefetch(box.ops[(*serial + 1) & box.op_mask]);
    uint64_t word = Load(slot.word);
    if ((word & box::kWordLive) != 0 && Settle(box, static_cast<uint32_t>(*serial & box.op_mask), UINT64_MAX, true))
      word = Load(slot.word);
    if ((word & (box::kWordLive | box::kWordBusy)) != 0) continue;
    const uint64_t generation = *serial >> box.op_shift & 0xffffffffu;
    if (Claim(slot.word, word, generation << 32 | box::kWordBusy)) return &slot;
  }
  CountDrop(box, box::Drop::op_table_full);
  return nullptr;
}

// A graph runs its collectives whenever the GPU gets to it: numbered with the calls, these would differ between ranks.
uint64_t& CounterOf(box::Comm& comm, const NewOp& op) {
  if (IsPointToPoint(op.kind)) return comm.transfers;
  return (op.flags & box::kOpGraphReplay) != 0 ? comm.replays : comm.collectives;
}

// Numbers the call in its communicator, even when there is no room to record it: numbers must agree between ranks.
void NumberCall(OpenBox& box, uint16_t comm, NewOp& op) {
  op.comm = comm;
  if (comm == box::kNoComm) return;
  box::Comm& entry = box.comms[comm];
  op.comm_id = Load(entry.comm_id);
  op.seq = Add(CounterOf(entry, op), 1) + 1;
  Store(entry.last_issue_ticks, op.issue_ticks);
}

EventHandle Publish(OpenBox& box, OpSlot& slot, const NewOp& op, uint64_t serial, HandleKind kind) {
  StoreOp(slot.op, serial, op);
  const uint64_t generation = serial >> box.op_shift & 0xffffffffu;
  StoreRelease(slot.word, generation << 32 | box::kWordLive);
  return MakeHandle(box, kind, static_cast<uint32_t>(serial & box.op_mask), static_cast<uint32_t>(generation));
}

NewOp OpOf(const IssuedCall& call) {
  NewOp op;
  op.kind = call.kind;
  op.type = call.type;
  op.count = call.count;
  op.peer = call.peer;
  op.stream = call.stream;
  op.user_tag = call.user_tag;
  op.group = call.group;
  op.flags = call.flags;
  op.issue_ticks = Ticks();
  return op;
}

uint64_t LaunchOf(const OpenBox& box, uint32_t group) {
  const box::Group& entry = box.groups[group & box.group_mask];
  return group != 0 && static_cast<uint32_t>(Load(entry.word) >> 8) == group ? Load(entry.launch_end_ticks) : 0;
}

uint16_t TaskFlags(const OpenBox& box, const PlannedTask& task) {
  return static_cast<uint16_t>(task.flags | box::kOpPlanned | (box.kernel_events ? box::kOpKernelTimed : 0));
}

// First seen as a task: API v1 to v4, a graph replay, or a parent that already has its task.
EventHandle PlanNewOp(OpenBox& box, uint16_t comm, const PlannedTask& task, uint16_t flags) {
  NewOp op;
  op.kind = task.kind;
  op.type = task.type;
  op.count = task.count;
  op.peer = task.peer;
  op.user_tag = task.user_tag;
  op.group = task.group;
  op.flags = static_cast<uint16_t>(flags | TaskFlags(box, task));
  op.func_seq = task.func_seq;
  op.algorithm = task.algorithm;
  op.protocol = task.protocol;
  op.channels = task.channels;
  op.launch_ticks = LaunchOf(box, static_cast<uint32_t>(op.group));
  op.issue_ticks = Ticks();
  if (task.group != 0) DateGroup(box, task.group, op.issue_ticks);
  NumberCall(box, comm, op);
  uint64_t serial = 0;
  OpSlot* slot = ClaimSlot(box, &serial);
  if (slot == nullptr) return {};
  return Publish(box, *slot, op, serial, HandleKind::task);
}

uint64_t LastTouch(const box::Op& op) {
  uint64_t last = op.issue_ticks;
  for (const uint64_t ticks : {op.enqueue_ticks, op.start_ticks, op.finish_ticks})
    if (ticks > last) last = ticks;
  return last;
}

// Issued in a group call that has not returned: its task may still come.
bool IsHostInside(const OpenBox& box, const box::Op& op, uint64_t word) {
  if ((op.flags & box::kOpPlanned) != 0)
    return (word & box::kWordEnqueued) == 0 && (op.flags & box::kOpCopyEngine) == 0;
  const uint64_t group = Load(box.groups[op.group & box.group_mask].word);
  return op.group != 0 && static_cast<uint32_t>(group >> 8) == op.group &&
         static_cast<uint8_t>(group) != static_cast<uint8_t>(box::GroupState::done);
}

// All channels that were seen have stopped, and how many there should be was not told.
bool HasEnded(const box::Op& op, uint64_t word) {
  return box::WordStopped(word) != 0 && (word & box::kWordEnqueued) != 0 &&
         (op.channels == 0 || (op.flags & box::kOpChannelsAtMost) != 0);
}

}  // namespace

EventHandle IssueOp(OpenBox& box, uint16_t comm, const IssuedCall& call) {
  NewOp op = OpOf(call);
  if (call.group != 0) DateGroup(box, call.group, op.issue_ticks);
  NumberCall(box, comm, op);
  uint64_t serial = 0;
  OpSlot* slot = ClaimSlot(box, &serial);
  if (slot == nullptr) return MakeHandle(box, HandleKind::dropped, 0, 0);
  return Publish(box, *slot, op, serial, HandleKind::api);
}

EventHandle CaptureOp(OpenBox& box, uint16_t comm, const IssuedCall& call) {
  NewOp op = OpOf(call);
  op.flags |= box::kOpCaptured;
  op.comm = comm;
  if (comm != box::kNoComm) op.comm_id = Load(box.comms[comm].comm_id);
  box::Op captured{};
  StoreOp(captured, Add(box.header->op_next, 1), op);
  AppendRecord(box, captured, 0, 0, 0);
  return MakeHandle(box, HandleKind::captured, 0, 0);
}

EventHandle PlanTask(OpenBox& box, uint16_t comm, EventHandle parent, const PlannedTask& task) {
  if (parent.kind() == HandleKind::dropped) return {};
  if (parent.kind() == HandleKind::captured) return PlanNewOp(box, comm, task, box::kOpGraphReplay);
  if (parent.kind() != HandleKind::api) return PlanNewOp(box, comm, task, box::kOpNoApiEvent);
  OpSlot* slot = FindSlot(box, parent);
  if (slot == nullptr) return {};  // given up meanwhile; its number must not be given twice
  box::Op& op = slot->op;
  if ((Load(op.flags) & box::kOpPlanned) != 0) {  // a second task of one call: an operation of its own
    PlannedTask another = task;
    another.kind = Load(op.kind);
    another.type = Load(op.type);
    another.count = Load(op.count);
    return PlanNewOp(box, comm, another, box::kOpNoApiEvent);
  }
  // The caller's count and type stay: NCCL runs AllGather and Broadcast as bytes.
  Store(op.func_seq, task.func_seq);
  Store(op.algorithm, task.algorithm);
  Store(op.protocol, task.protocol);
  Store(op.channels, task.channels);
  Store(op.flags, static_cast<uint16_t>(Load(op.flags) | TaskFlags(box, task)));
  Store(op.launch_ticks, LaunchOf(box, Load(op.group)));
  if (task.peer >= 0) Store(op.peer, task.peer);  // P2pApi names no peer
  return MakeHandle(box, HandleKind::task, parent.slot(), parent.generation(box));
}

void EnqueueTask(OpenBox& box, EventHandle task) {
  OpSlot* slot = FindSlot(box, task);
  if (slot == nullptr) return;
  // The launch has just returned: its time will do.
  const uint64_t launched = Load(slot->op.launch_ticks);
  Store(slot->op.enqueue_ticks, launched != 0 ? launched : Ticks());
  AdvanceOrRetire(box, *slot, task.generation(box), [](uint64_t old) { return old | box::kWordEnqueued; });
}

EventHandle StartChannel(OpenBox& box, EventHandle task, uint8_t channel, uint64_t gpu_ns) {
  if (task.kind() != HandleKind::task) return {};
  OpSlot* slot = FindSlot(box, task);
  if (slot == nullptr) return {};
  const uint32_t generation = task.generation(box);
  const uint64_t word = Advance<false>(box, *slot, generation, [](uint64_t old) {
    return box::WordStarted(old) == 0xff ? old : old + box::kWordStarted;
  });
  if (word == 0) return {};
  if (gpu_ns != 0) LowerAlone(slot->op.gpu_start_ns, gpu_ns);  // one thread tells of all channels of a kernel
  if (box::WordStarted(word) == 1) Store(slot->op.start_ticks, Ticks());
  return MakeHandle(box, HandleKind::channel, task.slot(), generation, channel);
}

void TimeChannelStop(OpenBox& box, EventHandle channel, uint64_t gpu_ns) {
  if (OpSlot* slot = FindSlot(box, channel)) RaiseAlone(slot->op.gpu_finish_ns, gpu_ns);
}

void StopChannel(OpenBox& box, EventHandle channel) {
  OpSlot* slot = FindSlot(box, channel);
  if (slot == nullptr) return;
  const uint64_t before = Load(slot->word);
  // Read before the word moves on: once it has, another thread may take the operation away.
  if (box::WordStopped(before) + 1 >= box::WordStarted(before)) Store(slot->op.finish_ticks, Ticks());
  AdvanceOrRetire(box, *slot, channel.generation(box), [](uint64_t old) {
    return box::WordStopped(old) >= box::WordStarted(old) ? old : old + box::kWordStopped;
  });
}

void MarkCopyEngine(OpenBox& box, EventHandle api, uint64_t func_seq, uint64_t stream) {
  if (api.kind() != HandleKind::api) return;
  OpSlot* slot = FindSlot(box, api);
  if (slot == nullptr) return;
  Store(slot->op.func_seq, func_seq);
  Store(slot->op.stream, stream);
  Store(slot->op.flags, static_cast<uint16_t>(Load(slot->op.flags) | box::kOpCopyEngine | box::kOpPlanned));
}

bool OpenProxyOf(OpenBox& box, EventHandle task) {
  if (task.kind() != HandleKind::task) return false;
  OpSlot* slot = FindSlot(box, task);
  if (slot == nullptr) return false;
  bool opened = false;
  const uint64_t word = Advance<false>(box, *slot, task.generation(box), [&](uint64_t old) {
    opened = box::WordProxies(old) < 0x3ff;
    return opened ? old + box::kWordProxy : old;
  });
  return word != 0 && opened;
}

void CloseProxyOf(OpenBox& box, uint32_t slot_index, uint32_t generation, const ProxySums& sums) {
  OpSlot& slot = box.ops[slot_index & box.op_mask];
  const uint64_t now = LoadAcquire(slot.word);
  if (box::WordGeneration(now) != generation || (now & box::kWordLive) == 0 || box::WordProxies(now) == 0) return;
  for (int i = 0; i < box::kCauses; ++i)
    if (sums.wait_ticks[i] != 0) Add(slot.op.wait_ticks[i], sums.wait_ticks[i]);
  if (sums.bytes != 0) Add(slot.op.network_bytes, sums.bytes);
  AdvanceOrRetire(box, slot, generation,
                  [](uint64_t old) { return box::WordProxies(old) == 0 ? old : old - box::kWordProxy; });
}

bool Settle(OpenBox& box, uint32_t slot_index, uint64_t quiet_since_ticks, bool even_unknown) {
  OpSlot& slot = box.ops[slot_index & box.op_mask];
  uint64_t word = LoadAcquire(slot.word);
  if ((word & box::kWordLive) == 0 || (word & box::kWordBusy) != 0) return false;
  if (box::WordStarted(word) != box::WordStopped(word) || box::WordProxies(word) != 0) return false;
  box::Op op;
  LoadWords(slot.op, op);
  if (LastTouch(op) > quiet_since_ticks || IsHostInside(box, op, word)) return false;
  uint16_t more = 0;
  if (!HasEnded(op, word)) {
    const bool overtaken = op.comm != box::kNoComm && Load(box.comms[op.comm].comm_id) == op.comm_id &&
                           Load(box.comms[op.comm].last_finished_serial) > op.serial + 1;
    const bool tells_its_end = (op.flags & box::kOpPlanned) != 0 && (op.flags & box::kOpKernelTimed) != 0 &&
                               (op.flags & box::kOpCopyEngine) == 0;
    if (!overtaken && (tells_its_end || !even_unknown)) return false;  // may well be in flight
    more = overtaken ? box::kOpEndImplied : box::kOpEndUnknown;
  }
  if (!Claim(slot.word, word, (word & ~box::kWordLive) | box::kWordBusy)) return false;
  Retire(box, slot, word, more);
  return true;
}

}  // namespace tacet::plugin
