// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ids.h"

namespace tacet {

// Who holds one place of a group.
struct GroupPlace {
  GroupRank place;
  Rank rank;
  friend constexpr auto operator<=>(GroupPlace, GroupPlace) = default;
};

// A process group or an NCCL communicator. Identity: name and member set, or NCCL's commId. One group may be known to
// several tools under different names; the assembly joins them.
struct Group {
  std::string name;           // "0", "71994ac1..", or empty for a communicator nobody named
  std::string description;    // "default_pg", "mesh_dp", "TENSOR_MODEL_PARALLEL_GROUP"
  std::vector<Rank> members;  // index = group rank; empty where unknown; unknown places hold Rank{}
  // In a fragment: the few places that one file knows of a communicator whose size it only claims. The assembly writes
  // them into `members`, as far as the input is large enough for such a claim.
  std::vector<GroupPlace> places;
  int32_t size = -1;            // number of members when only that is known
  uint64_t comm_id = 0;         // NCCL commId/commHash, 0 where unknown
  // No text prints the id, so that nobody could look for it: it was computed, or stands in a binary record.
  bool hidden_id = false;
  uint32_t ordinal = 0;         // of unnamed communicators with the same members, from 1; 0: there is only one
  uint64_t parent_comm_id = 0;  // of a split
  uint64_t replays_of =
      0;  // the communicator whose collectives CUDA graphs run again; these have an order of their own
  bool HasMember(Rank rank) const;
  GroupRank IndexOf(Rank rank) const;
  // For people: description, else name, else "communicator 0x..", else "communicator of ranks 0-3".
  std::string Label() const;
};

}  // namespace tacet
