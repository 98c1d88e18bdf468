// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/event_handle.h"

namespace tacet::plugin {

// The slot a context names, or kNoComm. A context may outlive its communicator (shared proxies) or be another
// process's (PXN); both fail the generation test.
inline uint16_t FindComm(const OpenBox& box, const void* context) {
  const EventHandle handle = HandleOf(context);
  if (handle.kind() != HandleKind::context || handle.slot() >= box.comm_count) return box::kNoComm;
  const uint64_t word = Load(box.comms[handle.slot()].word);
  if (box::WordGeneration(word) != handle.generation(box) || (word & box::kCommLive) == 0) return box::kNoComm;
  return static_cast<uint16_t>(handle.slot());
}

struct CommFacts {
  uint64_t comm_id = 0;
  int32_t rank = -1, size = -1, nodes = -1, device = -1;
  const char* name = nullptr;
};

// Not on the event path; the caller holds the lifetime lock. Null when all slots are in use.
EventHandle OpenComm(OpenBox& box, const CommFacts& facts);
void CloseComm(OpenBox& box, EventHandle context);

// API v1 to v3 tell id, name and rank of a communicator only with its operations.
void LearnComm(OpenBox& box, uint16_t slot, uint64_t comm_id, const char* name, int32_t rank);

}  // namespace tacet::plugin
