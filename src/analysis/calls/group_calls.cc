// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/group_calls.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_map>

namespace tacet {

bool IsFinished(const Call& call) { return call.state == CallState::completed && !call.has(kEndedByAbort); }

const Call* FirstUnfinished(const CallStream& stream) {
  if (!stream.knows_finish || stream.stub) return nullptr;
  for (const Call& call : stream.calls)
    if (!IsFinished(call) && !call.has(kCoalescedMember)) return &call;
  return nullptr;
}

const Call* MemberCalls::Find(uint32_t seq) const {
  if (!stream) return nullptr;
  const auto found = std::lower_bound(calls.begin(), calls.end(), seq,
                                      [&](uint32_t index, uint32_t value) { return stream->calls[index].seq < value; });
  return found != calls.end() && stream->calls[*found].seq == seq ? &stream->calls[*found] : nullptr;
}

int64_t GroupCalls::HighestEnqueued() const {
  int64_t highest = -1;
  for (const MemberCalls& member : members) highest = std::max(highest, member.last_enqueued);
  return highest;
}

namespace {

// Lines of NCCL's log carry no number of their own: they can be counted only from the communicator's birth.
bool IsNumbered(const CallStream& stream) { return stream.source != CallSource::nccl_log || stream.from_start; }

// Most groups list their members in order, and those of the world rank by rank: a search through thousands of members
// for each of thousands of records would be the slowest part of all.
std::vector<MemberCalls>::iterator FindMember(std::vector<MemberCalls>& members, Rank rank) {
  const auto at = members.begin() + std::clamp<std::ptrdiff_t>(rank.value, 0, std::ssize(members));
  if (at != members.end() && at->rank == rank) return at;
  const auto sorted = std::lower_bound(members.begin(), members.end(), rank,
                                       [](const MemberCalls& member, Rank value) { return member.rank < value; });
  if (sorted != members.end() && sorted->rank == rank) return sorted;
  return std::find_if(members.begin(), members.end(), [&](const MemberCalls& member) { return member.rank == rank; });
}

// Of the entries of one coalesced group, which share a number, the closing one carries the truth.
void AddCall(MemberCalls& member, uint32_t index) {
  const Call& call = member.stream->calls[index];
  if (!member.calls.empty() && member.At(member.calls.size() - 1).seq == call.seq) {
    if (call.has(kCoalescedEnd)) member.calls.back() = index;
    return;
  }
  member.calls.push_back(index);
}

void Settle(MemberCalls& member) {
  const auto& all = member.stream->calls;
  const auto by_seq = [&](uint32_t a, uint32_t b) { return all[a].seq < all[b].seq; };
  if (!std::is_sorted(member.calls.begin(), member.calls.end(), by_seq))
    std::stable_sort(member.calls.begin(), member.calls.end(), by_seq);
  for (const uint32_t index : member.calls) {
    const Call& call = all[index];
    member.last_enqueued = std::max<int64_t>(member.last_enqueued, call.seq);
    if (call.state >= CallState::started && call.start_wall_ns != kNoTime)
      member.last_started = std::max<int64_t>(member.last_started, call.seq);
  }
  if (!member.stream->knows_finish) return;
  // Everything before the first recorded call was finished, or it could not have been dropped from the list.
  if (member.calls.empty()) return;
  member.finished_through = static_cast<int64_t>(member.At(0).seq) - 1;
  for (const uint32_t index : member.calls) {
    if (!IsFinished(all[index])) {
      // A record of active calls only leaves out the finished ones; a gap ends at the first one that is listed.
      if (member.stream->only_active) member.finished_through = static_cast<int64_t>(all[index].seq) - 1;
      break;
    }
    member.finished_through = all[index].seq;
  }
}

}  // namespace

std::vector<GroupCalls> CollectGroupCalls(const Incident& incident, CallSource source) {
  std::vector<GroupCalls> groups;
  std::vector<int32_t> place_of(incident.groups.size(), -1);
  std::vector<bool> does_p2p(incident.groups.size(), false);
  for (const CallStream& stream : incident.streams)
    if (stream.source == source)
      for (const Call& call : stream.calls)
        if (call.has(kPointToPoint) && call.group != GroupIndex::none)
          does_p2p[static_cast<uint32_t>(call.group)] = true;
  const auto group_at = [&](GroupIndex index) -> GroupCalls& {
    int32_t& place = place_of[static_cast<uint32_t>(index)];
    if (place < 0) {
      place = static_cast<int32_t>(groups.size());
      GroupCalls& fresh = groups.emplace_back();
      fresh.group = index;
      fresh.source = source;
      for (const Rank rank : incident.groups[static_cast<uint32_t>(index)].members) fresh.members.push_back({rank});
    }
    return groups[static_cast<size_t>(place)];
  };
  for (const CallStream& stream : incident.streams) {
    if (stream.source != source || stream.stub || !stream.rank.known() || !IsNumbered(stream)) continue;
    // One hash look-up per (stream, group), not per call.
    std::unordered_map<uint32_t, size_t> member_index;
    const auto member_at = [&](GroupIndex index) -> MemberCalls& {
      GroupCalls& group = group_at(index);
      const auto [found, added] = member_index.try_emplace(static_cast<uint32_t>(index), 0);
      if (added) {
        auto place = FindMember(group.members, stream.rank);
        if (place == group.members.end()) place = group.members.insert(place, MemberCalls{stream.rank});
        place->stream = &stream;
        found->second = static_cast<size_t>(place - group.members.begin());
      }
      return group.members[found->second];
    };
    MemberCalls* last = nullptr;  // of the call before: mostly the same group
    GroupIndex last_group = GroupIndex::none;
    for (uint32_t i = 0; i < stream.calls.size(); ++i) {
      const Call& call = stream.calls[i];
      if (call.group == GroupIndex::none || call.has(kPointToPoint)) continue;
      if (call.group != last_group) {
        last = &member_at(call.group);
        last_group = call.group;
      }
      AddCall(*last, i);
    }
    for (const GroupProgress& progress : stream.progress) {
      // The recorder's counters mix collectives and point-to-point calls where a group does both.
      if (progress.group == GroupIndex::none || does_p2p[static_cast<uint32_t>(progress.group)]) continue;
      MemberCalls& member = member_at(progress.group);
      member.last_enqueued = std::max(member.last_enqueued, progress.last_enqueued);
      member.finished_through = std::max(member.finished_through, progress.last_completed);
    }
  }
  // A rank that recorded other groups but not this one did speak: it has simply not come here.
  for (GroupCalls& group : groups) {
    for (MemberCalls& member : group.members) {
      if (!member.stream && member.rank.known()) {
        const CallStream* stream = incident.StreamOf(member.rank, source);
        if (stream && !stream->stub && IsNumbered(*stream)) member.stream = stream;
      }
      if (member.stream) Settle(member);
    }
  }
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.group < b.group; });
  return groups;
}

}  // namespace tacet
