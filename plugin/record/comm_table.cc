// SPDX-License-Identifier: Apache-2.0
#include "plugin/record/comm_table.h"

#include "plugin/record/tick_clock.h"

namespace tacet::plugin {

static void StoreName(box::Comm& comm, const char* name) {
  if (name == nullptr) return;
  for (size_t i = 0; i + 1 < sizeof comm.name; ++i) {
    Store(comm.name[i], name[i]);
    if (name[i] == 0) return;
  }
}

// A slot never used, else the one whose communicator ended first: what ended last is the better evidence.
static int ChooseSlot(const OpenBox& box) {
  int best = -1;
  for (uint32_t i = 0; i < box.comm_count; ++i) {
    const uint64_t word = Load(box.comms[i].word);
    if ((word & box::kCommUsed) == 0) return static_cast<int>(i);
    if ((word & box::kCommLive) != 0) continue;
    if (best < 0 || Load(box.comms[i].finalized_ticks) < Load(box.comms[best].finalized_ticks))
      best = static_cast<int>(i);
  }
  return best;
}

EventHandle OpenComm(OpenBox& box, const CommFacts& facts) {
  const int slot = ChooseSlot(box);
  if (slot < 0) {
    CountDrop(box, box::Drop::comm_table_full);
    return {};
  }
  box::Comm& comm = box.comms[slot];
  const uint32_t generation = box::WordGeneration(Load(comm.word)) + 1;
  Store(comm.word, uint64_t{generation} << 32);
  box::Comm fresh{};
  fresh.word = uint64_t{generation} << 32;
  fresh.comm_id = facts.comm_id;
  fresh.rank = facts.rank;
  fresh.size = facts.size;
  fresh.nodes = facts.nodes;
  fresh.device = facts.device;
  fresh.created_ticks = Ticks();
  StoreWords(comm, fresh);
  StoreName(comm, facts.name);
  StoreRelease(comm.word, uint64_t{generation} << 32 | box::kCommUsed | box::kCommLive);
  return MakeHandle(box, HandleKind::context, static_cast<uint32_t>(slot), generation);
}

void CloseComm(OpenBox& box, EventHandle context) {
  const uint16_t slot = FindComm(box, context.opaque());
  if (slot == box::kNoComm) return;
  box::Comm& comm = box.comms[slot];
  Store(comm.finalized_ticks, Ticks());
  StoreRelease(comm.word, uint64_t{context.generation(box)} << 32 | box::kCommUsed);
}

void LearnComm(OpenBox& box, uint16_t slot, uint64_t comm_id, const char* name, int32_t rank) {
  if (slot == box::kNoComm) return;
  box::Comm& comm = box.comms[slot];
  if (Load(comm.comm_id) != 0) return;
  Store(comm.rank, rank);
  StoreName(comm, name);
  StoreRelease(comm.comm_id, comm_id);
}

}  // namespace tacet::plugin
