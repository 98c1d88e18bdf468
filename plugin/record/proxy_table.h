// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/op_table.h"

// Network operations (ProxyOp: one channel's traffic with one peer) and their steps. All events of one come from the
// one progress thread that runs it, so its slot is written without locked instructions; its sums go to the peer and to
// the collective when it ends.
namespace tacet::plugin {

struct ProxyFacts {
  uint16_t comm = box::kNoComm;  // kNoComm for a foreign one
  EventHandle task;              // empty for a foreign one: that handle belongs to another process
  int32_t origin_pid = 0;
  uint8_t channel = 0;
  bool send = false, foreign = false;
  int32_t peer = -1, steps = 0, chunk_bytes = 0;
};
EventHandle BeginProxy(OpenBox& box, const ProxyFacts& facts);
void EndProxy(OpenBox& box, EventHandle proxy);
// API v1 to v3 report on the operation, not on its steps: how many steps are done and how many bytes moved so far.
void NoteProxyBytes(OpenBox& box, EventHandle proxy, uint64_t bytes_so_far);

EventHandle BeginStep(OpenBox& box, EventHandle proxy, int32_t step);
// NCCL repeats a state with every poll while nothing changes.
void MoveStep(OpenBox& box, EventHandle step, box::Wait wait, uint64_t bytes);
void EndStep(OpenBox& box, EventHandle step);

}  // namespace tacet::plugin
