// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/source_ref.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// Things that happened once, as a log tells them. The comment after each kind says which fields are used beyond rank,
// time, source and text.
enum class EventKind : uint8_t {
  // life of a process
  process_started,   // pid, world_size in value where told
  progress,          // a line the job itself prints as it advances (step, iteration): value = number, -1 if none
  process_finished,  // the job says that this rank ended normally, or its communicators were destroyed in order
  process_exited,  // exit code or signal in value (negative = signal), subject = signal name, "MPI_Abort" (object = its
                   // error code), what else
                   // is told of the end, or ""; from a launcher or shell; group_rank = rank on its node
  process_killed,  // killed by the launcher or a scheduler after the fact (SIGTERM, time limit): a consequence
  // PyTorch
  watchdog_timeout,  // group_name, op, seq, value = timeout ms, value2 = elapsed ms, count = NumelIn
  watchdog_status,   // group_name, seq = failed work, value = last enqueued, value2 = last completed
  dump_signal,       // peer = rank that asked for it, value = last enqueued, value2 = last completed
  dump_started,
  dump_written,     // subject = file
  heartbeat_stuck,  // the watchdog itself makes no progress; subject = reason
  gil_blocked,      // the GIL could not be taken
  store_lost,       // the TCPStore is gone: rank 0's process is away
  desync_report,    // ranks = lagging ranks, seq, op
  mismatch_report,  // DETAIL: peer = other rank; subject = aspect "shape" "dtype" "op" "seq"; text = both sides
  monitored_barrier_failed,  // ranks = those that did not come
  ddp_unused_parameters,     // subject = parameters named
  ddp_marked_twice,
  exception,   // an uncaught Python exception: subject = type, text = message, file/line/function of the innermost user
               // frame
  cuda_error,  // subject = "out of memory", "an illegal memory access was encountered", ...
  nccl_error,  // value = result code 1..8, subject = text, object = the reason that NCCL gives, where it does
  connection_lost,  // subject = address of the peer, peer if known
  abort_signal,     // SIGABRT, terminate called: usually a consequence
  // NCCL
  nccl_version,  // subject
  init_started,  // comm, value = nranks, group_rank, device, bus id in subject
  init_completed,
  comm_destroyed,
  comm_aborted,
  environment,     // subject = NAME, text = value
  network,         // subject = "Socket", "IB", ...
  interface_used,  // subject = "eth0", text = address
  no_device,       // subject = "IB": the transport found no device
  device_found,    // subject = "mlx5_0:1/IB": a fast device exists
  transport,       // one connection: group_rank -> peer_group_rank, subject = "P2P/CUMEM", "SHM/direct/direct",
                   // "NET/IB/0/GDRDMA"
  nccl_warning,    // subject = stable id of the warning (see nccl_log/README.md), text = message
  mixed_setting,   // found by the reader: a value that must be equal on all ranks differs
  // kernel and scheduler
  oom_kill,  // pid, subject = process name, value = 1 for a cgroup limit, 0 for the whole host
  xid,       // value = Xid, subject = PCI address, pid where told
  nvlink_error,
  ecc_error,
  segfault,   // pid, subject = process name
  hung_task,  // pid, value = seconds
  link_down,
  link_up,  // subject = interface or HCA
  job_time_limit,
  node_failed,
  // RAS
  ras_rank_dead,
  ras_rank_unresponsive,
  ras_rank_missing,
  // kernel, continued
  pcie_error,  // subject = PCI address, value = 0 corrected, 1 uncorrected, 2 fatal or the device is gone, count =
               // times
  // PyTorch, continued: setting up
  store_wait_timeout,     // waited in vain for keys of the store: subject = keys, value = timeout ms (-1 not told)
  rendezvous_incomplete,  // value = joined, value2 = expected, ranks = those that did not come where told
  store_unreachable,      // could not connect to the store: subject = "host:port", value = timeout ms
  // What a process, a launcher or a scheduler says in so many words
  shared_memory_full,  // object = path where told
  disk_full,           // object = path where told, value = 1 for a quota, 0 for the device, -1 not told
  port_in_use,         // value = port, -1 not told
  scheduler_kill,      // somebody outside ended the job: value = SchedulerKill, object = who or what for, where told
  peer_access_failed,  // one GPU cannot reach another's memory; subject = CUDA's word
  rdma_failed,     // memory cannot be registered with, or reached by, the adapter: value = RdmaFault, object = device
  fabric_down,     // the NVSwitch fabric is not ready; subject = CUDA's word
  model_mismatch,  // DDP: value = parameter, -1 for their number; group_rank, peer_group_rank; subject = what differs
  connect_failed,  // a connection between ranks cannot be made: object = address, subject = the system's word
  // kernel, continued
  iommu_fault,  // the IOMMU refused a device's access: subject = PCI address of the device, count = times
  // NCCL, continued: setting up
  driver_version,  // subject = CUDA driver version as NCCL prints it ("12040")
  node_count,      // value = nodes that a communicator of this process spans, value2 = its ranks on this node
  gpu_direct,      // subject = adapter, value = 1 GPUDirect RDMA is on, 0 off
};

// Why somebody outside ended the job. The names are those of the schedulers' own states.
enum class SchedulerKill : uint8_t { cancelled, time_limit, preempted, requeued, evicted, reclaimed, signal };

// What is wrong between the adapter and the memory.
enum class RdmaFault : uint8_t {
  unknown,
  locked_memory,  // the limit of locked memory is too small
  gpu_memory,     // the adapter cannot register memory of the GPU: no nvidia_peermem, no DMA-BUF
  protection,     // the adapter's access was refused: ACS, IOMMU, a wrong key
  no_device,      // the device file cannot be opened
  queues,         // a queue pair, a completion queue or a protection domain cannot be created
};

// What the words of an event mean, beyond its kind: evidence/event_meaning.h decides it when the file is read.
enum class Meaning : uint8_t {
  consequence,        // exception: it only says that somebody else failed
  host_memory,        // memory of the host ran out
  gpu_memory,         // memory of the GPU ran out
  illegal_access,     // CUDA: an illegal memory access
  mps_failed,         // CUDA: the MPS server failed, as it does when one of its clients is killed or aborts
  spreads,            // CUDA: an error that also strikes who shares memory or a GPU with a process that dies
  cuda_failed,        // exception: it repeats an error of CUDA
  nccl_failed,        // exception: it repeats an error of NCCL
  gloo_timeout,       // exception: gloo waited for a peer until its time was up
  gloo_loss,          // exception: gloo lost a peer
  calls_differ,       // exception: PyTorch's own check found that ranks issue different things
  setup_failed,       // exception: of the store, the network or the backend
  store_unreachable,  // exception: the store cannot be connected to
  no_interface,       // no network interface can be used
  duplicate_gpu,      // two ranks use one GPU
  over_infiniband,    // transport: a connection over InfiniBand or RoCE
  gpu_direct,         // transport: ... with GPUDirect RDMA
  of_service,         // kernel: the process is a service of the host, no part of a job
  timed_out,          // a dump was asked for because a collective timed out
  device_assert,      // CUDA: an assertion in a kernel of the program failed; object = the assertion where it is told
  loader_worker,   // exception: a data loader's worker, a child of the rank, ended: object = pid, value = -signal or 0
  owner_inferred,  // an error without a name: the launcher tells of one failed rank, and it is given to that one
  reported,  // exception or end of a process: no exception of Python but an error that a program or a library prints;
             // subject = "an MPI error in MPI_Recv", "a CUDA error"
  by_python,    // end of a process: it ran Python
  refused,      // a connection: the host answers, and nothing listens there
  no_launcher,  // exception: what a launcher sets (RANK, MASTER_ADDR) is not there
  diverged,     // exception: the loss, or a gradient, became NaN or infinite
};

struct Event {
  EventKind kind{};
  uint32_t meanings = 0;      // bits by Meaning
  uint32_t speaker = 0;       // index into Fragment::speakers, later into Incident::processes; kNobody where unknown
  Rank rank;                  // filled by the assembly, or by the reader when the line itself names it
  int64_t wall_ns = kNoTime;  // UTC where the zone is known, else the writer's local clock; kNoTime where absent
  SourceRef source;
  OpKind op = OpKind::unknown;
  int64_t seq = -1;
  int64_t pid = -1;
  int64_t value = -1, value2 = -1, count = -1;
  uint64_t comm = 0;  // commId, or the communicator's address where no id is printed
  GroupRank group_rank, peer_group_rank;
  Rank peer;
  std::string group_name;
  std::string group_description;
  std::string subject;
  std::string text;            // the message; capped, see kMaxText
  std::string object;          // the path, address or device that the message names; empty where it names none
  std::string function, file;  // innermost user frame of an exception
  uint32_t code_line = 0;
  std::vector<Rank> ranks;  // of the end of a process: more of which the same is said; the assembly writes them out

  static constexpr size_t kMaxText = 2000;

  bool Means(Meaning meaning) const { return (meanings >> static_cast<unsigned>(meaning) & 1u) != 0; }
  void Set(Meaning meaning, bool holds = true) {
    if (holds) meanings |= uint32_t{1} << static_cast<unsigned>(meaning);
  }
};

inline constexpr uint32_t kNobody = 0xffffffffu;

// How many operations each rank of a communicator has launched, by kind, at one moment (NCCL RAS).
struct LaunchCounts {
  uint64_t comm = 0;
  int32_t comm_size = -1;
  GroupRank group_rank;
  std::string host;
  int64_t pid = -1;
  int32_t device = -1;
  bool responsive = true, dead = false;
  int64_t counts[16] = {};  // by OpKind; -1: not counted
  SourceRef source;
  int32_t ranks = 1;       // how many ranks have these counts; group_rank is unknown where it is more than one
  int64_t all_kinds = -1;  // all kinds together, where the report does not tell them apart (NCCL before 2.26)
  std::string status;      // "INIT", "RUNNING", "FINALIZE", "ABORT", "NOCOMM" (answers, but knows no such communicator)
  int64_t wall_ns = kNoTime;  // when it was asked, the writer's local clock
  int8_t moved = -1;  // against the answer before in the same file: 1 launched more, 0 did not, -1 there is none
};

}  // namespace tacet
