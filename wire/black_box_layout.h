// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The black box: one memory-mapped file of fixed size, written by the NCCL profiler plugin of one process with plain
// stores and atomics, read by anybody at any time: while it is written, and after the writer was killed.
//
//     Header | communicators | groups | operations | proxy operations | peers | ring of finished operations
//
// Everything is little-endian and 8-byte aligned. A reader trusts nothing: offsets and counts come from the header and
// must lie inside the file; a slot counts only while its word says so; a ring record counts only when its sequence word
// fits its place and its checksum fits its content, otherwise it is torn (being written, or the writer died in it).
//
// Times are ticks of the counter named by Header::tick_source. They become nanoseconds through the clock pairs: `first`
// was taken when the box was made, `latest` is renewed with every heartbeat.
namespace tacet::box {

inline constexpr char kMagic[8] = {'T', 'A', 'C', 'E', 'T', 'B', 'O', 'X'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kByteOrder = 0x01020304;
inline constexpr uint16_t kNoComm = 0xffff;

enum class TickSource : uint32_t { monotonic_ns = 0, arm_counter = 1, x86_tsc = 2 };
enum class EndState : uint32_t {
  running = 0,
  exited = 1
};  // exited: exit() or return from main; a kill leaves running
enum class RankSource : uint32_t { unknown = 0, environment = 1, communicator = 2 };

enum class Kind : uint8_t {
  unknown,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  send_recv,
  put_signal,
  signal,
  wait_signal,
};
enum class Type : uint8_t {
  unknown,
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  bfloat16,
  float8_e4m3,
  float8_e5m2,
};
enum class Algorithm : uint8_t { unknown, tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat, symmetric };
enum class Protocol : uint8_t { unknown, ll, ll128, simple };

// What a network step waits for. The first three belong to sends, the others to receives.
enum class Wait : uint8_t { send_gpu, send_credit, send_network, recv_data, recv_flush, recv_gpu };
inline constexpr int kWaits = 6;
// The same by cause, for one operation.
enum class Cause : uint8_t { own_gpu, peer_credit, network, data };
inline constexpr int kCauses = 4;
constexpr Cause CauseOf(Wait wait) {
  switch (wait) {
    case Wait::send_credit: return Cause::peer_credit;
    case Wait::send_network: return Cause::network;
    case Wait::recv_data: return Cause::data;
    default: return Cause::own_gpu;  // the flush is this host's PCIe, too
  }
}

// Why something was not recorded.
enum class Drop : uint8_t {
  op_table_full,     // one operation lost: every slot holds one that is still in flight
  proxy_table_full,  // one network operation lost, its collective is kept
  comm_table_full,   // one communicator, with all that runs on it
  peer_table_full,   // the waits of one network operation were not added to a peer
  ring_busy,         // one finished operation lost: its ring place is still being written, a whole lap later
  stale_handle,      // an event for an operation that was already given up
  unknown_context,   // an event of a communicator that is not, or no longer, known
  contended,         // gave up after many lost races for one word
  output_lost,       // a line of the JSON or Prometheus output could not be written
  output_lapped,     // finished operations overwritten before the output thread saw them
};
inline constexpr int kDropKinds = 32;

struct ClockPair {
  uint64_t ticks;
  int64_t monotonic_ns;
  int64_t wall_ns;
};

struct Table {
  uint64_t offset;
  uint32_t count;   // a power of two, except for communicators
  uint32_t stride;  // bytes from one entry to the next
};

// What the writer of a box saw of a sibling, a process of the same job on the same host whose heart had stopped. A log
// of changes: one entry for each state, in the order seen, of which only `seen_wall_ns` moves on. A process that was
// killed or stopped cannot tell so itself.
enum class SightState : uint32_t {
  none,
  running,  // it beats again, or exists and is not stopped
  stopped,
  uninterruptible,
  zombie,
  gone
};
struct Sight {
  int32_t pid;
  SightState state;
  int32_t rank;  // as the sibling's box says, -1 unknown
  uint32_t pad;
  uint64_t process_start_jiffies;
  int64_t since_wall_ns;  // of the first look that showed the state
  int64_t seen_wall_ns;   // of the latest
};
inline constexpr int kSights = 32;
static_assert(sizeof(Sight) == 40);

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint32_t header_bytes;
  uint32_t ready;  // 1 once all of the rest is filled in
  uint64_t file_bytes;
  Table comms, groups, ops, proxies, peers, ring;

  uint64_t tick_hz;
  TickSource tick_source;
  uint32_t heartbeat_ms;  // 0: nobody beats
  ClockPair first;
  uint64_t clock_updates;  // `latest[clock_updates % 2]` is whole
  ClockPair latest[2];
  uint64_t heartbeats;
  uint64_t heartbeat_ticks;
  EndState end_state;
  uint32_t end_reserved;
  uint64_t end_ticks;

  // Counters that NCCL's threads add to, a cache line each.
  uint64_t ring_head, ring_pad[7];  // records ever claimed
  uint64_t op_next, op_pad[7];      // operations ever numbered; gaps where a slot was taken
  uint64_t proxy_next, proxy_pad[7];
  uint64_t group_next, group_pad[7];
  uint64_t drops[kDropKinds];  // by Drop

  int32_t pid;
  int32_t rank;        // global; -1 unknown
  int32_t world_size;  // -1 unknown
  int32_t local_rank;  // -1 unknown
  RankSource rank_source;
  uint32_t api_version;   // of the profiler API NCCL chose
  uint32_t nccl_version;  // as ncclGetVersion tells, 0 unknown
  uint32_t event_mask;
  uint64_t process_start_jiffies;  // field 22 of /proc/self/stat: with pid and boot id it names the process for ever
  uint32_t handle_salt;
  int32_t restart_count;  // torchrun's, -1 unknown
  char boot_id[40];
  char host[64];
  char job[64];
  char program[64];
  char slurm_job_id[32];
  char slurm_step_id[32];
  char kubernetes_pod[128];
  char kubernetes_namespace[64];
  char torchelastic_run_id[64];
  char gpu_uuid[48];
  char plugin_version[16];
  uint64_t pid_namespace;  // its inode; 0: unknown, pids mean nothing to others
  Sight sights[kSights];
  uint8_t reserved[1376];
};
static_assert(sizeof(ClockPair) == 24 && sizeof(Table) == 16);
static_assert(sizeof(Header) == 4096);

// A communicator. `word` is generation << 32 | CommFlag.
enum CommFlag : uint32_t { kCommUsed = 1, kCommLive = 2 };  // used but not live: finalized
struct Comm {
  uint64_t word;
  uint64_t comm_id;  // NCCL's commHash; 0 until the first operation tells it (API v1 to v3)
  int32_t rank;      // in this communicator, -1 unknown
  int32_t size;      // -1 unknown
  int32_t nodes;     // -1 unknown
  int32_t device;    // CUDA ordinal, -1 unknown
  uint64_t created_ticks;
  uint64_t finalized_ticks;
  uint8_t pad0[16];
  uint64_t collectives;  // issued
  uint64_t transfers;    // sends and receives issued
  uint64_t last_issue_ticks;
  uint64_t replays;  // collectives that CUDA graphs ran again: when they do is not in the order of the calls
  uint8_t pad1[32];
  uint64_t finished;              // operations seen to end
  uint64_t last_finished_serial;  // of the latest operation, in order of issue, seen to end, plus 1; 0 none
  uint64_t last_finished_ticks;
  uint8_t pad2[40];
  char name[64];
};
static_assert(sizeof(Comm) == 256);

// One NCCL group call as the host goes through it. `word` is serial << 8 | GroupState; `none` while it is filled in.
enum class GroupState : uint8_t { none, open, filled, ending, launching, launched, done };
struct Group {
  uint64_t word;
  uint64_t since_ticks;         // of its first call, or of the launch it is in or has made; 0 before
  uint64_t begin_ticks;         // of its first call
  uint64_t launch_begin_ticks;  // of the latest kernel launch, 0 none
  uint64_t launch_end_ticks;
  uint64_t stream;
  uint16_t comm;  // that opened it
  uint8_t captured;
  uint8_t pad[13];
};
static_assert(sizeof(Group) == 64);

// One operation that a rank issued on a communicator.
enum OpFlag : uint16_t {
  kOpGraphReplay = 1,      // one replay of a captured operation
  kOpCaptured = 2,         // was put into a CUDA graph; did not run
  kOpCopyEngine = 4,       // runs on copy engines: no kernel, its end is not told
  kOpNoApiEvent = 8,       // first seen when it was enqueued (API v1 to v4)
  kOpChannelsAtMost = 16,  // `channels` is an upper bound, or 0: not told
  kOpEndImplied = 32,      // a later operation of its communicator ended, so this one did; nobody saw it
  kOpEndUnknown = 64,      // given up without its end being told
  kOpKernelTimed = 128,    // kernel events can be expected
  kOpSymmetric = 256,
  kOpHostClock = 512,  // channels carry no GPU time (API v3)
  kOpPlanned = 1024,   // NCCL has planned it (Coll, P2p, CeColl)
};
struct Op {
  uint64_t serial;  // order of issue in the whole process; its slot is serial % count
  uint64_t comm_id;
  uint64_t seq;       // number among its communicator's collectives, its sends and receives, or its replays, from 1
  uint64_t func_seq;  // NCCL's own number by communicator and function
  uint64_t count;     // elements, as the caller said where known
  uint64_t stream;
  uint64_t user_tag;
  uint16_t comm;  // slot, kNoComm
  Kind kind;
  Type type;
  Algorithm algorithm;
  Protocol protocol;
  uint8_t channels;
  uint8_t reserved;
  int32_t peer;  // root of a rooted collective or the other side of a send/recv, -1 none
  uint16_t flags;
  uint8_t channels_started;  // only in the ring; an operation in flight keeps them in its word
  uint8_t channels_stopped;
  uint32_t group;        // low bits of the group's serial, 0 none
  uint32_t check;        // ring only
  uint64_t issue_ticks;  // the host called NCCL
  uint64_t reserved_ticks;
  uint64_t launch_ticks;         // its kernel launch returned
  uint64_t enqueue_ticks;        // all host work is done; where a launch was seen, the end of that
  uint64_t start_ticks;          // the first channel was seen to start
  uint64_t finish_ticks;         // the last channel was seen to stop
  uint64_t gpu_start_ns;         // GPU clock, earliest channel
  uint64_t gpu_finish_ns;        // GPU clock, latest channel
  uint64_t wait_ticks[kCauses];  // summed over its network steps
  uint64_t network_bytes;
};
static_assert(sizeof(Op) == 184);

// The GPU's times are those of this operation. NCCL hands them out by a count of kernels; sends and receives that run
// as one kernel put it out of step, and the start is then that of an earlier one. `in_flight_ns`: from the host's call
// to the moment in which the end was noticed, by the host's clock; negative: not known. No kernel runs for longer.
constexpr bool HasGpuTimes(const Op& op, int64_t in_flight_ns) {
  constexpr uint64_t kSlackNs = 1'000'000;
  if (op.gpu_start_ns == 0 || op.gpu_finish_ns < op.gpu_start_ns) return false;
  const uint64_t ns = op.gpu_finish_ns - op.gpu_start_ns;
  return ns <= uint64_t{INT64_MAX} && (in_flight_ns < 0 || ns <= static_cast<uint64_t>(in_flight_ns) + kSlackNs);
}

// Word of an operation slot: generation << 32 | flags | proxies open << 16 | channels stopped << 8 | channels started.
inline constexpr uint64_t kWordStarted = 1, kWordStopped = 1u << 8, kWordProxy = 1u << 16;
inline constexpr uint64_t kWordLive = 1u << 26;      // the slot holds an operation
inline constexpr uint64_t kWordEnqueued = 1u << 28;  // the host is done with it
inline constexpr uint64_t kWordBusy = 1u << 31;      // being filled or emptied
constexpr uint32_t WordStarted(uint64_t word) { return word & 0xff; }
constexpr uint32_t WordStopped(uint64_t word) { return word >> 8 & 0xff; }
constexpr uint32_t WordProxies(uint64_t word) { return word >> 16 & 0x3ff; }
constexpr uint32_t WordGeneration(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

struct OpSlot {
  uint64_t word;
  Op op;
  uint8_t pad[64];
};
static_assert(sizeof(OpSlot) == 256);

// One network operation: one channel's traffic with one peer. `word` is generation << 32 | kWordLive / kWordBusy.
// A lane holds a step in progress: (Wait + 1) << 56 | ticks since Header::first; 0 is empty. Lane = step % kLanes.
inline constexpr int kLanes = 16;
inline constexpr uint64_t kLaneTicks = (uint64_t{1} << 56) - 1;
enum ProxyFlag : uint8_t { kProxySend = 1, kProxyForeign = 2 };  // foreign: runs here for another process (PXN)
struct ProxySlot {
  uint64_t word;
  uint32_t op_slot;  // of its operation, 0xffffffff none
  uint32_t op_generation;
  uint16_t comm;
  uint8_t channel;
  uint8_t flags;
  int32_t peer;
  int32_t steps;  // to do
  int32_t chunk_bytes;
  uint32_t steps_begun;
  uint32_t steps_done;
  uint64_t begin_ticks;
  uint64_t progress_ticks;  // a step ended
  uint64_t bytes;
  int32_t origin_pid;
  uint32_t peer_slot;
  uint64_t wait_ticks[kWaits];
  uint64_t lanes[kLanes];
  uint8_t pad[8];
};
static_assert(sizeof(ProxySlot) == 256);

// Sums over all ended network operations with one peer of one communicator. `key` is comm slot << 32 | peer + 1.
struct Peer {
  uint64_t key;
  uint64_t comm_id;
  uint64_t wait_ticks[kWaits];  // over steps; steps overlap, so a sum may exceed the time that passed
  uint64_t longest_ticks[kWaits];
  uint64_t sends, recvs;  // network operations
  uint64_t bytes_sent, bytes_received;
  uint64_t steps;
  uint8_t pad[40];
};
static_assert(sizeof(Peer) == 192);

// One finished (or given up) operation. `seq` is 2 * (index + 1) when whole, odd while written; its place is
// index % count.
struct Record {
  uint64_t seq;
  Op op;
};
static_assert(sizeof(Record) == 192);

inline constexpr int kOpWords = sizeof(Op) / 8;
inline constexpr int kCheckWord = 9;  // index of the word that holds `group` and `check`
static_assert(__builtin_offsetof(Op, group) == 72 && __builtin_offsetof(Op, check) == 76);

// Checksum of a ring record: every word weighs by its place, so neither mixed nor shifted content fits. Needed beside
// the sequence word because a copy made by `cp` of a live box may take both from different moments. The word that holds
// `check` counts without it. Four sums, so that none waits for the other.
class CheckSum {
 public:
  explicit constexpr CheckSum(uint64_t seq) : sums_{seq, 1, 2, 3} {}
  constexpr void Add(int place, uint64_t word) { sums_[place % 4] = sums_[place % 4] * 0xd1342543de82ef95u + word; }
  constexpr uint32_t value() const {
    uint64_t all = 0;
    for (const uint64_t sum : sums_) all = (all ^ sum ^ sum >> 32) * 0x9e3779b97f4a7c15u;
    return static_cast<uint32_t>(all >> 32);
  }

 private:
  uint64_t sums_[4];
};

inline uint32_t CheckOf(const Op& op, uint64_t seq) {
  CheckSum sum(seq);
  for (int i = 0; i < kOpWords; ++i) {
    uint64_t word = 0;
    __builtin_memcpy(&word, reinterpret_cast<const char*>(&op) + 8 * i, 8);
    sum.Add(i, i == kCheckWord ? word & 0xffffffffu : word);
  }
  return sum.value();
}

}  // namespace tacet::box
