// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/calls/group_calls.h"

namespace tacet {

// The aspect in which ranks disagree at one place of a group's order, from the grossest to the finest.
enum class CallAspect { operation, size, type, reduction, root };

// Ranks that issued the same thing at the place of a difference.
struct CallSide {
  std::vector<Rank> ranks;
  const Call* call = nullptr;  // of the first rank
  const CallStream* stream = nullptr;
};

// The first number of a group's order at which its members did not issue the same collective.
struct CallDifference {
  GroupIndex group = GroupIndex::none;
  CallSource source{};
  uint32_t seq = 0;
  CallAspect aspect = CallAspect::operation;
  std::vector<CallSide> sides;  // the largest first
  std::vector<Rank> odd;        // who deviates; empty when the sides are equal in every respect
  enum class Reading { substituted, skipped, extra } reading = Reading::substituted;  // how the odd one's order goes on
  uint32_t round = 0;               // how many calls it left out, where it is a whole round of what is repeated
  uint32_t count = 1;               // how many calls are too many or left out from here on
  uint32_t every = 0;               // each so many calls after the one before, where the distance is always the same
  bool alike = true;                // the same call every time
  uint32_t reordered = 0;           // all members issue the same calls from here on, as many, but not in the same order
  bool decided_by_habit = false;    // sides of equal size: the rarer call on this group is the odd one
  int64_t enter_wall_ns = kNoTime;  // earliest issue at that place
};

// At most one for every group: what follows the first difference is its consequence.
std::vector<CallDifference> FindDifferences(const Incident& incident, const std::vector<GroupCalls>& groups);

}  // namespace tacet
