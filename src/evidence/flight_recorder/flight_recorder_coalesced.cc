// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_coalesced.h"

#include <algorithm>

namespace tacet {
namespace {

// The entries of one group that may be members of a coalesced group still open: same counter, same number, one after
// the other among the entries of their group (other threads may issue work of other groups in between).
struct OpenRun {
  std::vector<uint32_t> members;
  const FlightEntry* last = nullptr;  // of this group
};

uint32_t Number(int64_t value) { return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX)); }

bool IsSameRun(const Call& member, const Call& next) {
  return member.seq == next.seq && member.has(kPointToPoint) == next.has(kPointToPoint);
}

// The closing entry has is_p2p False even for a batch of sends and receives; its members tell which counter it has.
// What has completed by itself belongs to it only if no send or receive came between, whose batch has lost its members.
bool Closes(const FlightEntry& end, const Call& member, const FlightEntry& member_entry) {
  const bool by_p2p = member.has(kPointToPoint) && end.p2p_seq >= 0;
  if (Number(by_p2p ? end.p2p_seq : end.collective_seq) != member.seq) return false;
  return member.state != CallState::completed || (!by_p2p && end.p2p_seq == member_entry.p2p_seq);
}

// A closing entry whose members the ring has lost: it is of the p2p counter if that one alone moved on.
bool CountsAsPointToPoint(const FlightEntry& end, const FlightEntry* before) {
  if (end.p2p_seq <= 0) return false;
  if (before == nullptr) return end.collective_seq <= 0;
  return end.collective_seq == before->collective_seq && end.p2p_seq > before->p2p_seq;
}

void Close(const OpenRun& run, Call& end, std::vector<Call>& calls) {
  for (const uint32_t index : run.members) {
    Call& member = calls[index];
    member.flags |= kCoalescedMember | (end.flags & kRetired);
    member.state = end.state;
    member.start_wall_ns = end.start_wall_ns;
    member.finish_wall_ns = end.finish_wall_ns;
  }
}

// A coalesced group of one collective is that collective:
//   nccl:allreduce_coalesced [[4096], [4096]] #349 (completed), nccl:coalesced #349 (scheduled)
void ShowMember(Call& member, Call& end) {
  member.flags = static_cast<decltype(member.flags)>(member.flags & ~kCoalescedMember);
  end.flags = static_cast<decltype(end.flags)>((end.flags & ~kCoalescedEnd) | kCoalescedMember);
}

}  // namespace

bool IsCoalescedEndName(std::string_view name) {
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  return name == "coalesced" || name.ends_with("_coalesced");
}

void MarkCoalesced(const std::vector<FlightEntry>& entries, size_t group_count, CallStream& stream) {
  std::vector<OpenRun> runs(group_count + 1);  // the last is for calls of no group
  for (size_t i = 0; i < stream.calls.size(); ++i) {
    Call& call = stream.calls[i];
    const FlightEntry& entry = entries[i];
    OpenRun& run = runs[std::min<size_t>(static_cast<size_t>(call.group), group_count)];
    if (!call.has(kCoalescedEnd)) {
      if (!run.members.empty() && !IsSameRun(stream.calls[run.members.back()], call)) {
        // Only active entries were dumped and the closing one is not there, though its group went on: it had completed.
        if (stream.only_active && run.members.size() > 1) {
          for (const uint32_t index : run.members) {
            stream.calls[index].flags |= kCoalescedMember;
            stream.calls[index].state = CallState::completed;
          }
        }
        run.members.clear();
      }
      run.members.push_back(static_cast<uint32_t>(i));
    } else {
      const bool has_members = !run.members.empty() && Closes(entry, stream.calls[run.members.back()], *run.last);
      const bool by_p2p =
          has_members ? stream.calls[run.members.back()].has(kPointToPoint) : CountsAsPointToPoint(entry, run.last);
      if (by_p2p && !call.has(kPointToPoint)) {
        call.flags |= kPointToPoint;
        if (entry.p2p_seq >= 0) call.seq = Number(entry.p2p_seq);
      }
      if (has_members) Close(run, call, stream.calls);
      if (has_members && run.members.size() == 1 && !by_p2p) ShowMember(stream.calls[run.members.back()], call);
      run.members.clear();
    }
    run.last = &entry;
  }
}

}  // namespace tacet
