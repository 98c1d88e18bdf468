// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/profile/profile_report.h"

namespace tacet {

// What groups are called in tables. A communicator that no framework named goes by its ranks, so that two runs of one
// job have the same names; its id tells nobody anything.
class GroupNames {
 public:
  GroupNames(const Incident& incident, const std::vector<CollectiveRound>& rounds);
  std::string Role(GroupIndex group) const;     // "mesh_tp": several groups may play it
  std::string Members(GroupIndex group) const;  // "ranks 0 and 1"

 private:
  const Incident& incident_;
  std::map<GroupIndex, std::vector<Rank>> seen_;  // members of groups whose members nobody listed
};

// The communication table, its summary by role, waiting and efficiency over all of it. Needs the ranks' devices.
void FillTable(const Incident& incident, const GroupNames& names, const std::vector<CollectiveRound>& rounds,
               const ProfileOptions& options, ProfileReport& profile);

// Share of the step in the kernels of each role's groups.
void FillGroupShares(const GroupNames& names, const std::vector<CollectiveRound>& rounds, ProfileReport& profile);

}  // namespace tacet
