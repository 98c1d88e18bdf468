// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/host_listing.h"
#include "base/port_state.h"
#include "base/source_ref.h"
#include "model/events/nccl_warnings.h"
#include "model/ids.h"

namespace tacet {

inline constexpr uint32_t kNobody = 0xffffffffu;  // no speaker, no process

// What an event tells beyond who, when and where: one struct for each kind of content, held by Event::detail. Which
// kind of event has which is said by PayloadOf of model/events/event_payload.h.
// In all of them -1 is a number that was not told, and an empty string words that were not told.

// A place in code: of a user's Python, or of NCCL's sources.
struct CodePlace {
  std::string function, file;
  uint32_t line = 0;
  bool operator==(const CodePlace&) const = default;
};

// ---- life of a process ----

struct ProcessStart {
  int64_t world_size = -1;
};

struct Progress {
  int64_t step = -1;
  int64_t rising = -1;       // how many lines up to this one have each told a higher step
  int64_t lines = -1;        // how many lines of progress up to this one
  uint32_t line_before = 0;  // the line of the file before it that told a lower step; 0: there is none
  bool of_epoch = false;     // the number is that of an epoch
};

struct ProcessFinish {
  std::string how;
  bool said = false;    // in the program's own words, behind which it begins nothing else
  bool of_job = false;  // it is told of the whole job, by its launcher, a scheduler or the trainer
};

// How a process ended, from a launcher, a scheduler or a shell.
struct ProcessEnd {
  int64_t code = -1;  // the exit code; negative: the signal
  std::optional<int32_t> mpi_error;
  std::optional<bool> first_failure;  // torchrun's "first observed failure", and its other failures
  bool of_pod : 1 = false;            // Kubernetes tells it of a pod; the code may be unknown (255)
  bool with_step : 1 = false;         // the scheduler ended it together with its step or job, and gives no reason
  bool named_first : 1 = false;       // mpirun and horovodrun: the first process that exited with an error
  bool first_only : 1 = false;        // its launcher ends the others then, and tells nothing of them (mp.spawn)
  bool of_script : 1 = false;         // never started: the scheduler's own copy of the job script
  bool by_path : 1 = false;           // never started: it is named by a path, and so PATH plays no part
  bool spared_by_ray : 1 = false;     // Ray counts workers that crashed there, and none that it killed for memory
  int32_t local_rank = -1;            // the rank on its node
  std::string how;                    // the signal's name, "MPI_Abort", or what else is told of the end
  std::string sentence;               // what happened, where the words of the message say it
  std::string host;                   // of the process, where the line tells it
  std::string inside;                 // the library or function of the innermost frame below the signal handler
  std::string log_file;               // where the launcher says that the process wrote its output
};

// A process that ended itself: terminate called, a fatal error of Python.
struct Abort {
  std::string reason;
  std::string sentence;  // what happened, where the words of the message say it
  CodePlace place;
};

struct Segfault {
  std::string process;
  CodePlace place;
};

// ---- PyTorch ----

struct WatchdogTimeout {
  int64_t timeout_ms = -1, elapsed_ms = -1;
  int64_t elements = -1;  // NumelIn
  CodePlace place;        // the caller, of the stack that follows
  int64_t elements_out = -1;
  std::string bar;  // a progress bar of work that goes on in the same output at that time: "Tokenizing: 36%"
  uint32_t bar_line = 0;
  int64_t bar_left_s = -1;  // what the bar expects to need still
};

// The numbers of the last operation enqueued and completed in a group.
struct WorkCounters {
  int64_t last_enqueued = -1, last_completed = -1;
};

struct FilePath {
  std::string path;
};

// Threads of XLA wait until all of one operation have arrived. XLA says so after some seconds, and says again when the
// wait ends.
struct XlaWait {
  std::string name;  // "initialize clique", "rendezvous of collective-permute"; of a compilation what is compiled
  int64_t seconds = -1;
  int64_t expected = -1;     // threads of this process
  int64_t arrived = -1;      // of them
  int64_t devices = -1;      // of the whole clique
  bool gave_up = false;      // XLA ends the process
  bool passed = false;       // it went on
  bool compiling = false;    // no wait for others: the compiler is slow
  bool all_joined = false;   // all have arrived, and the one that works for them does not finish
  uint32_t passed_line = 0;  // the line that says that it went on
  int64_t waited_s = -1;     // until then, by the times of the lines
};

struct HeartbeatStuck {
  int64_t seconds = -1;
  std::string reason;
  bool waits_for_workers = false;  // an engine whose workers take no work: it is they who stand still
};

// Who is gone: a process of the job, the store of torchrun's rendezvous, a launcher's daemon on another node, JAX's
// coordination service, which process 0 runs.
enum class PeerKind : uint8_t { process, rendezvous, daemon, coordinator };

struct LostPeer {
  std::string address;
  bool ends_itself = false;  // the process that tells it came to the end of its program later
  PeerKind kind = PeerKind::process;
  bool closing = false;  // the one that tells it was shutting down by itself
};

struct MismatchReport {
  std::string aspect;     // "shape", "dtype", "op", "seq", "device"; "tensor" of Horovod's warning about a stall
  int64_t elements = -1;  // of the rank that is named first
  int64_t expected = -1;  // of the other one, where the shapes differ; its number where only the numbers differ
  std::string tensor, other_tensor;  // Horovod: in which each side waits
  bool by_horovod = false;           // its coordinator compared what ranks submitted; which rank is which is not told
  bool by_gloo = false;              // ... or gloo what came with what was expected; the same holds
};

// Who has not joined an operation is in Event::ranks.
struct DesyncReport {
  std::vector<Rank> waiting;  // who has joined, as far as the report lists them
  std::string tensor;         // the first that it names
};

struct BarrierFailure {
  int64_t timeout_ms = -1;
  bool all_listed = false;  // all who did not reach it are named; otherwise the first by its number
};

struct DdpParameters {
  std::string names;
  bool search_is_on = false;  // find_unused_parameters=True
  uint32_t list_line = 0;     // the line that lists the names, where it is not that of the error
};

// An assertion in a kernel of the program: "Indexing.cu:1289: Assertion `index < size`".
struct DeviceAssertion {
  std::string words;
};

// A data loader's worker, a child of the rank, ended.
struct LoaderWorkerEnd {
  std::string pids;    // as they are listed
  int64_t signal = 0;  // 0: not told
};

// What an error means, in a sentence.
struct ErrorReason {
  std::string sentence;
};

// What the message of a known error names, as a clause: "x.weight is [8, 4] in the checkpoint and ...".
struct ErrorObject {
  std::string words;
};

// The address that refused a connection: "10.0.0.4:29500".
struct RefusingPeer {
  std::string address;
};

// What a process was about to do when it failed, by the frames of its traceback.
enum class Activity : uint8_t { not_told, setup, loading, saving, shutdown, data, forward, backward };

// An uncaught exception of Python, or an error that a program or a library prints.
struct Raised {
  std::string type;  // "ValueError", "an MPI error in MPI_Recv"
  CodePlace place;   // the innermost user frame
  std::variant<std::monostate, DeviceAssertion, LoaderWorkerEnd, ErrorReason, ErrorObject, RefusingPeer> about;
  Activity during = Activity::not_told;
  bool in_thread = false;      // it ended a thread beside the main one, which goes on
  bool relative_path = false;  // the file that the message names is told by a relative path
  bool caught_there =
      false;  // all its frames are of the function that raised it, which is none that a program begins in
  bool points_back = false;    // its own words say that the reason stands in other lines
  std::string_view refusal;    // id of model/events/refusals.h, which lives forever; empty: none of these
  bool first_only = false;     // its launcher passes on the first error and no other (mp.spawn)
  bool in_collective = false;  // raised below a call of torch.distributed
  bool of_job = false;         // its frames or words are of a launcher or of a job of several processes
  bool of_parent = false;      // a child process could not read what its parent pickled for it
  uint32_t told_line = 0;      // the line of a sentence that tells the message, where the traceback is cut before it
};

// An error after which the one that printed it went on.
struct SurvivedError {
  Raised raised;      // empty where it is no exception
  std::string words;  // of the line
  SourceRef source{};
  uint32_t speaker = kNobody;  // who printed it
};

struct CudaError {
  std::string words;      // "out of memory", "an illegal memory access was encountered"
  std::string assertion;  // the one that failed, where it is told
};

struct NcclError {
  int64_t code = -1;         // ncclResult_t, 1 to 8
  std::string result;        // its name
  std::string reason;        // what NCCL says of it
  std::string cure;          // and what to do about it, where the library says so (Ascend's "Solution:")
  bool of_socket = false;    // the call that failed was one on a socket
  uint32_t reason_line = 0;  // the line with the reason, where it is not that of the error
  std::string peer;          // the address of the peer that closed the connection, where the reason tells it
  int64_t elements = -1;     // NumelIn of the operation that it came up in, where the line names one
};

struct StoreWait {
  std::string keys;
  int64_t timeout_ms = -1;
  bool pair = false;  // the communicator of one send or receive; otherwise that of a whole group
  std::string bar;    // a progress bar that somebody drew into the same output at that time: "Tokenizing: 90%"
  bool of_group = false;  // members of a further group, which all ranks must create together, meet by this key
  std::string own_key;    // a key of the program's own, without what PyTorch puts before it: "tokenizer"
};

// What kept a launcher from starting the ranks, by its own words.
enum class LaunchProblem : uint8_t {
  none,
  daemons,     // mpirun could not start its daemons, and lists what may be the reason
  no_program,  // ... since a shell on another node does not find the daemon
  step,        // srun could not start the tasks
  mpi_plugin,  // srun could not load the plugin for MPI
};

struct Rendezvous {
  int64_t joined = -1, expected = -1;
  bool waiting = false;  // nobody has given up yet
  LaunchProblem launch = LaunchProblem::none;
  std::string target;     // who did not answer, where it is told: "/job:worker/replica:0/task:0"
  bool of_nodes = false;  // torchrun's agents, one per node, before any rank is started
  std::string key;        // of the store, that the missing rank should have written
  std::string reason;     // of a launcher: its words, or the name of the program that is not found
  std::string host;       // ... the node that it names
  bool refused = false;   // ... it refuses the controller's credential
};

// Who cannot be reached: the store, or another node by ssh.
enum class Unreachable : uint8_t {
  store,
  ssh,
  ssh_unknown_host,
  ssh_slots,  // it got "node7:4", a host with its number of slots, for a name
};

struct StoreUnreachable {
  std::string address;
  int64_t timeout_ms = -1;
  Unreachable how = Unreachable::store;
  bool by_agent = false;  // torchrun's agent tells it, before any rank is started
  std::string last_try;   // what a try before it ran into: "(errno: 111 - Connection refused)"
  uint32_t try_line = 0;  // that line
};

// DDP compares the models of all ranks before it starts.
struct ModelMismatch {
  int64_t parameter = -1;        // -1: their number differs
  std::string aspect;            // "the shape", "the strides", "the number of parameters"
  std::string value;             // the shape or the numbers, where they are told
  int64_t own = -1, other = -1;  // where their number differs: how many each of the two ranks has
};

struct ConnectFailure {
  std::string address;
  std::string words;  // the system's: "Connection refused"
};

// ---- NCCL ----

struct Version {
  std::string number;  // "2.28.9+cuda13.0", and of the CUDA driver "12040"
};

struct CommunicatorSetup {
  int64_t ranks = -1, device = -1;
  std::string bus_id;
};

struct CommunicatorEnd {
  int64_t ranks = -1;
  std::string how;  // "destroy", "abort", "revoke"
};

struct EnvironmentSetting {
  std::string name, value;
};

struct NetworkName {
  std::string name;  // "Socket", "IB"
};

enum class DeviceUse : uint8_t { data, bootstrap, setup };  // setup: the sockets beside InfiniBand

struct NetworkDevice {
  std::string name;     // "eth0", "mlx5_0:1/IB"
  std::string address;  // of an interface
  DeviceUse use = DeviceUse::data;
  bool passed_over = false;  // a sentence says that NCCL uses sockets instead of it
};

enum class TransportDirection : uint8_t { both, send, receive };

// The connections of one kind between two ranks.
struct PairTransport {
  std::string via;     // "P2P/CUMEM", "SHM/direct/direct", "NET/IB/0/GDRDMA"
  int64_t lines = -1;  // how many say so
  TransportDirection direction = TransportDirection::both;
};

// What is wrong with the GID that an adapter was to be connected with, by NCCL's words.
enum class GidProblem : uint8_t { none, link_local, empty };

struct Warning {
  std::string_view id;  // of the table of model/events/nccl_warnings.h, which lives forever
  std::string object;   // the path, address or device that the message names
  CodePlace place;      // in NCCL's sources
  NcclWarningRole role = NcclWarningRole::notice;
  int64_t number = -1;  // see NcclWarningNumbers::value
  int64_t times = -1;
  GidProblem gid = GidProblem::none;
  bool speaks_http = false;  // what connected sent the first bytes of an HTTP request
  bool over_tcp = false;     // the connection that failed was one of TCP
  int64_t gid_index = -1;    // where there is such a problem
  int64_t peer_lid = -1;     // the peer's port in the InfiniBand subnet
  bool dynamic = false;      // UCX: over a dynamically connected queue pair (DC)
};

struct NodeCount {
  int64_t nodes = -1, local_ranks = -1;
};

struct GpuDirect {
  std::string adapter;
  bool on = false;
};

struct RasReport {
  std::string event;  // "PEER_DEAD"
  int64_t times = -1;
};

// ---- kernel, scheduler and host ----

enum class MemoryLimit : uint8_t { not_told, host, cgroup };

// Ray's memory monitor and systemd-oomd kill before the kernel has to.
enum class MemoryKiller : uint8_t { not_told, ray, systemd, container_start };

// What the message tells of whom it killed.
struct MemoryVictim {
  MemoryKiller by = MemoryKiller::not_told;
  std::string who;  // the pod, Ray's actor, or the unit of systemd
  std::string host;
  std::string amount;  // the limit, "512Gi", or what was used on the node: "957.80GB of 1007.51GB"
};

struct OomKill {
  std::string process;  // or the scheduler that tells it
  MemoryLimit limit = MemoryLimit::not_told;
  int64_t resident_bytes = -1, times = -1;
  MemoryVictim victim = {};
};

// How full the memory of the host was shortly before a process was killed: "98.6 %".
struct HostMemoryUse {
  std::string share;
};

// A tool that compares the speed of ranks (nvidia-resiliency-ext, NeMo) names slow ones: they are in Event::ranks.
struct SlowRankReport {
  std::string host;   // of the slowest of them
  std::string score;  // its score beside that of the best, "0.58"
  int64_t listed = -1;
};

struct Xid {
  int64_t number = -1;        // Xid of a GPU, SXid of an NVSwitch; 0 for a fault of an AMD GPU
  std::optional<bool> fatal;  // where the driver says so
  int64_t times = -1;
  std::string pci;
  std::string process;  // as the driver names it: "jupyter"
  std::string words;    // of an AMD GPU, whose faults have no numbers: "a page fault"
};

enum class ErrorSeverity : uint8_t { not_told, corrected, uncorrected, fatal };  // fatal: or the device is gone

// ECC and PCIe.
struct HardwareError {
  std::string device;  // the PCI address, or the memory controller
  ErrorSeverity severity = ErrorSeverity::not_told;
  int64_t times = -1;
  bool of_gpu = false;  // the driver of a GPU tells it of its own device
};

struct HungTask {
  std::string process;
  std::string module;  // of the kernel, in which it waits, by its call trace: "nvidia_uvm"
  int64_t seconds = -1, times = -1;
};

struct NetworkLink {
  std::string device;  // interface or HCA
  int64_t times = -1;
};

struct IommuFault {
  std::string pci;
  int64_t times = -1;
};

// A file system over the network: whoever uses it waits until its server answers again.
struct StorageLoss {
  std::string system;  // "Lustre", "NFS", "Ceph"
  std::string target;  // "scratch-OST0017"; of NFS the server
  std::string server;  // its address, where told beside the target
  bool fails = false;  // operations fail instead of waiting
};

struct TimeLimit {
  std::string scheduler;  // or the reason that it gives
};

struct NodeFailure {
  std::string node;
  bool by_heartbeat = false;  // nobody saw it fail: its signs of life did not come
};

// Why somebody outside ended the job. The names are those of the schedulers' own states.
enum class SchedulerKill : uint8_t {
  cancelled,
  time_limit,
  preempted,
  requeued,
  evicted,
  reclaimed,
  signal,
  unkillable,  // its processes did not end when they were killed
  limit,       // of threads, processes, CPU time; time and memory have their own
};

struct OutsideEnd {
  SchedulerKill why = SchedulerKill::cancelled;
  std::string by;   // who, or what for: "Slurm", "step", "SIGTERM", the resource that ran out, the host
  std::string who;  // the pod that was ended
  std::string use;  // what its container used of the resource that ran out: "812Gi"; of what the limit was: "threads"
};

enum class SpaceLimit : uint8_t { not_told, device, quota };

struct NoSpace {
  std::string path;
  SpaceLimit limit = SpaceLimit::not_told;
};

struct PortTaken {
  int64_t port = -1;
  bool of_store = false;  // by the frames above it, the store of the rendezvous was to listen there: rank 0's
  bool of_spawn = false;  // torch.multiprocessing.spawn started the process
};

// What is known of a fabric that is not ready.
enum class FabricFault : uint8_t {
  not_started,  // CUDA does not start (error 802)
  bad_status,   // nvidia-smi -q prints another status than Success
  out_of_sync,  // the driver's state of the fabric is not that of the fabric manager
  no_switch,    // the fabric manager finds no NVSwitch on the host: it is not needed there
  stopped,      // a tool of the host says that the fabric manager does not run
};

// CUDA refuses to set something up: access to a peer's memory, the NVSwitch fabric.
struct CudaRefusal {
  std::string words;
  FabricFault fabric = FabricFault::not_started;
};

// What is wrong between the adapter and the memory.
enum class RdmaFault : uint8_t {
  unknown,
  locked_memory,  // the limit of locked memory is too small
  gpu_memory,     // the adapter cannot register memory of the GPU: no nvidia_peermem, no DMA-BUF
  protection,     // the adapter's access was refused: ACS, IOMMU, a wrong key
  no_device,      // the device file cannot be opened
  queues,         // a queue pair, a completion queue or a protection domain cannot be created
  doorbell,       // the GPU cannot be given the adapter's doorbell, which it rings itself (IBGDA)
};

struct RdmaFailure {
  RdmaFault fault = RdmaFault::unknown;
  bool only_warned = false;  // of a small limit: the library goes on
  std::string device;        // "efa_0", where the kernel tells it
  int64_t code = 0;          // the system's error, 12 of ENOMEM; of a warning, the limit in bytes; 0: not told
  bool may_go_on = false;    // the library may use another adapter, or TCP
};

// Why a job, or a part of it, is not started yet.
enum class PendingWhy : uint8_t {
  not_told,
  no_resources,  // too little is free, or nothing of that size exists
  unknown_node,  // it asks for a node by a name that no node has
  no_match,      // nodes are excluded by a taint, a selector or a constraint
  nodes_down,    // the nodes it asks for are down or drained
  dependency,    // it waits for another job
  never,         // ... which did not end as it should have: it will never start
  limit,         // a limit of the user, the account or the partition
  priority,      // others come first
  held,          // somebody holds it
  begin_time,    // it is scheduled to start later
  volume,        // its storage is not there
};

struct Pending {
  std::string by;                     // "Ray", "Kubernetes", "Slurm"
  std::string who;                    // the pod, the job, or the node that is asked for
  std::string demand;                 // "{'GPU': 1.0} * 15", as it is written
  std::string reason;                 // the words of the scheduler
  int32_t seconds = -1;               // how long it has waited
  int32_t gpus_used = -1, gpus = -1;  // of the whole cluster
  int32_t gpus_wanted = -1;
  int32_t gang_pending = -1, gang = -1;  // of the pods that start together: those that cannot be placed, and all
  PendingWhy why = PendingWhy::not_told;
};

// What a sentence says of a job that stands still.
struct ToldPlace {
  std::string where;         // "at the first weight sync", with its preposition
  bool data_loader = false;  // it stands in a data loader
  bool acs_on = false;       // a listing shows PCIe access control that is on
  bool stopped = false;      // it only says that the job stops, and a stack shows that the process runs
  bool others_wait = false;  // a sentence says that the others wait for one, or in a collective
  int64_t every = -1;        // it pauses again and again: once in so many steps
  std::string steps;         // ... as they are called: "iterations"
  std::string setting;       // ... what is slow is said to be slow with this setting: "NCCL_IB_DISABLE=1"
};

// A program in the text calls what all ranks must call under a condition that only some of them fulfil.
struct GuardedCall {
  std::string call;       // "accelerator.save_state"
  std::string condition;  // "accelerator.is_main_process"
};

// A setting that is said to help, and the part of NCCL's work that it leaves out or changes.
enum class RemedyOf : uint8_t { peer_access, infiniband, gpu_direct, shared_memory, interface };

struct ToldRemedy {
  std::string setting;  // "NCCL_P2P_DISABLE=1"
  RemedyOf of = RemedyOf::peer_access;
};

// A message of a program around the job.
struct SiteNote {
  std::string_view id;     // of the table of model/events/site_messages.h, which lives forever
  std::string subject;     // what the line names: a device, a node, a pod
  bool by_kernel = false;  // it stands in a kernel log
};

using EventDetail =
    std::variant<std::monostate, ProcessStart, Progress, ProcessFinish, ProcessEnd, Abort, Segfault, WatchdogTimeout,
                 WorkCounters, FilePath, XlaWait, HeartbeatStuck, LostPeer, MismatchReport, BarrierFailure,
                 DdpParameters, Raised, CudaError, NcclError, StoreWait, Rendezvous, StoreUnreachable, ModelMismatch,
                 ConnectFailure, Version, CommunicatorSetup, CommunicatorEnd, EnvironmentSetting, NetworkName,
                 NetworkDevice, PairTransport, Warning, NodeCount, GpuDirect, RasReport, OomKill, Xid, HardwareError,
                 HungTask, NetworkLink, IommuFault, StorageLoss, TimeLimit, NodeFailure, OutsideEnd, NoSpace, PortTaken,
                 CudaRefusal, RdmaFailure, DesyncReport, Pending, PortState, ToldPlace, GpuLoad, SpaceUse, ListedNodes,
                 SlowRankReport, HostMemoryUse, PortErrors, GpuCheck, ToldRemedy, SiteNote, GuardedCall>;

}  // namespace tacet
