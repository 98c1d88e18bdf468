// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/source_ref.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// What a network transfer waits for.
enum class FlowWait : uint8_t { nothing, own_gpu, peer_credit, network, data };

// One channel's traffic with one peer for an operation in flight.
struct Flow {
  GroupRank peer;
  bool send = false;
  uint8_t channel = 0;
  int32_t steps_done = 0, steps_total = 0;
  int64_t bytes = 0;
  FlowWait waiting = FlowWait::nothing;  // of the first step not yet done
  int64_t waiting_since_wall_ns = kNoTime;
  int64_t progress_wall_ns = kNoTime;  // a step ended last
};

enum class HostStage : uint8_t {
  unknown,
  in_group,      // between ncclGroupStart and ncclGroupEnd
  in_group_end,  // inside ncclGroupEnd: connecting, planning
  in_launch,     // inside the kernel launch
  away,          // the host has left NCCL: the rest is the GPU's
};

// An operation that had not ended when the record was taken: how far the host, the kernel and the network got with it.
struct InFlight {
  uint32_t speaker = 0;
  Rank rank;  // filled by the assembly
  GroupIndex group = GroupIndex::none;
  uint32_t stream = 0, call = 0;  // index of its stream in the fragment, later in the incident, and of its Call there
  uint32_t seq = 0;
  OpKind kind = OpKind::unknown;
  HostStage host = HostStage::unknown;
  int64_t host_since_wall_ns = kNoTime;
  int32_t channels = -1;  // -1: not told
  int32_t channels_started = 0, channels_finished = 0;
  bool tells_end = true;  // false: its end is never recorded, so it may have ended
  std::vector<Flow> flows;
  SourceRef source;
};

// The last sign of life of a process, from something that beats on its own.
struct Pulse {
  uint32_t speaker = 0;
  Rank rank;  // filled by the assembly
  int64_t pid = -1;
  uint64_t start_jiffies = 0;  // with pid and host it names the process for ever
  int64_t last_beat_wall_ns = kNoTime;
  int64_t interval_ns = -1;  // -1: nothing beats
  bool ended = false;        // it said that it ended by itself
  SourceRef source;
};

enum class TaskState : uint8_t { unknown, running, stopped, uninterruptible, zombie, gone };

// What another process of the same host saw of a process that had fallen silent. The entries of one process by one
// witness tell how its state changed, in order.
struct Sight {
  uint32_t speaker = 0;  // who looked
  Rank rank;             // of the process looked at: as told, settled by the assembly
  int64_t pid = -1;
  uint64_t start_jiffies = 0;
  TaskState state = TaskState::unknown;
  int64_t since_wall_ns = kNoTime;  // the first look that showed it
  int64_t seen_wall_ns = kNoTime;   // the latest
  SourceRef source;
};

}  // namespace tacet
