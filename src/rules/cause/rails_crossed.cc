// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeRails(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  // Nodes with fewer devices number them differently, and a failed search takes them in order: that is the cause then.
  if (checks.crossed.empty() || !checks.fewer_nics.empty() || !checks.failed_searches.empty()) return answer;
  Finding finding = DegradedFinding("rails-crossed");
  std::set<int32_t> channels;
  std::set<Rank> ranks;
  for (const CrossedHop& crossed : checks.crossed) {
    channels.insert(crossed.channel);
    for (const int32_t end : {crossed.hop.from, crossed.hop.to})
      if (const Rank rank = JobRank(facts, view.comms[crossed.comm], end); rank.known()) ranks.insert(rank);
  }
  const CrossedHop& first = checks.crossed.front();
  const CommView& comm = view.comms[first.comm];
  finding.group = comm.group;
  finding.ranks.assign(ranks.begin(), ranks.end());
  finding.headline = (channels.size() == 1 ? "The ring of channel " + std::to_string(*channels.begin()) + " crosses"
                                           : "Rings of " + std::to_string(channels.size()) + " channels cross") +
                     " rails: " + PlaceWords(facts, comm, first.hop.from) + " sends through " + first.sends + " and " +
                     PlaceWords(facts, comm, first.hop.to) + " receives through " + first.receives;
  for (const uint32_t record : comm.records) {
    const RankChannels& one = facts.incident.rank_channels[record];
    for (const ChannelUse& use : one.uses) {
      if (use.point_to_point || use.from != first.hop.from || use.to != first.hop.to ||
          !use.channels.Has(first.channel) || finding.evidence.size() >= 2)
        continue;
      const bool sends = use.direction == ChannelUse::Direction::send;
      finding.evidence.push_back(CiteRecord(facts, record, use.line, facts.incident.transports[use.transport].text,
                                            sends ? "where the hop leaves its node" : "where it arrives"));
    }
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kRailsCrossedRule;
const Rule kRailsCrossedRule = {
    "rails-crossed",
    "Rings leave on one rail and arrive on another",
    "NCCL logs (INIT, NET, GRAPH) of the ranks at both ends",
    "On a rail-optimized network NICs of the same number share a leaf switch. A ring that leaves through one and "
    "arrives through another crosses the spine, where it competes with other traffic, or does not arrive at all on a "
    "rail-only network.",
    "With crossNic 1 or 2 NCCL enters and leaves a node through different NICs on purpose, which is not a fault. "
    "Where a node lacks a NIC, or the search for paths failed, that is the cause.",
    {"Name the devices in the same order on all nodes (NCCL_IB_HCA with a list, or the same udev names), so that one "
     "number is one rail.",
     "Compare the nodes' `nvidia-smi topo -m` and `ibstat`: a NIC in another slot is another rail."},
    {"Check the order of HCAs when a node is added or a NIC is replaced."},
    JudgeRails};

}  // namespace tacet
