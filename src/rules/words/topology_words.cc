// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

#include <algorithm>
#include <cstdio>

namespace tacet {

std::string ListWords(const std::vector<std::string>& items, size_t most) {
  std::string out;
  const size_t shown = items.size() <= most ? items.size() : most - 1;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) out += i + 1 == items.size() ? " and " : ", ";
    out += items[i];
  }
  if (shown < items.size()) out += " and " + std::to_string(items.size() - shown) + " more";
  return out;
}

std::string NodeWords(const TopologyView& view, std::vector<uint32_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.size() == 2 && view.nodes.size() == 2) return "both nodes";
  if (nodes.size() > 1 && nodes.size() == view.nodes.size()) return "all " + std::to_string(nodes.size()) + " nodes";
  std::vector<std::string> names;
  for (const uint32_t node : nodes) names.push_back(view.nodes[node].name);
  return (names.size() == 1 ? "node " : "nodes ") + ListWords(names);
}

std::vector<Rank> RanksOfNodes(const TopologyView& view, const std::vector<uint32_t>& nodes) {
  std::vector<Rank> ranks;
  for (const uint32_t node : nodes)
    ranks.insert(ranks.end(), view.nodes[node].ranks.begin(), view.nodes[node].ranks.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Rank JobRank(const Case& facts, const CommView& comm, int32_t group_rank) {
  const auto process = comm.process_of.find(group_rank);
  if (process != comm.process_of.end() && process->second < facts.incident.processes.size())
    return facts.incident.processes[process->second].rank;
  if (comm.group != GroupIndex::none && group_rank >= 0) {
    const Group& group = facts.incident.groups[static_cast<uint32_t>(comm.group)];
    if (static_cast<size_t>(group_rank) < group.members.size()) return group.members[static_cast<size_t>(group_rank)];
  }
  return Rank{};
}

std::string PlaceWords(const Case& facts, const CommView& comm, int32_t group_rank) {
  const Rank rank = JobRank(facts, comm, group_rank);
  return rank.known() ? "rank " + std::to_string(rank.value)
                      : "rank " + std::to_string(group_rank) + " of the communicator";
}

Finding DegradedFinding(std::string_view cause) {
  Finding finding;
  finding.cause = cause;
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::certain;
  return finding;
}

EvidenceItem CiteGraph(const NcclGraphSearch& graph, std::string says) {
  char text[160];
  std::snprintf(text, sizeof text, "Pattern %d, crossNic %d, nChannels %d, bw %g/%g, type %s/%s", graph.pattern,
                graph.cross_nic, graph.channels, graph.bw_intra, graph.bw_inter,
                std::string(Name(graph.type_intra)).c_str(), std::string(Name(graph.type_inter)).c_str());
  return {graph.source, text, std::move(says)};
}

EvidenceItem CiteRecord(const Case& facts, uint32_t record, uint32_t line, std::string excerpt, std::string says) {
  return {SourceRef{facts.incident.rank_channels[record].file, line, 0}, std::move(excerpt), std::move(says)};
}

EvidenceItem CitePair(const Case& facts, const SlowPair& pair, std::string says) {
  std::string excerpt = std::to_string(pair.from) + " -> " + std::to_string(pair.to) + " via " +
                        facts.incident.transports[pair.transport].text;
  return {SourceRef{facts.incident.rank_channels[pair.record].file, pair.line, pair.offset}, std::move(excerpt),
          std::move(says)};
}

bool HasFewerNics(const TopologyChecks& checks, uint32_t node) {
  return std::any_of(checks.fewer_nics.begin(), checks.fewer_nics.end(),
                     [&](const FewerNics& one) { return one.node == node; });
}
bool HasFailedSearch(const TopologyChecks& checks, uint32_t node) {
  return std::any_of(checks.failed_searches.begin(), checks.failed_searches.end(),
                     [&](const FailedSearch& one) { return one.node == node; });
}
bool IsFarNode(const TopologyChecks& checks, uint32_t node) {
  return std::find(checks.far_nodes.begin(), checks.far_nodes.end(), node) != checks.far_nodes.end();
}
bool IsLowerNode(const TopologyChecks& checks, uint32_t node) {
  return std::any_of(checks.lower_nodes.begin(), checks.lower_nodes.end(),
                     [&](const LowerNode& one) { return one.node == node; });
}

std::string LoweringWords(const Case& facts, uint32_t node) {
  for (const LowerNode& lower : facts.analyses.topology_checks.lower_nodes)
    if (lower.node == node) {
      const CommView& comm = facts.analyses.topology.comms[lower.comm];
      return ", which lowers all " + std::to_string(comm.ranks) + " ranks to " + ListWords(lower.lowered);
    }
  return "";
}

}  // namespace tacet
