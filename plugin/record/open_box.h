// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plugin/record/box_words.h"
#include "wire/black_box_layout.h"

namespace tacet::plugin {

// The box of this process, as pointers into its mapping. Made once, never moved, never unmapped.
struct OpenBox {
  box::Header* header = nullptr;
  box::Comm* comms = nullptr;
  box::Group* groups = nullptr;
  box::OpSlot* ops = nullptr;
  box::ProxySlot* proxies = nullptr;
  box::Peer* peers = nullptr;
  box::Record* ring = nullptr;
  uint32_t comm_count = 0;  // the masks are count - 1
  uint32_t group_mask = 0, op_mask = 0, proxy_mask = 0, peer_mask = 0, ring_mask = 0;
  uint32_t op_shift = 0, proxy_shift = 0;  // log2 of the counts
  uint32_t salt = 0;
  int32_t pid = 0;
  uint64_t first_ticks = 0;
  bool kernel_events = false;  // the API in use has KernelCh and it is asked for
};

// Null before the first communicator, in a forked child, and when no box could be made: events are then ignored.
extern __attribute__((visibility("hidden"))) OpenBox* g_box;  // said here, or every event takes a detour to find it
inline OpenBox* CurrentBox() { return LoadPointer(g_box); }

inline void CountDrop(OpenBox& box, box::Drop why) { Add(box.header->drops[static_cast<int>(why)], 1); }

// How far to go on from a slot that is taken. What hangs lies together, so the steps grow: a long run is left behind in
// a few tries instead of being met again and again with every lap.
inline uint64_t ProbeStep(int tries) { return tries < 4 ? 1 : uint64_t{1} << (tries - 3); }

}  // namespace tacet::plugin
