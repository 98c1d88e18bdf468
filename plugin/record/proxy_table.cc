// SPDX-License-Identifier: Apache-2.0
#include "plugin/record/proxy_table.h"

namespace tacet::plugin {
namespace {

using box::Peer;
using box::ProxySlot;

constexpr uint32_t kNoSlot = 0xffffffffu;
constexpr int kProxyClaimTries = 16;
constexpr int kPeerTries = 16;
constexpr int kLaneShift = 56;

ProxySlot* FindProxy(OpenBox& box, EventHandle handle) {
  ProxySlot& slot = box.proxies[handle.slot() & box.proxy_mask];
  const uint64_t word = Load(slot.word);
  if (box::WordGeneration(word) == handle.generation(box) && (word & box::kWordLive) != 0) return &slot;
  CountDrop(box, box::Drop::stale_handle);
  return nullptr;
}

ProxySlot* ClaimProxy(OpenBox& box, uint32_t* index, uint32_t* generation) {
  for (int tries = 0; tries < kProxyClaimTries; ++tries) {
    const uint64_t serial = Add(box.header->proxy_next, ProbeStep(tries));
    *index = static_cast<uint32_t>(serial) & box.proxy_mask;
    *generation = static_cast<uint32_t>(serial >> box.proxy_shift);
    ProxySlot& slot = box.proxies[*index];
    Prefetch(box.proxies[(*index + 1) & box.proxy_mask]);
    uint64_t word = Load(slot.word);
    if ((word & (box::kWordLive | box::kWordBusy)) != 0) continue;
    if (Claim(slot.word, word, uint64_t{*generation} << 32 | box::kWordBusy)) return &slot;
  }
  CountDrop(box, box::Drop::proxy_table_full);
  return nullptr;
}

// Finds or makes the entry of a peer by open addressing.
uint32_t FindPeer(OpenBox& box, uint16_t comm, int32_t peer) {
  const uint64_t key = uint64_t{comm} << 32 | static_cast<uint32_t>(peer + 1);
  uint32_t place = static_cast<uint32_t>(key * 0x9e3779b97f4a7c15u >> 40);
  for (int tries = 0; tries < kPeerTries; ++tries, ++place) {
    Peer& entry = box.peers[place & box.peer_mask];
    uint64_t found = Load(entry.key);
    if (found == 0 && Swap(entry.key, found, key)) {
      Store(entry.comm_id, Load(box.comms[comm].comm_id));
      return place & box.peer_mask;
    }
    // A communicator that took over the slot of an ended one starts its own entry.
    if (found == key && Load(entry.comm_id) == Load(box.comms[comm].comm_id)) return place & box.peer_mask;
  }
  CountDrop(box, box::Drop::peer_table_full);
  return kNoSlot;
}

void AddToPeer(Peer& peer, const ProxySlot& slot) {
  for (int i = 0; i < box::kWaits; ++i)
    if (const uint64_t ticks = Load(slot.wait_ticks[i]); ticks != 0) Add(peer.wait_ticks[i], ticks);
  const bool send = (Load(slot.flags) & box::kProxySend) != 0;
  Add(send ? peer.sends : peer.recvs, 1);
  Add(send ? peer.bytes_sent : peer.bytes_received, Load(slot.bytes));
  Add(peer.steps, Load(slot.steps_done));
}

// Books the time a step spent in its state and empties the lane.
void CloseLane(OpenBox& box, ProxySlot& slot, uint8_t lane, uint64_t now) {
  const uint64_t held = Load(slot.lanes[lane]);
  const uint64_t state = held >> kLaneShift;
  if (state == 0 || state > box::kWaits) return;
  const int wait = static_cast<int>(state - 1);
  const uint64_t since = held & box::kLaneTicks;
  const uint64_t ticks = now > since ? now - since : 0;
  AddAlone(slot.wait_ticks[wait], ticks);
  const uint32_t peer = Load(slot.peer_slot);
  if (peer != kNoSlot) RaiseTo(box.peers[peer & box.peer_mask].longest_ticks[wait], ticks);
}

uint64_t LaneTicks(const OpenBox& box) { return (Ticks() - box.first_ticks) & box::kLaneTicks; }

}  // namespace

EventHandle BeginProxy(OpenBox& box, const ProxyFacts& facts) {
  uint32_t index = 0, generation = 0;
  ProxySlot* slot = ClaimProxy(box, &index, &generation);
  if (slot == nullptr) return {};
  const bool of_op = OpenProxyOf(box, facts.task);
  const uint64_t now = Ticks();
  Store(slot->op_slot, of_op ? facts.task.slot() : kNoSlot);
  Store(slot->op_generation, of_op ? facts.task.generation(box) : 0);
  Store(slot->comm, facts.comm);
  Store(slot->channel, facts.channel);
  Store(slot->flags,
        static_cast<uint8_t>((facts.send ? box::kProxySend : 0) | (facts.foreign ? box::kProxyForeign : 0)));
  Store(slot->peer, facts.peer);
  Store(slot->steps, facts.steps);
  Store(slot->chunk_bytes, facts.chunk_bytes);
  Store(slot->steps_begun, 0u);
  Store(slot->steps_done, 0u);
  Store(slot->begin_ticks, now);
  Store(slot->progress_ticks, now);
  Store(slot->bytes, uint64_t{0});
  Store(slot->origin_pid, facts.origin_pid);
  Store(slot->peer_slot,
        facts.comm == box::kNoComm || facts.peer < 0 ? kNoSlot : FindPeer(box, facts.comm, facts.peer));
  for (uint64_t& ticks : slot->wait_ticks) Store(ticks, uint64_t{0});
  for (uint64_t& lane : slot->lanes) Store(lane, uint64_t{0});
  StoreRelease(slot->word, uint64_t{generation} << 32 | box::kWordLive);
  return MakeHandle(box, HandleKind::proxy_op, index, generation);
}

void EndProxy(OpenBox& box, EventHandle proxy) {
  ProxySlot* slot = FindProxy(box, proxy);
  if (slot == nullptr) return;
  uint64_t word = Load(slot->word);
  const uint32_t generation = proxy.generation(box);
  if (!Claim(slot->word, word, uint64_t{generation} << 32 | box::kWordBusy)) return;
  const uint64_t now = LaneTicks(box);  // a step that was never stopped (NCCL issue 1658) ends with its operation
  for (uint8_t lane = 0; lane < box::kLanes; ++lane)
    if (Load(slot->lanes[lane]) != 0) CloseLane(box, *slot, lane, now);
  if (const uint32_t peer = Load(slot->peer_slot); peer != kNoSlot) AddToPeer(box.peers[peer & box.peer_mask], *slot);
  if (const uint32_t op = Load(slot->op_slot); op != kNoSlot) {
    ProxySums sums{};
    for (int i = 0; i < box::kWaits; ++i)
      sums.wait_ticks[static_cast<int>(box::CauseOf(static_cast<box::Wait>(i)))] += Load(slot->wait_ticks[i]);
    sums.bytes = Load(slot->bytes);
    CloseProxyOf(box, op, Load(slot->op_generation), sums);
  }
  StoreRelease(slot->word, uint64_t{generation} << 32);
}

void NoteProxyBytes(OpenBox& box, EventHandle proxy, uint64_t bytes_so_far) {
  if (ProxySlot* slot = FindProxy(box, proxy)) Store(slot->bytes, bytes_so_far);
}

EventHandle BeginStep(OpenBox& box, EventHandle proxy, int32_t step) {
  if (proxy.kind() != HandleKind::proxy_op) return {};
  ProxySlot* slot = FindProxy(box, proxy);
  if (slot == nullptr) return {};
  const uint8_t lane = static_cast<uint8_t>(static_cast<uint32_t>(step) % box::kLanes);
  Store(slot->lanes[lane], uint64_t{0});
  AddAlone(slot->steps_begun, 1u);
  return MakeHandle(box, HandleKind::proxy_step, proxy.slot(), proxy.generation(box), lane);
}

void MoveStep(OpenBox& box, EventHandle step, box::Wait wait, uint64_t bytes) {
  ProxySlot* slot = FindProxy(box, step);
  if (slot == nullptr) return;
  const uint8_t lane = step.extra() % box::kLanes;
  const uint64_t state = static_cast<uint64_t>(wait) + 1;
  if (Load(slot->lanes[lane]) >> kLaneShift == state) return;
  const uint64_t now = LaneTicks(box);
  CloseLane(box, *slot, lane, now);
  Store(slot->lanes[lane], state << kLaneShift | now);
  if (bytes != 0) AddAlone(slot->bytes, bytes);
}

void EndStep(OpenBox& box, EventHandle step) {
  ProxySlot* slot = FindProxy(box, step);
  if (slot == nullptr) return;
  const uint8_t lane = step.extra() % box::kLanes;
  const uint64_t ticks = Ticks();
  CloseLane(box, *slot, lane, (ticks - box.first_ticks) & box::kLaneTicks);
  Store(slot->lanes[lane], uint64_t{0});
  AddAlone(slot->steps_done, 1u);
  Store(slot->progress_ticks, ticks);
}

}  // namespace tacet::plugin
