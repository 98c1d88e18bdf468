// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/incident.h"

namespace tacet {

// The collectives of one group on one rank, as one tool recorded them: the raw material of all comparisons across
// ranks.
struct MemberCalls {
  Rank rank;
  const CallStream* stream = nullptr;  // null: this tool has nothing of the rank
  std::vector<uint32_t> calls;         // indices into stream->calls, one per sequence number, ascending
  int64_t last_enqueued = -1;          // highest number issued, from the calls and from the recorder's own counters
  int64_t finished_through = -1;       // all up to here are finished; -1: none, or the tool records no end
  int64_t last_started = -1;           // highest number whose start or end was noticed

  const Call* Find(uint32_t seq) const;
  const Call& At(size_t i) const { return stream->calls[calls[i]]; }
};

struct GroupCalls {
  GroupIndex group = GroupIndex::none;
  CallSource source{};
  std::vector<MemberCalls> members;  // in group order, every known member
  int64_t HighestEnqueued() const;
};

// Reads completed, and not merely because an abort ended the kernel.
bool IsFinished(const Call& call);

// The first call that has not finished, where the stream tells of ends; null where there is none.
const Call* FirstUnfinished(const CallStream& stream);

// One entry for every group that at least one rank used for collectives in this source.
std::vector<GroupCalls> CollectGroupCalls(const Incident& incident, CallSource source);

}  // namespace tacet
