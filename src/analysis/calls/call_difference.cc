// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/call_difference.h"

#include <algorithm>
#include <optional>

#include "analysis/calls/call_compare.h"
#include "analysis/calls/call_reading.h"

namespace tacet {
namespace {

// Groups the members by what they issued at `seq`; empty unless somebody differs.
std::vector<CallSide> SidesAt(const GroupCalls& group, uint32_t seq) {
  std::vector<CallSide> sides;
  for (const MemberCalls& member : group.members) {
    const Call* call = member.Find(seq);
    if (!call || !IsComparable(*call)) continue;
    auto side =
        std::find_if(sides.begin(), sides.end(), [&](const CallSide& s) { return !CompareCalls(*s.call, *call); });
    if (side == sides.end()) side = sides.insert(side, CallSide{{}, call, member.stream});
    side->ranks.push_back(member.rank);
  }
  std::stable_sort(sides.begin(), sides.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

// How many times all members issued something like `call` on this group: the habit of the job.
size_t CountLike(const GroupCalls& group, const Call& call) {
  size_t count = 0;
  for (const MemberCalls& member : group.members)
    for (size_t i = 0; i < member.calls.size(); ++i)
      if (SameCall(&member.At(i), &call)) ++count;
  return count;
}

void NameTheOdd(const GroupCalls& group, CallDifference& difference) {
  auto& sides = difference.sides;
  if (sides[0].ranks.size() == sides[1].ranks.size()) {
    // No majority. What the job does all the time is right, what it does only here is wrong.
    const size_t first = CountLike(group, *sides[0].call), second = CountLike(group, *sides[1].call);
    if (sides.size() > 2 || std::max(first, second) < 2 * std::min(first, second) + 2) return;
    // Another size or type that occurs only here is wrong; another operation may be one that all whose records are
    // missing issued as well.
    if (sides[0].call->kind != sides[1].call->kind && !AllAreRecorded(group)) return;
    if (first < second) std::swap(sides[0], sides[1]);
    difference.decided_by_habit = true;
  }
  // Of three ways or more the commonest is right only where most ranks took it.
  size_t all = 0;
  for (const CallSide& side : sides) all += side.ranks.size();
  if (sides.size() > 2 && 2 * sides[0].ranks.size() <= all) return;
  for (size_t i = 1; i < sides.size(); ++i)
    difference.odd.insert(difference.odd.end(), sides[i].ranks.begin(), sides[i].ranks.end());
  std::sort(difference.odd.begin(), difference.odd.end());
}

std::optional<CallDifference> FirstDifference(const GroupCalls& group) {
  // Walk the calls of all members in parallel: each member advances a cursor, so the whole is linear in the calls.
  std::vector<size_t> cursor(group.members.size(), 0);
  while (true) {
    uint32_t seq = UINT32_MAX;
    for (size_t m = 0; m < cursor.size(); ++m)
      if (cursor[m] < group.members[m].calls.size()) seq = std::min(seq, group.members[m].At(cursor[m]).seq);
    if (seq == UINT32_MAX) return std::nullopt;
    const Call* first = nullptr;
    bool differs = false;
    for (size_t m = 0; m < cursor.size(); ++m) {
      const MemberCalls& member = group.members[m];
      if (cursor[m] >= member.calls.size() || member.At(cursor[m]).seq != seq) continue;
      const Call& call = member.At(cursor[m]++);
      if (!IsComparable(call)) continue;
      if (!first)
        first = &call;
      else if (CompareCalls(*first, call))
        differs = true;
    }
    if (!differs) continue;
    CallDifference difference{.group = group.group, .source = group.source, .seq = seq, .sides = SidesAt(group, seq)};
    if (difference.sides.size() < 2) continue;
    NameTheOdd(group, difference);
    difference.aspect = *CompareCalls(*difference.sides[0].call, *difference.sides[1].call);
    ReadCallContinuation(group, difference);
    BeginWhereItBegan(group, difference);
    for (const CallSide& side : difference.sides) {
      const int64_t enter = side.call->enter_wall_ns;
      if (enter != kNoTime && (difference.enter_wall_ns == kNoTime || enter < difference.enter_wall_ns))
        difference.enter_wall_ns = enter;
    }
    return difference;
  }
}

}  // namespace

std::vector<CallDifference> FindDifferences(const Incident&, const std::vector<GroupCalls>& groups) {
  std::vector<CallDifference> differences;
  for (const GroupCalls& group : groups)
    if (auto difference = FirstDifference(group)) differences.push_back(std::move(*difference));
  return differences;
}

}  // namespace tacet
