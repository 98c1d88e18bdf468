// SPDX-License-Identifier: Apache-2.0
// Sends and receives in the pace of ranks: what a rank waits there it has not taken itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/timing/pace.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

Rank MemberOf(std::span<const Group> groups, GroupIndex group, GroupRank place) {
  if (static_cast<size_t>(group) >= groups.size() || !place.known()) return {};
  const std::vector<Rank>& members = groups[static_cast<size_t>(group)].members;
  return static_cast<size_t>(place.value) < members.size() ? members[static_cast<size_t>(place.value)] : Rank{};
}

using Neighbours = std::map<Rank, std::set<Rank>>;

bool HasNeighbours(const CollectiveRound& round, const Neighbours& neighbours) {
  std::set<Rank> members;
  for (const RoundMember& m : round.members) members.insert(m.rank);
  return std::any_of(members.begin(), members.end(), [&](Rank rank) {
    const auto own = neighbours.find(rank);
    return own != neighbours.end() &&
           std::any_of(own->second.begin(), own->second.end(), [&](Rank other) { return members.count(other) > 0; });
  });
}

}  // namespace

// A batch is one kernel, and its closing entry has the time:
//   nccl:send 1->2 (scheduled), nccl:recv 1<-2 (scheduled), nccl:coalesced (completed, 30.06 ms)
std::vector<Transfer> TransfersOfCalls(const Incident& incident) {
  std::vector<Transfer> out;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != CallSource::flight_recorder || !stream.rank.known()) continue;
    for (const Call& call : stream.calls) {
      if (!call.has(kPointToPoint) || call.has(kEndedByAbort) || call.group == GroupIndex::none) continue;
      const Rank peer = MemberOf(incident.groups, call.group, call.peer);
      const bool timed = call.duration_ms >= 0 && !call.has(kCoalescedMember);
      if (!timed && !peer.known()) continue;
      const auto duration = timed ? static_cast<int64_t>(static_cast<double>(call.duration_ms) * 1e6) : 0;
      const int64_t bytes = OperationBytes(call.kind, call.in_elements, call.out_elements, call.type, 2);
      out.push_back({stream.rank, peer, call.enter_wall_ns, duration, call.kind, bytes});
    }
  }
  return out;
}

// Transfers of one rank that run at the same time are waited for once.
std::vector<Transfer> TransfersOfMeasurements(std::span<const Measurement> measurements,
                                              std::span<const Group> groups) {
  std::map<uint64_t, GroupIndex> group_of;
  for (uint32_t g = 0; g < groups.size(); ++g) group_of[groups[g].comm_id] = static_cast<GroupIndex>(g);
  std::vector<Transfer> out;
  for (const Measurement& m : measurements) {
    if (!IsPointToPoint(m.op) || m.duration_ns < 0 || !m.rank.known() || m.start_wall_ns == kNoTime) continue;
    const auto group = group_of.find(m.comm);
    const Rank peer = group != group_of.end() ? MemberOf(groups, group->second, m.peer) : Rank{};
    out.push_back({m.rank, peer, m.start_wall_ns, m.duration_ns, m.op, m.bytes});
  }
  std::sort(out.begin(), out.end(), [](const Transfer& a, const Transfer& b) {
    return std::pair(a.rank, a.at_ns) < std::pair(b.rank, b.at_ns);
  });
  Rank rank;
  int64_t covered = 0;
  for (Transfer& one : out) {
    if (one.rank != rank) rank = one.rank, covered = INT64_MIN;
    const int64_t end = one.at_ns + one.duration_ns;
    one.duration_ns = std::max<int64_t>(0, end - std::max(one.at_ns, covered));
    covered = std::max(covered, end);
  }
  return out;
}

// Stages of a pipeline wait for each other by design, so ranks that send to each other are not compared, nor through a
// group that has both. In a ring everybody sends to somebody and nobody is first: there all are compared.
std::map<Rank, uint32_t> FindPeers(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers) {
  Neighbours neighbours;
  for (const Transfer& one : transfers) {
    if (!one.peer.known()) continue;
    neighbours[one.rank].insert(one.peer);
    neighbours[one.peer].insert(one.rank);
  }
  if (neighbours.empty()) return FindPeers(rounds);
  std::map<GroupIndex, bool> mixed;  // groups that have ranks which send to each other
  std::vector<CollectiveRound> apart;
  for (const CollectiveRound& round : rounds) {
    if (mixed.count(round.group)) continue;
    mixed[round.group] = HasNeighbours(round, neighbours);
    if (!mixed[round.group]) apart.push_back(round);
  }
  if (std::map<Rank, uint32_t> peers = FindPeers(apart); !peers.empty()) return peers;
  const bool chain =
      std::any_of(neighbours.begin(), neighbours.end(), [](const auto& one) { return one.second.size() == 1; });
  return chain && neighbours.size() > 2 ? std::map<Rank, uint32_t>() : FindPeers(rounds);
}

void SetShared(const std::vector<CollectiveRound>& rounds, const std::map<int64_t, size_t>& columns, Pace& pace) {
  std::map<Rank, size_t> rows;
  for (size_t r = 0; r < pace.ranks.size(); ++r) rows[pace.ranks[r]] = r;
  const auto peers = [&](Rank rank) {
    const auto own = rows.find(rank);
    return own != rows.end() ? pace.peers[own->second] : UINT32_MAX;
  };
  pace.shared_ns.assign(pace.late_ns.size(), std::numeric_limits<double>::quiet_NaN());
  for (const CollectiveRound& round : rounds) {
    const auto column = columns.find(round.step);
    if (column == columns.end() || IsPointToPoint(round.kind) || round.members.size() < 2) continue;
    std::vector<double> lengths;
    for (const RoundMember& m : round.members) {
      if (peers(m.rank) != peers(round.members[0].rank) || m.length_ns() < 0) break;
      lengths.push_back(static_cast<double>(m.length_ns()));
    }
    if (lengths.size() < round.members.size() || peers(round.members[0].rank) == UINT32_MAX) continue;
    const double usual = Median(lengths);
    for (size_t i = 0; i < lengths.size(); ++i) {
      double& cell = pace.shared_ns[rows[round.members[i].rank] * pace.steps() + column->second];
      cell = (std::isnan(cell) ? 0 : cell) + usual - lengths[i];
    }
  }
}

}  // namespace tacet
