// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeNicUse(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  if (checks.uneven.empty() || !checks.fewer_nics.empty() || !checks.failed_searches.empty()) return answer;
  std::vector<uint32_t> nodes;
  for (const UnevenNics& uneven : checks.uneven) nodes.push_back(uneven.node);
  const UnevenNics& first = checks.uneven.front();
  Finding finding = DegradedFinding("nic-unbalanced");
  finding.ranks = RanksOfNodes(view, nodes);
  std::vector<std::string> idle;
  for (const NicView* nic : first.idle)
    idle.push_back(nic->name.empty() ? "device " + std::to_string(nic->index) : nic->name);
  const size_t all = view.nodes[first.node].nics.size();
  if (!idle.empty())
    finding.headline = "On " + NodeWords(view, nodes) + " no ring uses " + ListWords(idle) + ": " +
                       std::to_string(idle.size()) + " of " + std::to_string(all) + " network devices " +
                       (idle.size() == 1 ? "is" : "are") + " idle";
  else
    finding.headline = "On " + NodeWords(view, nodes) + " one network device carries " + std::to_string(first.most) +
                       " hops of rings and another " + std::to_string(first.least);
  for (const CommView& comm : view.comms) {
    const NcclGraphSearch* ring = GraphOfNode(facts.incident, comm, first.node, NcclAlgorithm::ring);
    if (!ring || comm.nodes < 2) continue;
    finding.group = comm.group;
    finding.evidence.push_back(CiteGraph(*ring, "the rows below it name the device of each channel"));
    break;
  }
  if (view.nodes[first.node].devices)
    finding.evidence.push_back({view.nodes[first.node].devices->source, "", "the devices NCCL found"});
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kNicUnbalancedRule;
const Rule kNicUnbalancedRule = {
    "nic-unbalanced",
    "Network devices idle while others are shared",
    "NCCL logs (INIT, NET, GRAPH) of all ranks of a node",
    "The rings of a node leave through some of its network devices more often than through others, although all are "
    "equally near and fast. The busiest one decides the bandwidth between nodes.",
    "Devices for storage or management are slower, or do not share a switch with GPUs, and may idle. A communicator "
    "with one rank per node uses one device; all communicators are counted together.",
    {"Look at the PCI tree (`nvidia-smi topo -m`): NCCL gives each GPU the nearest devices, so two GPUs next to one "
     "NIC leave another idle. A topology file for virtual machines may describe it wrongly.",
     "Check NCCL_IB_HCA, NCCL_TOPO_FILE and NCCL_GRAPH_FILE for devices left out."},
    {"Compare the channels' devices in the log with the list of devices when a new kind of node is added."},
    JudgeNicUse};

}  // namespace tacet
