// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "analysis/calls/group_calls.h"
#include "analysis/calls/p2p_match.h"

namespace tacet {

enum class WaitReason : uint8_t {
  not_entered,  // has not issued the operation
  not_started,  // issued it, but its GPU has not begun it while others' have
  silent,       // nothing is recorded of it
};

struct Missing {
  Rank rank;
  WaitReason reason{};
};

// An unfinished operation, who is held up in it, and by whom. Waits are kept per operation, not per pair of ranks: a
// collective of thousands has thousands of waiters and may have thousands missing.
struct BlockedOperation {
  GroupIndex group = GroupIndex::none;
  uint32_t seq = 0;
  bool point_to_point = false;
  const Call* call = nullptr;          // of the waiter that issued it first
  const CallStream* stream = nullptr;  // of that waiter
  std::vector<Rank> waiters;           // whose first held-up operation this is
  std::vector<Missing> missing;
  bool somebody_not_entered = false;  // among the missing
};

// True when one of the ranks (sorted) waits in the operation.
bool HasWaiterIn(const BlockedOperation& operation, const std::vector<Rank>& ranks);

// Why a rank is where the waiting ends.
enum class RootKind : uint8_t {
  not_entered,      // recorded, has nothing unfinished, and has not issued what others wait in
  gpu_not_started,  // issued it, its GPU has not begun it
  gpu_behind,  // its peers finished operations that it has not: its GPU, or the noticing of its events, stands still
  silent,      // left no record of this kind
};

// Its host did its part: what does not come is its GPU.
inline bool HasIssued(RootKind kind) { return kind == RootKind::gpu_not_started || kind == RootKind::gpu_behind; }

struct WaitRoot {
  Rank rank;
  RootKind kind{};
  const Call* call = nullptr;  // the operation the nearest waiters are in (gpu_behind: its own)
  const CallStream* stream = nullptr;
  GroupIndex group = GroupIndex::none;
};

struct WaitGraph {
  CallSource source{};
  std::vector<BlockedOperation> operations;  // those with waiters
  std::vector<WaitRoot> roots;               // sorted by rank
  std::vector<std::vector<Rank>> cycles;     // strongly connected sets of two or more ranks
  std::map<Rank, const Call*> blocked_in;    // earliest unfinished operation, for ranks that have one
  // The lowest operation that somebody is blocked in although every member has issued it; null when there is none.
  const Call* common_stall = nullptr;
  const CallStream* common_stream = nullptr;
};

// Who waits for whom, over all groups of one source. For tools that record no completion (NCCL's log) an operation
// counts as unfinished as long as some member has not issued it.
WaitGraph BuildWaitGraph(const Incident& incident, CallSource source, const std::vector<GroupCalls>& groups,
                         const std::vector<P2pLink>& links);

}  // namespace tacet
