// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeNicCounts(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  if (checks.fewer_nics.empty()) return answer;
  std::vector<uint32_t> nodes;
  for (const FewerNics& fewer : checks.fewer_nics) nodes.push_back(fewer.node);
  const FewerNics& first = checks.fewer_nics.front();
  Finding finding = DegradedFinding("nic-count-unequal");
  finding.ranks = RanksOfNodes(view, nodes);
  finding.headline = NodeWords(view, nodes) + (nodes.size() == 1 ? " has " : " have ") + std::to_string(first.count) +
                     " network " + (first.count == 1 ? "device" : "devices") + " while other nodes have " +
                     std::to_string(first.usual);
  if (!first.missing.empty())
    finding.headline += "; " + ListWords(first.missing) + (first.missing.size() == 1 ? " is" : " are") + " missing";
  finding.headline += LoweringWords(facts, first.node);
  if (view.nodes[first.node].devices)
    finding.evidence.push_back(
        {view.nodes[first.node].devices->source, "", "the devices of " + view.nodes[first.node].name});
  if (view.nodes[first.usual_node].devices)
    finding.evidence.push_back(
        {view.nodes[first.usual_node].devices->source, "", "the devices of " + view.nodes[first.usual_node].name});
  for (const LowerNode& lower : checks.lower_nodes)
    if (lower.node == first.node) {
      finding.evidence.push_back(CiteGraph(*lower.own, "what this node's own search found"));
      finding.evidence.push_back(CiteGraph(*lower.usual, "what another node's search found"));
    }
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kNicCountUnequalRule;
const Rule kNicCountUnequalRule = {
    "nic-count-unequal",
    "A node has fewer network devices than the others",
    "NCCL logs (INIT, NET) of at least one rank of each node",
    "NCCL uses the smallest result of all nodes' searches for all ranks. A node with a dead, missing or hidden network "
    "device lowers the channels and the bandwidth of the whole job.",
    "A node with an extra device for storage does not count: slower devices, and those that are not next to GPUs, are "
    "not counted. An NCCL_IB_HCA that leaves out devices on one node only has the same effect, and shows in that "
    "node's settings.",
    {"On the node: `ibstat` and `ip link` (is the port up?), `lspci | grep -i mellanox` (is the card there?), the "
     "container's device list, NCCL_IB_HCA.",
     "Remove the node from the job until it is repaired: the others regain their bandwidth at once."},
    {"Count the active ports of every node before a job starts."},
    JudgeNicCounts};

}  // namespace tacet
