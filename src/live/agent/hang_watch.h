// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "live/agent/box_state.h"
#include "model/patience.h"

namespace tacet {

// A group of one job in which operations are in flight and nothing has moved for longer than is normal.
struct HangSuspicion {
  std::string job;
  int64_t uid = -1;  // whose job
  uint64_t comm = 0;
  std::string group;              // the communicator's name, may be empty
  OpKind kind = OpKind::unknown;  // of the oldest operation in flight
  uint64_t seq = 0;
  int64_t still_ns = 0;  // nothing has moved for so long
  int64_t limit_ns = 0;  // so much was waited before it was called a hang
  int64_t since_wall_ns = 0;
  int32_t waiting = 0, members_seen = 0, size = -1;
  std::vector<int32_t> lost_ranks;  // whose process is gone without having said so
};

// How long nothing may move. docs/live.md says the same in words.
struct HangRule {
  int64_t floor_ns = Patience{}.watch_floor_ns;    // never earlier: hosts pause for garbage collection, files, a busy neighbour
  int64_t normal_times = Patience{}.watch_normal_times;            // as long as this many times what is normal for the operation
  int64_t pause_times = Patience{}.watch_pause_times;             // ... and this many times the longest pause after which the group went on
  int64_t unseen_ns = Patience{}.watch_unseen_ns;  // an operation and size this process has not yet finished often enough
  int64_t first_ns = Patience{}.watch_first_ns;  // a group that has finished fewer than `first_operations`: warming up
  uint64_t first_operations = Patience{}.watch_first_operations;
  int64_t not_begun_ns = Patience{}.watch_not_begun_ns;  // all seen members issued it, no GPU began it: they compute alike
  int64_t lost_ns = Patience{}.watch_lost_ns;        // a member's process is gone
  int64_t most_ns = Patience{}.watch_most_ns;      // no limit grows beyond this, NCCL's own watchdog
};

// Looks at the same processes again and again and tells which groups hang. It knows only what it is shown: the boxes of
// one node, or those of all nodes. Times come in as arguments, so any history can be played to it.
class HangWatch {
 public:
  explicit HangWatch(HangRule rule = {}) : rule_(rule) {}

  // `monotonic_ns` never goes back from look to look.
  std::vector<HangSuspicion> Look(const std::vector<const BoxState*>& boxes, int64_t monotonic_ns, int64_t wall_ns);

 private:
  struct GroupMemory {
    uint64_t signature = 0;
    int64_t moved_ns = 0;
    int64_t longest_pause_ns = 0;
    bool waited = false;  // at the last look
    bool seen = false;
  };
  struct BoxMemory {
    uint64_t finished = 0;
    int64_t moved_ns = 0;
    bool seen = false;
  };
  struct Member {
    const BoxState* box;
    const CommState* comm;
    const OperationState* oldest;  // in flight and telling its end, or null
  };
  using GroupKey = std::pair<JobKey, uint64_t>;

  void Remember(const GroupKey& key, const std::vector<Member>& members, int64_t now_ns);
  int64_t LimitFor(const std::vector<Member>& members, const GroupMemory& memory, bool lost) const;
  void Judge(const GroupKey& key, const std::vector<Member>& members, int64_t now_ns, int64_t wall_ns,
             std::vector<HangSuspicion>& out) const;

  HangRule rule_;
  std::map<GroupKey, GroupMemory> groups_;
  std::map<std::string, BoxMemory> boxes_;  // by host and name
};

}  // namespace tacet
