// SPDX-License-Identifier: Apache-2.0
#include "live/agent/hang_watch.h"

#include <algorithm>

namespace tacet {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

std::string NameOf(const BoxState& box) { return box.host + "/" + box.name; }

// Boxes outlive their processes; of those that ended in order nobody waits for anything.
bool TakesPart(const BoxState& box, const CommState& comm) {
  return box.trouble.empty() && comm.live && comm.id != 0 && !box.ended;
}

bool IsLost(const BoxState& box) { return HasEnded(box.sight) && !box.ended; }

int64_t Times(int64_t ns, int64_t times, int64_t most) { return ns > most / times ? most : ns * times; }

}  // namespace

std::vector<HangSuspicion> HangWatch::Look(const std::vector<const BoxState*>& boxes, int64_t now_ns, int64_t wall_ns) {
  for (auto& [key, memory] : groups_) memory.seen = false;
  for (auto& [name, memory] : boxes_) memory.seen = false;
  std::map<GroupKey, std::vector<Member>> groups;
  for (const BoxState* box : boxes) {
    uint64_t finished = 0;
    std::map<uint64_t, const OperationState*> oldest_of;  // by communicator
    for (const OperationState& op : box->operations) {
      if (!op.tells_end) continue;
      const OperationState*& oldest = oldest_of[op.comm];
      if (oldest == nullptr || op.age_ns > oldest->age_ns) oldest = &op;
    }
    for (const CommState& comm : box->comms) {
      finished += comm.finished;
      if (!TakesPart(*box, comm)) continue;
      const auto oldest = oldest_of.find(comm.id);
      groups[{JobOf(*box), comm.id}].push_back({box, &comm, oldest == oldest_of.end() ? nullptr : oldest->second});
    }
    const auto [found, fresh] = boxes_.try_emplace(NameOf(*box));
    BoxMemory& memory = found->second;
    if (fresh || memory.finished != finished) memory.moved_ns = now_ns;
    memory.finished = finished;
    memory.seen = true;
  }
  std::vector<HangSuspicion> suspicions;
  for (const auto& [key, members] : groups) {
    Remember(key, members, now_ns);
    Judge(key, members, now_ns, wall_ns, suspicions);
  }
  std::erase_if(groups_, [](const auto& entry) { return !entry.second.seen; });
  std::erase_if(boxes_, [](const auto& entry) { return !entry.second.seen; });
  return suspicions;
}

// Whatever changes in a group counts as moving: an operation ended anywhere, another one became the oldest, a channel
// began, a network step was done, a member came or went. Issuing more behind the oldest does not: hosts run ahead.
void HangWatch::Remember(const GroupKey& key, const std::vector<Member>& members, int64_t now_ns) {
  uint64_t signature = 0;
  bool waits = false;
  for (const Member& member : members) {
    uint64_t hash = Mix(std::hash<std::string>()(NameOf(*member.box)), member.comm->finished);
    if (member.oldest != nullptr) hash = Mix(Mix(hash, member.oldest->seq), member.oldest->progress);
    signature += hash;  // in whatever order members are listed
    waits |= member.oldest != nullptr && !HasEnded(member.box->sight);
  }
  const auto [found, fresh] = groups_.try_emplace(key);
  GroupMemory& memory = found->second;
  if (!fresh && memory.signature != signature && memory.waited)
    memory.longest_pause_ns = std::max(memory.longest_pause_ns, now_ns - memory.moved_ns);
  if (fresh || memory.signature != signature) memory.moved_ns = now_ns;
  memory.signature = signature;
  memory.waited = waits;
  memory.seen = true;
}

int64_t HangWatch::LimitFor(const std::vector<Member>& members, const GroupMemory& memory, bool lost) const {
  if (lost) return rule_.lost_ns;
  uint64_t finished = 0;
  int64_t normal = 0;
  bool all_issued = true, begun = false, unseen = false;
  for (const Member& member : members) {
    finished = std::max(finished, member.comm->finished);
    all_issued &= member.oldest != nullptr;
    if (member.oldest == nullptr) continue;
    begun |= member.oldest->channels_started > 0;
    unseen |= member.oldest->normal_ns < 0;
    normal = std::max(normal, member.oldest->normal_ns);
  }
  int64_t limit = std::max(rule_.floor_ns, Times(normal, rule_.normal_times, rule_.most_ns));
  limit = std::max(limit, Times(memory.longest_pause_ns, rule_.pause_times, rule_.most_ns));
  if (unseen) limit = std::max(limit, rule_.unseen_ns);
  if (finished < rule_.first_operations) limit = std::max(limit, rule_.first_ns);
  if (all_issued && !begun) limit = std::max(limit, rule_.not_begun_ns);
  return limit;
}

void HangWatch::Judge(const GroupKey& key, const std::vector<Member>& members, int64_t now_ns, int64_t wall_ns,
                      std::vector<HangSuspicion>& out) const {
  const GroupMemory& memory = groups_.at(key);
  HangSuspicion suspicion;
  const Member* oldest = nullptr;
  int64_t longest = 0;
  for (const Member& member : members)
    if (IsLost(*member.box)) suspicion.lost_ranks.push_back(member.box->rank);
  for (const Member& member : members) {
    ++suspicion.members_seen;
    suspicion.size = std::max(suspicion.size, member.comm->size);
    if (suspicion.group.empty()) suspicion.group = member.comm->name;
    // When a scheduler kills a job, drivers hold some of its processes in the kernel for seconds after the first are
    // gone.
    const bool torn_down = !suspicion.lost_ranks.empty() && member.box->sight == ProcessSight::uninterruptible;
    if (member.oldest == nullptr || torn_down || HasEnded(member.box->sight)) continue;
    ++suspicion.waiting;
    // A receive may be posted hours ahead by a process that is busy and well with its other groups.
    const int64_t box_still = now_ns - boxes_.at(NameOf(*member.box)).moved_ns;
    const int64_t age = member.oldest->age_ns;
    longest = std::max(longest, age > rule_.most_ns ? age : std::min(age, box_still));
    if (oldest == nullptr || member.oldest->age_ns > oldest->oldest->age_ns) oldest = &member;
  }
  if (oldest == nullptr) return;  // nobody waits: all compute, save or rest alike
  suspicion.still_ns = std::min(now_ns - memory.moved_ns, longest);
  suspicion.limit_ns = LimitFor(members, memory, !suspicion.lost_ranks.empty());
  if (suspicion.still_ns < suspicion.limit_ns) return;
  suspicion.job = key.first.name;
  suspicion.uid = key.first.uid;
  suspicion.comm = key.second;
  suspicion.kind = oldest->oldest->kind;
  suspicion.seq = oldest->oldest->seq;
  suspicion.since_wall_ns = wall_ns - suspicion.still_ns;
  out.push_back(std::move(suspicion));
}

}  // namespace tacet
