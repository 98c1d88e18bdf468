// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/group_join.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace tacet {
namespace {

// Two independent 64-bit sums stand for the member list: the list itself would cost ranks times ranks characters.
std::string MemberKey(const std::vector<Rank>& members) {
  uint64_t a = 1469598103934665603u, b = members.size();
  for (const Rank rank : members) {
    a = (a ^ static_cast<uint32_t>(rank.value)) * 1099511628211u;
    b = (b + static_cast<uint32_t>(rank.value) + 1) * 0x9e3779b97f4a7c15u;
    b ^= b >> 29;
  }
  return std::to_string(a) + ":" + std::to_string(b);
}

bool IsWhole(const Group& group) {
  return !group.members.empty() &&
         std::all_of(group.members.begin(), group.members.end(), [](Rank r) { return r.known(); });
}

Group& At(Incident& incident, GroupIndex index) { return incident.groups[static_cast<uint32_t>(index)]; }

}  // namespace

GroupIndex GroupJoin::Add(const Group& group) {
  incident_.groups.push_back(group);
  return static_cast<GroupIndex>(incident_.groups.size() - 1);
}

GroupIndex GroupJoin::JoinNamed(const Group& group) {
  // A dump that knows only the name means the one group of that name, if there is but one (Finish cannot undo a choice,
  // so a second group of the same name later keeps its own place).
  auto& same_name = by_name_[group.name];
  if (group.members.empty()) {
    if (same_name.empty()) same_name.push_back(Add(group));
    return same_name.front();
  }
  const std::string key = group.name + "|" + MemberKey(group.members);
  if (const auto found = named_.find(key); found != named_.end()) {
    Group& known = At(incident_, found->second);
    if (known.description.empty()) known.description = group.description;
    return found->second;
  }
  GroupIndex index = GroupIndex::none;
  if (!same_name.empty() && At(incident_, same_name.front()).members.empty()) {
    index = same_name.front();
    Group& known = At(incident_, index);
    known.members = group.members;
    if (known.description.empty()) known.description = group.description;
  } else {
    index = Add(group);
    same_name.push_back(index);
  }
  named_.emplace(key, index);
  return index;
}

GroupIndex GroupJoin::JoinCommunicator(const Group& group) {
  const auto [found, added] = communicators_.try_emplace(group.comm_id, GroupIndex::none);
  if (added) found->second = Add(group);
  Group& known = At(incident_, found->second);
  if (known.members.size() < group.members.size()) known.members.resize(group.members.size());
  for (size_t i = 0; i < group.members.size(); ++i)
    if (group.members[i].known()) known.members[i] = group.members[i];
  known.hidden_id = known.hidden_id && group.hidden_id;
  if (!added) known.places.insert(known.places.end(), group.places.begin(), group.places.end());
  CountSize(group, known);
  if (known.name.empty()) known.name = group.name;
  if (known.description.empty()) known.description = group.description;
  return found->second;
}

// Members that disagree about the size: that of most of them holds, of equally many the larger one.
void GroupJoin::CountSize(const Group& group, Group& known) {
  if (group.size < 0) return;
  auto& claims = sizes_[group.comm_id];
  ++claims[group.size];
  for (const auto& [size, count] : claims)
    if (known.size < 0 || count > claims[known.size] || (count == claims[known.size] && size > known.size))
      known.size = size;
}

int64_t GroupJoin::AgreedSize(int64_t claimed) const {
  int64_t agreed = claimed;
  for (const auto& [comm, claims] : sizes_) {
    if (claims.size() < 2 || !claims.contains(static_cast<int32_t>(claimed))) continue;
    const int32_t size = At(incident_, communicators_.at(comm)).size;
    agreed = std::min<int64_t>(agreed, size);
  }
  return agreed;
}

std::vector<GroupIndex> GroupJoin::Join(const Fragment& fragment) {
  std::vector<GroupIndex> map;
  map.reserve(fragment.groups.size());
  for (const Group& group : fragment.groups)
    map.push_back(group.comm_id != 0 ? JoinCommunicator(group) : JoinNamed(group));
  return map;
}

// Fills `members` of a communicator. False where its claimed size is too large for the input; its size is all that is
// kept then.
bool GroupJoin::WriteOut(Group& group, RankRoom& room) const {
  // The communicator of the whole world: place i is rank i, whoever left no log.
  const bool world = group.comm_id != 0 && group.size > 0 && group.size == incident_.world_size;
  if (group.places.empty() && !world) return true;
  int64_t size = std::max<int64_t>(group.size, static_cast<int64_t>(group.members.size()));
  for (const GroupPlace& one : group.places) size = std::max<int64_t>(size, int64_t{one.place.value} + 1);
  const std::vector<GroupPlace> places = std::exchange(group.places, {});
  if (world && !incident_.lists_world) return false;
  if (!room.TakeMembers(size - static_cast<int64_t>(group.members.size()))) return false;
  group.members.resize(static_cast<size_t>(size));
  for (const GroupPlace& one : places)
    if (one.place.known() && one.rank.known()) group.members[static_cast<size_t>(one.place.value)] = one.rank;
  if (!world) return true;
  for (int32_t r = 0; r < group.size; ++r)
    if (!group.members[static_cast<size_t>(r)].known()) group.members[static_cast<size_t>(r)] = {r};
  return true;
}

// Communicators that nothing but their members tells apart are counted where several have the same ones.
void GroupJoin::NumberNamesakes() {
  std::unordered_map<std::string, std::vector<Group*>> unnamed;
  for (Group& group : incident_.groups)
    if (group.comm_id != 0 && group.replays_of == 0 && group.name.empty() && group.description.empty())
      unnamed[IsWhole(group) ? MemberKey(group.members) : "of " + std::to_string(group.size)].push_back(&group);
  for (auto& [key, groups] : unnamed)
    for (size_t i = 0; groups.size() > 1 && i < groups.size(); ++i) groups[i]->ordinal = static_cast<uint32_t>(i) + 1;
}

void GroupJoin::Finish(RankRoom& room) {
  size_t left_out = 0;
  std::unordered_map<std::string, std::vector<GroupIndex>> named_by_members, comms_by_members;
  for (uint32_t i = 0; i < incident_.groups.size(); ++i) {
    Group& group = incident_.groups[i];
    left_out += WriteOut(group, room) ? 0 : 1;
    if (group.size < 0) group.size = static_cast<int32_t>(group.members.size());
    if (!IsWhole(group) || group.replays_of != 0) continue;
    auto& table = group.comm_id != 0 ? comms_by_members : named_by_members;
    table[MemberKey(group.members)].push_back(static_cast<GroupIndex>(i));
  }
  for (auto& [key, comms] : comms_by_members) {
    const auto named = named_by_members.find(key);
    if (named == named_by_members.end()) continue;
    // Several groups over the same ranks: the n-th communicator belongs to the n-th group, the root communicator before
    // its splits, and frameworks number their groups as they make them. That only holds when the numbers agree.
    if (named->second.size() != comms.size()) continue;
    std::stable_sort(comms.begin(), comms.end(), [&](GroupIndex a, GroupIndex b) {
      return (At(incident_, a).parent_comm_id != 0) < (At(incident_, b).parent_comm_id != 0);
    });
    std::stable_sort(named->second.begin(), named->second.end(), [&](GroupIndex a, GroupIndex b) {
      const std::string &left = At(incident_, a).name, &right = At(incident_, b).name;
      return std::pair(left.size(), left) < std::pair(right.size(), right);
    });
    for (size_t i = 0; i < comms.size(); ++i) {
      Group& comm = At(incident_, comms[i]);
      const Group& group = At(incident_, named->second[i]);
      if (comm.name.empty()) comm.name = group.name;
      if (comm.description.empty()) comm.description = group.description;
    }
  }
  NumberNamesakes();
  for (Group& group : incident_.groups) {
    if (group.replays_of == 0) continue;
    const auto base = communicators_.find(group.replays_of);
    if (base != communicators_.end()) group.description = At(incident_, base->second).Label() + " (graph replays)";
  }
  if (left_out > 0)
    incident_.diagnostics.push_back({DiagnosticSeverity::warning,
                                     "claimed-members",
                                     std::to_string(left_out) +
                                         (left_out == 1 ? " communicator claims" : " communicators claim") +
                                         " more members than so small an input can describe; only the number is kept",
                                     {},
                                     "give the files of more ranks if the job is that large"});
}

}  // namespace tacet
