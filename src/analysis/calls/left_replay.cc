// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/left_replay.h"

namespace tacet {
namespace {

// An unfinished call of the communicator that the rank's GPU has begun.
const Call* BegunCall(const Incident& incident, const std::vector<GroupCalls>& groups, uint64_t comm_id, Rank rank) {
  for (const GroupCalls& group : groups) {
    if (incident.groups[static_cast<uint32_t>(group.group)].comm_id != comm_id) continue;
    for (const MemberCalls& member : group.members) {
      if (member.rank != rank || !member.stream) continue;
      for (size_t i = 0; i < member.calls.size(); ++i)
        if (!IsFinished(member.At(i)) && member.At(i).state == CallState::started) return &member.At(i);
    }
  }
  return nullptr;
}

}  // namespace

std::optional<LeftReplay> FindLeftReplay(const Incident& incident, const std::vector<GroupCalls>& groups) {
  for (const GroupCalls& group : groups) {
    const uint64_t comm_id = incident.groups[static_cast<uint32_t>(group.group)].replays_of;
    if (comm_id == 0 || group.members.size() < 3) continue;
    const int64_t most = group.HighestEnqueued();
    const MemberCalls *behind = nullptr, *ahead = nullptr;
    size_t lagging = 0;
    for (const MemberCalls& member : group.members) {
      const Call* last = member.stream ? member.Find(static_cast<uint32_t>(most)) : nullptr;
      if (!member.stream || (last && IsFinished(*last))) {
        lagging = group.members.size();  // nobody waits for this replay, or one whose replays are not known
        break;
      }
      lagging += last == nullptr;
      (last ? ahead : behind) = &member;
    }
    if (lagging != 1 || !ahead) continue;
    const Call* waits_in = BegunCall(incident, groups, comm_id, behind->rank);
    if (!waits_in) continue;
    return LeftReplay{behind->rank,   ahead->Find(static_cast<uint32_t>(most)),
                      ahead->stream,  waits_in,
                      behind->stream, behind->last_enqueued};
  }
  return std::nullopt;
}

}  // namespace tacet
