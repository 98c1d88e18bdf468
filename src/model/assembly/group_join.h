// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/incident.h"
#include "model/rank_room.h"

namespace tacet {

// Gives the groups of all fragments one numbering. Process groups are joined by (name, member set), communicators by
// their id. A communicator whose members turn out to be those of exactly one process group takes over its name.
class GroupJoin {
 public:
  explicit GroupJoin(Incident& incident) : incident_(incident) {}
  // Local index -> joined index for one fragment.
  std::vector<GroupIndex> Join(const Fragment& fragment);
  // The number of ranks that a process claims, unless most members of the same communicator claim a smaller one.
  int64_t AgreedSize(int64_t claimed) const;
  // After the last fragment: member lists are written out as far as there is room, communicators get names.
  void Finish(RankRoom& room);

 private:
  GroupIndex JoinNamed(const Group& group);
  GroupIndex JoinCommunicator(const Group& group);
  GroupIndex Add(const Group& group);
  void CountSize(const Group& group, Group& known);
  bool WriteOut(Group& group, RankRoom& room) const;
  void NumberNamesakes();

  Incident& incident_;
  std::unordered_map<std::string, GroupIndex> named_;  // name + members
  std::unordered_map<std::string, std::vector<GroupIndex>> by_name_;
  std::unordered_map<uint64_t, GroupIndex> communicators_;
  std::unordered_map<uint64_t, std::map<int32_t, size_t>> sizes_;  // by communicator: how many files claim which size
};

}  // namespace tacet
