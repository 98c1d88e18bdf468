// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/source_ref.h"
#include "model/events/event_detail.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// Things that happened once, as a log tells them. What is told beyond the fields of every event is Event::detail;
// PayloadOf of model/events/event_payload.h says which struct of model/events/event_detail.h each kind has. The comments here say
// what else is used.
enum class EventKind : uint8_t {
  // life of a process
  process_started,
  progress,          // a line the job itself prints as it advances (step, iteration)
  process_finished,  // the job says that this rank ended normally, or its communicators were destroyed in order
  process_exited,    // from a launcher or shell
  process_killed,    // killed by the launcher or a scheduler after the fact (SIGTERM, time limit): a consequence
  // PyTorch
  watchdog_timeout,  // group_name, op, seq
  watchdog_status,   // group_name, seq = failed work
  dump_signal,       // peer = rank that asked for it
  dump_started,
  dump_written,
  heartbeat_stuck,           // the watchdog itself makes no progress
  gil_blocked,               // the GIL could not be taken
  program_left,              // the program came to its end, without or with an error, and left its groups behind
  store_lost,                // the TCPStore is gone: rank 0's process is away
  desync_report,             // ranks = lagging ranks, seq, op
  mismatch_report,           // DETAIL: peer = other rank; text = both sides
  monitored_barrier_failed,  // ranks = those that did not come
  ddp_unused_parameters,
  ddp_marked_twice,
  exception,  // an uncaught Python exception: text = message
  cuda_error,
  nccl_error,
  connection_lost,  // peer if known
  abort_signal,     // SIGABRT, terminate called: usually a consequence
  // NCCL
  nccl_version,
  init_started,  // comm, group_rank
  init_completed,
  comm_destroyed,
  comm_aborted,
  environment,
  network,
  interface_used,
  no_device,      // the transport found no device
  device_found,   // a fast device exists
  transport,      // one connection: group_rank -> peer_group_rank
  nccl_warning,   // text = message; see nccl_log/README.md
  mixed_setting,  // found by the reader: a value that must be equal on all ranks differs
  // kernel and scheduler
  oom_kill,  // pid
  xid,       // pid where told
  nvlink_error,
  ecc_error,
  segfault,   // pid
  hung_task,  // pid
  link_down,
  link_up,
  job_time_limit,
  node_failed,
  // RAS
  ras_rank_dead,
  ras_rank_unresponsive,
  ras_rank_missing,
  // kernel, continued
  pcie_error,
  // PyTorch, continued: setting up
  store_wait_timeout,     // waited in vain for keys of the store
  rendezvous_incomplete,  // ranks = those that did not come where told
  store_unreachable,      // could not connect to the store
  // What a process, a launcher or a scheduler says in so many words
  shared_memory_full,
  disk_full,
  port_in_use,
  scheduler_kill,      // somebody outside ended the job
  peer_access_failed,  // one GPU cannot reach another's memory
  rdma_failed,         // memory cannot be registered with, or reached by, the adapter
  fabric_down,         // the NVSwitch fabric is not ready
  model_mismatch,      // DDP: group_rank, peer_group_rank
  connect_failed,      // a connection between ranks cannot be made
  // kernel, continued
  iommu_fault,  // the IOMMU refused a device's access
  // NCCL, continued: setting up
  driver_version,  // of the CUDA driver
  node_count,      // the nodes that a communicator of this process, or the job, spans
  gpu_direct,      // GPUDirect RDMA of an adapter
  // JAX, TensorFlow
  xla_wait,  // threads wait for others before an operation
  // What cluster and host tools list
  start_pending,  // a scheduler has not started the job, or a part of it
  port_state,     // a port of a network adapter
  gpu_load,       // a GPU's utilization and power
  space_use,      // how full a file system is
  node_state,     // nodes of a cluster
  // What a text says that no reader understands
  told_hang,        // whoever pasted the log says that the job stands still
  told_stop,        // ... that it stops, which may be a hang or an end
  told_slow,        // ... that it is slow
  told_not_finite,  // ... that its loss or its gradients are NaN or infinite
  told_wrong,       // ... that its results are wrong
  told_remedy,      // ... that a setting helps
  told_uneven,      // ... that the input of the ranks differs in size
  told_guard,       // a program in the text calls a collective on some ranks only
  unread_error,     // a line reports an error
  // kernel, continued
  storage_lost,  // a file system's server does not answer
  storage_back,  // ... and answers again
  // What a tool beside the job measures
  straggler_report,  // ranks = those that it calls slow
  memory_use,        // how full the host's memory is
  port_errors,       // what the counters of a network port show
  gpu_check,         // a test of the GPUs, and how it went
  // What the kernel, schedulers, container runtimes and tools around the job say
  site_message,
};

// What the words of an event mean, beyond its kind: evidence/meaning/event_meaning.h decides it when the file is read.
enum class Meaning : uint8_t {
  consequence,        // exception, unread_error: it only says that somebody else failed, or how it ended
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
  timed_out,          // a dump was asked for because a collective timed out; end of a process: nobody saw it, its sign
                      // of life did not come in time; exception: the program gave up waiting for something else
  device_assert,      // CUDA: an assertion in a kernel of the program failed
  loader_worker,      // exception: a data loader's worker, a child of the rank, ended
  owner_inferred,     // an error without a name: the launcher tells of one failed rank, and it is given to that one
  reported,           // exception or end of a process: no exception of Python but an error that a program or a library
                      // prints: "an MPI error in MPI_Recv", "a CUDA error"
  by_python,          // end of a process: it ran Python
  refused,            // a connection: the host answers, and nothing listens there
  no_launcher,        // exception: what a launcher sets (RANK, MASTER_ADDR) is not there
  diverged,           // exception: the loss, or a gradient, became NaN or infinite
  of_communication,   // exception: its words tell of a collective, of a timeout or of another rank
  of_ascend,          // it comes from Ascend's libraries (HCCL, CANN)
  not_in_build,       // exception: the library was built without what is asked for
  data_ended,         // exception: the input ran out while others still had some
  in_prose,           // a sentence around the log tells it, and no line of the log
};

// Whose words a message is, where they differ from NCCL's and PyTorch's.
// server: vLLM, SGLang
// other: a library made in NCCL's likeness, of which no more is known
enum class Library : uint8_t {
  not_told,
  hccl,
  oneccl,
  jax,
  tensorflow,
  paddle,
  mpi,
  neuron,
  server,
  nvshmem,
  other,
  ucx,
  libfabric
};

// Whose GPU it is, by the words of a message: tools and settings of one maker are of no use for another's.
enum class GpuMaker : uint8_t { not_told, amd, intel, google };

// What As() answers where another payload is held.
template <class T>
inline const T kEmptyDetail{};

struct Event {
  EventKind kind{};
  OpKind op = OpKind::unknown;
  // Four bits each, so that `folded` has room: there are millions of these.
  Library library : 4 = Library::not_told;
  GpuMaker maker : 4 = GpuMaker::not_told;
  uint8_t folded = 0;         // lines like this one that a logger left out (Ray); 255: at least as many
  uint32_t meanings = 0;      // bits by Meaning
  uint32_t speaker = 0;       // index into Fragment::speakers, later into Incident::processes; kNobody where unknown
  Rank rank;                  // filled by the assembly, or by the reader when the line itself names it
  int64_t wall_ns = kNoTime;  // UTC where the zone is known, else the writer's local clock; kNoTime where absent
  SourceRef source;
  int64_t seq = -1;
  int64_t pid = -1;
  uint64_t comm = 0;  // commId, or the communicator's address where no id is printed
  GroupRank group_rank, peer_group_rank;
  Rank peer;
  int32_t clock_s = -1;  // the time where its year is not written: month * 100 + day in days, and the second of the day
  std::string group_name;
  std::string group_description;
  std::string text;         // the message; capped, see kMaxText
  std::vector<Rank> ranks;  // of the end of a process: more of which the same is said; the assembly writes them out
  EventDetail detail;       // of the type that PayloadOf(kind) names

  static constexpr size_t kMaxText = 2000;

  // Written once, in event.cc: whoever holds events would else compile all payloads again.
  Event();
  Event(const Event&);
  Event(Event&&) noexcept;
  Event& operator=(const Event&);
  Event& operator=(Event&&) noexcept;
  ~Event();

  bool Means(Meaning meaning) const { return (meanings >> static_cast<unsigned>(meaning) & 1u) != 0; }
  void Set(Meaning meaning, bool holds = true) {
    if (holds) meanings |= uint32_t{1} << static_cast<unsigned>(meaning);
  }

  // An empty T where the event holds another payload.
  template <class T>
  const T& As() const {
    const T* held = std::get_if<T>(&detail);
    return held ? *held : kEmptyDetail<T>;
  }
  // The payload to write to: the one that is held, or a new one in place of another.
  template <class T>
  T& Make();
};

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
  uint32_t lines[16] = {};  // where each of them stands, of the same file; 0: in the line of `source`
  uint64_t offsets[16] = {};
  SourceRef source;
  int32_t ranks = 1;       // how many ranks have these counts; group_rank is unknown where it is more than one
  int64_t all_kinds = -1;  // all kinds together, where the report does not tell them apart (NCCL before 2.26)
  std::string status;      // "INIT", "RUNNING", "FINALIZE", "ABORT", "NOCOMM" (answers, but knows no such communicator)
  int64_t wall_ns = kNoTime;  // when it was asked, the writer's local clock
  int8_t moved = -1;  // against the answer before in the same file: 1 launched more, 0 did not, -1 there is none
};

}  // namespace tacet
