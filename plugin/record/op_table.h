// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/event_handle.h"
#include "plugin/record/tick_clock.h"

// Operations in flight. An operation takes a slot when the host issues it (CollApi, P2pApi; Coll, P2p before API v5),
// moves on with the events below, and leaves for the ring when all its channels have stopped, the host is done and no
// network operation of it is open. Some operations never tell their end (see Settle).
namespace tacet::plugin {

struct IssuedCall {
  box::Kind kind{};
  box::Type type{};
  uint64_t count = 0;
  int32_t peer = -1;
  uint64_t stream = 0;
  uint64_t user_tag = 0;
  uint64_t group = 0;  // serial
  uint16_t flags = 0;  // box::OpFlag
};
EventHandle IssueOp(OpenBox& box, uint16_t comm, const IssuedCall& call);  // CollApi, P2pApi start
// A call that goes into a CUDA graph: noted in the ring, runs later, if ever.
EventHandle CaptureOp(OpenBox& box, uint16_t comm, const IssuedCall& call);

struct PlannedTask {
  box::Kind kind{};
  box::Type type{};
  uint64_t count = 0;
  int32_t peer = -1;
  uint64_t func_seq = 0;
  uint64_t user_tag = 0;
  uint64_t group = 0;
  box::Algorithm algorithm{};
  box::Protocol protocol{};
  uint8_t channels = 0;
  uint16_t flags = 0;
};
EventHandle PlanTask(OpenBox& box, uint16_t comm, EventHandle parent, const PlannedTask& task);  // Coll, P2p start
void EnqueueTask(OpenBox& box, EventHandle task);                                                // Coll, P2p stop

EventHandle StartChannel(OpenBox& box, EventHandle task, uint8_t channel, uint64_t gpu_ns);  // KernelCh start
void TimeChannelStop(OpenBox& box, EventHandle channel, uint64_t gpu_ns);                    // KernelCh state 22
void StopChannel(OpenBox& box, EventHandle channel);                                         // KernelCh stop

void MarkCopyEngine(OpenBox& box, EventHandle api, uint64_t func_seq, uint64_t stream);  // CeColl start

// Network operations of an operation: opened when it is live, which keeps it in its slot until they are closed.
bool OpenProxyOf(OpenBox& box, EventHandle task);
struct ProxySums {
  uint64_t wait_ticks[box::kCauses];
  uint64_t bytes;
};
void CloseProxyOf(OpenBox& box, uint32_t slot, uint32_t generation, const ProxySums& sums);

// Gives up an operation whose end will not be told: nothing of it is open, nothing happened to it since
// `quiet_since_ticks`, and a later operation of its communicator has ended; with `even_unknown` also when no kernel
// events were to be expected (API v1 and v2, symmetric kernels, copy engines, some broadcasts). True when the slot was
// freed.
bool Settle(OpenBox& box, uint32_t slot, uint64_t quiet_since_ticks, bool even_unknown);

}  // namespace tacet::plugin
