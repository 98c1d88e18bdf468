// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "model/in_flight.h"
#include "wire/black_box_layout.h"

namespace tacet {

// What the kernel says of a process now.
enum class ProcessSight : uint8_t {
  unknown,          // a box of another host, or of another pid namespace
  running,          // runs or sleeps
  stopped,          // SIGSTOP, a debugger, a frozen cgroup
  uninterruptible,  // in D state: inside the kernel, usually for a device or a network file system
  zombie,           // ended, its parent has not asked how
  gone,
};
std::string_view Name(ProcessSight sight);
ProcessSight ParseProcessSight(std::string_view name);
inline bool HasEnded(ProcessSight sight) { return sight == ProcessSight::gone || sight == ProcessSight::zombie; }

struct FlowState {
  int32_t peer = -1;  // rank in the communicator
  bool send = false;
  int32_t channel = 0;
  int32_t steps_done = 0, steps_total = 0;
  FlowWait waiting = FlowWait::nothing;
  int64_t waiting_ns = -1;  // for so long; -1 unknown
};

// An operation that has been issued and not seen to end.
struct OperationState {
  uint64_t comm = 0;
  OpKind kind = OpKind::unknown;
  uint64_t seq = 0;
  int64_t bytes = -1;
  int64_t age_ns = 0;  // since the host issued it
  int32_t channels = -1, channels_started = 0, channels_finished = 0;
  HostStage host = HostStage::unknown;
  bool tells_end = true;   // false: nobody records its end, so it may have ended
  uint64_t progress = 0;   // changes whenever the operation gets on: channels and network steps
  int64_t normal_ns = -1;  // longer than nearly all of its kind took from issue to end; -1 nothing to compare with
  std::vector<FlowState> flows;
};

struct CommState {
  uint64_t id = 0;
  std::string name;
  int32_t rank = -1, size = -1;
  uint64_t issued = 0, finished = 0;
  int64_t idle_ns = -1;  // since an operation ended; -1 none did
  bool live = true;      // false: finalized
};

// What launcher and scheduler call the process; empty where there is none.
struct LauncherIds {
  std::string slurm_job, slurm_step, kubernetes_pod, kubernetes_namespace, torchelastic_run;
  int32_t restarts = -1;  // torchrun's count
};

// One process with a plugin, as its black box and the kernel show it at one moment.
struct BoxState {
  std::string name;             // path below the box folder: "job/host-pid.box"
  std::string trouble, reason;  // code and sentence, when the box cannot be read; the rest is empty then
  std::string job, host, program;
  int64_t uid = -1;  // owner of the file, as the kernel tells; -1 unknown
  int32_t rank = -1, world_size = -1, local_rank = -1;
  int64_t pid = -1;
  int32_t device = -1;
  LauncherIds ids;
  ProcessSight sight = ProcessSight::unknown;
  bool same_boot = false;         // written since this host was started; only the agent of the host knows
  bool ended = false;             // the process said so itself: exit() or return from main
  int64_t heartbeat_age_ns = -1;  // -1 it never beat
  int64_t heartbeat_interval_ns = -1;
  std::vector<CommState> comms;
  std::vector<OperationState> operations;           // oldest first
  uint64_t operations_total = 0;                    // in flight, also those left out of `operations`
  std::array<double, box::kCauses> wait_seconds{};  // of its network steps, by cause
  std::array<uint64_t, box::kDropKinds> drops{};
  uint64_t lapped = 0;  // finished operations overwritten before this agent read them
  uint64_t torn = 0;
  bool suspected = false;  // part of a suspected hang

  // Still part of a running job: neither gone nor orderly ended.
  bool IsLive() const { return trouble.empty() && !ended && !tacet::HasEnded(sight); }
};

// A job is known by its name and its owner: two users may call theirs alike, and one of them on purpose.
struct JobKey {
  int64_t uid = -1;
  std::string name;
  friend bool operator<(const JobKey& a, const JobKey& b) { return std::tie(a.name, a.uid) < std::tie(b.name, b.uid); }
  friend bool operator==(const JobKey& a, const JobKey& b) { return a.uid == b.uid && a.name == b.name; }
};
inline JobKey JobOf(const BoxState& box) { return {box.uid, box.job}; }

// A node at one moment.
struct HostState {
  std::string host;
  int64_t wall_ns = 0;
  std::vector<BoxState> boxes;
};

}  // namespace tacet
