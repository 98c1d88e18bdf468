// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeLowerNodes(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  std::vector<uint32_t> nodes;
  const LowerNode* first = nullptr;
  for (const LowerNode& lower : checks.lower_nodes) {
    if (HasFewerNics(checks, lower.node) || HasFailedSearch(checks, lower.node) || IsFarNode(checks, lower.node))
      continue;
    nodes.push_back(lower.node);
    if (!first) first = &lower;
  }
  if (!first) return answer;
  const CommView& comm = view.comms[first->comm];
  Finding finding = DegradedFinding("node-lowers-graph");
  finding.group = comm.group;
  finding.ranks = RanksOfNodes(view, nodes);
  finding.headline = NodeWords(view, nodes) + (nodes.size() == 1 ? " lowers" : " lower") + " all " +
                     std::to_string(comm.ranks) +
                     (nodes.size() == 1 ? " ranks: its own search found " : " ranks: their own searches found ") +
                     ListWords(first->lowered);
  if (!first->lacks.empty())
    finding.headline +=
        (nodes.size() == 1 ? ". What it lacks: " : ". What the first of them lacks: ") + ListWords(first->lacks, 3);
  finding.evidence.push_back(CiteGraph(*first->own, "what the search on " + view.nodes[first->node].name + " found"));
  finding.evidence.push_back(CiteGraph(*first->usual, "what another node found"));
  if (view.nodes[first->node].hardware && !first->lacks.empty())
    finding.evidence.push_back({view.nodes[first->node].hardware->source, "", "its hardware as NCCL sees it"});
  if (first->lacks.empty())
    answer.open.push_back({"What does " + view.nodes[first->node].name + " lack?",
                           "the system's tree of this node and of another one (NCCL_DEBUG_SUBSYS=INIT,GRAPH, or "
                           "NCCL_TOPO_DUMP_FILE)"});
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kNodeLowersGraphRule;
const Rule kNodeLowersGraphRule = {
    "node-lowers-graph",
    "One node lowers the channels or bandwidth of all",
    "NCCL logs (INIT, GRAPH) of at least one rank of each node",
    "Each node searches for rings and trees by itself; then all ranks use the smallest result. The node whose own "
    "Pattern line shows less than the others decides for all: a slower PCIe link, fewer NVLinks, a "
    "slower or more distant network device.",
    "Where most nodes show the same low figures, no node is an exception: that is the hardware. A node with "
    "fewer "
    "network devices is nic-count-unequal.",
    {"Compare this node's hardware with a good one's: `lspci -vv | grep LnkSta` (speed and width), `nvidia-smi nvlink "
     "-s`, "
     "`ibstat`.",
     "Reseat or replace the slow part, or remove the node: the others regain their bandwidth at once."},
    {"Compare topology dumps of all nodes before they join a queue."},
    JudgeLowerNodes};

}  // namespace tacet
