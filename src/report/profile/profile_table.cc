// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/rank_ranges.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// So many groups of one role have lines of their own; more are summed up.
constexpr size_t kMostApart = 4;

std::string DescribeRanks(const std::vector<Rank>& ranks) {
  if (ranks.empty()) return "unknown ranks";
  return (ranks.size() == 1 ? "rank " : "ranks ") + RankRanges(ranks);
}

bool OnSeveralHosts(const Incident& incident, GroupIndex group) {
  const auto index = static_cast<size_t>(group);
  if (index >= incident.groups.size()) return false;
  std::set<std::string_view> hosts;
  for (const Rank rank : incident.groups[index].members) {
    const auto at = incident.process_of.find(rank);
    if (at != incident.process_of.end() && !incident.processes[at->second].host.empty())
      hosts.insert(incident.processes[at->second].host);
  }
  return hosts.size() > 1;
}

// Whether members of a group reach each other over TCP sockets, by the connections that NCCL prints. A communicator
// that has no such lines is taken to be connected as its ranks are in others.
class SocketUse {
 public:
  explicit SocketUse(const Incident& incident, const std::string& network) : incident_(incident), network_(network) {
    for (const RankChannels& one : incident.rank_channels) {
      const bool sockets = std::any_of(one.uses.begin(), one.uses.end(), [&](const ChannelUse& use) {
        if (use.transport >= incident.transports.size()) return false;
        const Transport& way = incident.transports[use.transport];
        return way.kind == TransportKind::net && !way.fast_net();
      });
      if (one.uses.empty()) continue;
      groups_[one.group] |= sockets;
      ranks_[one.rank] |= sockets;
    }
  }

  bool Of(GroupIndex group, bool several_hosts) const {
    if (const auto found = groups_.find(group); found != groups_.end()) return found->second;
    const auto index = static_cast<size_t>(group);
    bool known = false, sockets = false;
    for (size_t i = 0; index < incident_.groups.size() && i < incident_.groups[index].members.size(); ++i)
      if (const auto found = ranks_.find(incident_.groups[index].members[i]); found != ranks_.end())
        known = true, sockets |= found->second;
    return known ? sockets : several_hosts && network_ == "Socket";
  }

 private:
  const Incident& incident_;
  const std::string& network_;
  std::map<GroupIndex, bool> groups_;
  std::map<Rank, bool> ranks_;
};

void Relate(ProfileTableRow& line) {
  line.share_of_peak = line.peak_gbs > 0 ? line.row.bus_gbs / line.peak_gbs : 0;
  const auto waiting = static_cast<double>(line.row.wait_ns);
  const double all = waiting + static_cast<double>(line.row.member_transfer_ns);
  line.wait_share = all > 0 ? waiting / all : 0;
}

// Many groups of one role, size and link are one line; of a few each has its own, with its members.
std::vector<ProfileTableRow> SumByRole(const std::vector<ProfileTableRow>& table) {
  std::map<std::string, std::set<std::string>> members;  // by role
  for (const ProfileTableRow& line : table) members[line.group].insert(line.members);
  std::map<std::tuple<std::string, std::string, int32_t, OpKind, int64_t, bool, bool>, ProfileTableRow> sums;
  for (const ProfileTableRow& line : table) {
    const bool apart = members[line.group].size() <= kMostApart;
    const std::tuple key{line.group,          apart ? line.members : std::string(),
                         line.row.group_size, line.row.kind,
                         line.row.size_class, line.several_hosts,
                         line.over_sockets};
    const auto [at, added] = sums.try_emplace(key, line);
    if (added) continue;
    CommunicationRow& sum = at->second.row;
    ++at->second.groups;
    sum.calls += line.row.calls;
    sum.bytes += line.row.bytes;
    sum.wait_ns += line.row.wait_ns;
    sum.mean_wait_ns += line.row.mean_wait_ns;
    sum.compared += line.row.compared;
    sum.whole += line.row.whole;
    sum.transfer_ns += line.row.transfer_ns;
    sum.member_transfer_ns += line.row.member_transfer_ns;
    sum.plausible = sum.plausible && line.row.plausible;
    sum.best_bus_gbs = std::max(sum.best_bus_gbs, line.row.best_bus_gbs);
  }
  std::vector<ProfileTableRow> out;
  for (auto& [key, line] : sums) {
    CommunicationRow& row = line.row;
    row.algorithm_gbs = row.transfer_ns > 0 && row.plausible
                            ? static_cast<double>(row.bytes) / static_cast<double>(row.transfer_ns)
                            : 0;
    row.bus_gbs = row.algorithm_gbs * BusFactor(row.kind, row.group_size);
    Relate(line);
    out.push_back(std::move(line));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.row.transfer_ns > b.row.transfer_ns; });
  return out;
}

}  // namespace

GroupNames::GroupNames(const Incident& incident, const std::vector<CollectiveRound>& rounds) : incident_(incident) {
  for (const CollectiveRound& round : rounds) {
    const auto index = static_cast<size_t>(round.group);
    if (index < incident.groups.size() && !incident.groups[index].members.empty()) continue;
    std::vector<Rank>& members = seen_[round.group];
    for (const RoundMember& member : round.members) {
      const auto at = std::lower_bound(members.begin(), members.end(), member.rank);
      if (at == members.end() || *at != member.rank) members.insert(at, member.rank);
    }
  }
}

std::string GroupNames::Members(GroupIndex group) const {
  const auto index = static_cast<size_t>(group);
  if (index < incident_.groups.size() && !incident_.groups[index].members.empty()) {
    std::vector<Rank> ranks = incident_.groups[index].members;
    std::sort(ranks.begin(), ranks.end());
    return DescribeRanks(ranks);
  }
  const auto seen = seen_.find(group);
  return DescribeRanks(seen == seen_.end() ? std::vector<Rank>() : seen->second);
}

std::string GroupNames::Role(GroupIndex group) const {
  const auto index = static_cast<size_t>(group);
  if (index >= incident_.groups.size()) return Members(group);
  const Group& known = incident_.groups[index];
  // A communicator without a name is known by its ranks, and so are its replays.
  for (size_t i = 0; known.replays_of != 0 && i < incident_.groups.size(); ++i)
    if (incident_.groups[i].comm_id == known.replays_of && incident_.groups[i].replays_of == 0)
      return "graph replays of " + Role(static_cast<GroupIndex>(i));
  return known.name.empty() && known.description.empty() ? Members(group) : known.Label();
}

void FillTable(const Incident& incident, const GroupNames& names, const std::vector<CollectiveRound>& rounds,
               const ProfileOptions& options, ProfileReport& profile) {
  std::optional<DevicePeak> peak;
  for (const ProfileRank& rank : profile.budgets)
    if (!peak && !rank.device.empty()) peak = FindDevicePeak(rank.device);
  const SocketUse sockets(incident, profile.network);
  double wait = 0, busy = 0, needed = 0, taken = 0;
  size_t unusable = 0;
  for (const CommunicationRow& row : SummariseCommunication(rounds)) {
    ProfileTableRow& line = profile.table.emplace_back();
    line.row = row;
    line.group = names.Role(row.group);
    line.members = names.Members(row.group);
    line.several_hosts = OnSeveralHosts(incident, row.group);
    line.over_sockets = sockets.Of(row.group, line.several_hosts);
    if (peak)
      (line.over_sockets ? line.faster_gbs : line.peak_gbs) = line.several_hosts ? peak->nic_gbs : peak->link_gbs;
    if (options.peak_gbs > 0) line.peak_gbs = options.peak_gbs;
    Relate(line);
    if (!row.plausible) {
      unusable += row.calls;
      continue;
    }
    if (row.compared > 0) {
      wait += static_cast<double>(row.wait_ns);
      busy += static_cast<double>(row.wait_ns) + static_cast<double>(row.member_transfer_ns);
      profile.wait_known = true;
    }
    if (line.peak_gbs <= 0 || row.bytes <= 0 || row.whole < row.calls) continue;
    needed += static_cast<double>(row.transfer_ns) * std::min(1.0, line.share_of_peak);
    taken += static_cast<double>(row.transfer_ns);
  }
  if (unusable > 0) {
    profile.remarks.push_back(
        "the recorded times of " + std::to_string(unusable) + (unusable == 1 ? " call" : " calls") +
        " cannot be right (more data than any link carries): they are not used, and shown as \"?\"");
    const bool exchanges = std::any_of(incident.measurements.begin(), incident.measurements.end(),
                                       [](const Measurement& one) { return IsPointToPoint(one.op); });
    profile.times_wrong = exchanges && incident.timelines.empty();
    if (exchanges)
      profile.remarks.back() +=
          ". NCCL before 2.31 reports wrong kernel times to its profiler once ranks send to and receive from each "
          "other in one group, as an all-to-all does; flight records with TORCH_NCCL_ENABLE_TIMING=1 are right there";
  }
  if (busy > 0) profile.wait_share = wait / busy;
  if (taken > 0) profile.communication_efficiency = needed / taken;
  profile.table_by_role = SumByRole(profile.table);
}

void FillGroupShares(const GroupNames& names, const std::vector<CollectiveRound>& rounds, ProfileReport& profile) {
  if (profile.budgets.empty()) return;
  struct Sum {
    double busy = 0;
    size_t calls = 0;
    int32_t size = -1;
    std::set<Rank> ranks;
    std::set<GroupIndex> groups;
  };
  std::map<std::string, Sum> sums;
  for (const CollectiveRound& round : rounds) {
    if (round.step < 0) continue;
    Sum& sum = sums[names.Role(round.group)];
    ++sum.calls;
    sum.size = std::max(sum.size, round.group_size);
    sum.groups.insert(round.group);
    for (const RoundMember& member : round.members) {
      sum.busy += static_cast<double>(std::max<int64_t>(0, member.duration_ns));
      sum.ranks.insert(member.rank);
    }
  }
  for (const auto& [role, sum] : sums) {
    double watched = 0;
    for (const ProfileRank& rank : profile.budgets)
      if (sum.ranks.contains(rank.rank)) watched += static_cast<double>(rank.step_ns) * static_cast<double>(rank.steps);
    GroupShare share{role, sum.groups.size(), sum.size, sum.calls, 0};
    if (watched > 0) share.share = sum.busy / watched;
    profile.groups.push_back(std::move(share));
  }
  std::stable_sort(profile.groups.begin(), profile.groups.end(),
                   [](const GroupShare& a, const GroupShare& b) { return a.share > b.share; });
}

}  // namespace tacet
