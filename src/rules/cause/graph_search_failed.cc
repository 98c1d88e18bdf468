// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_finding.h"
#include "rules/words/topology_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// NCCL's word alone, without the graphs that a log of INIT and GRAPH lines shows.
void JudgeWarning(const Case& facts, RuleAnswer& answer) {
  const ToldEvents told = CollectTold(facts, [](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "graph-search-failed";
  });
  if (!told) return;
  Finding finding = DegradedFinding("graph-search-failed");
  finding.confidence = Confidence::likely;
  finding.affected_ranks = told.ranks;
  finding.headline =
      "NCCL found no path between the GPUs of " + TellerWords(told) + " and fell back to the plain order of devices";
  for (const Event* event : told.events)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*event, "NCCL's warning"));
  answer.findings.push_back(std::move(finding));
}

RuleAnswer JudgeSearch(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  if (checks.failed_searches.empty()) {
    JudgeWarning(facts, answer);
    return answer;
  }
  std::vector<uint32_t> nodes;
  for (const FailedSearch& failed : checks.failed_searches) nodes.push_back(failed.node);
  const FailedSearch& first = checks.failed_searches.front();
  const CommView& comm = view.comms[first.comm];
  Finding finding = DegradedFinding("graph-search-failed");
  finding.group = comm.group;
  finding.ranks = RanksOfNodes(view, nodes);
  finding.headline = "NCCL found no path on " + NodeWords(view, nodes) +
                     " and fell back to the plain order of devices, with 1 channel that it rates at 0.1 GB/s";
  if (comm.ranks > 0 && nodes.size() < view.nodes.size())
    finding.headline += "; all " + std::to_string(comm.ranks) + " ranks follow it";
  finding.evidence.push_back(CiteGraph(*first.graph, "the result of the failed search"));
  for (uint32_t node = 0; node < view.nodes.size(); ++node)
    if (!HasFailedSearch(checks, node))
      if (const NcclGraphSearch* other = GraphOfNode(facts.incident, comm, node, first.graph->algorithm)) {
        finding.evidence.push_back(CiteGraph(*other, "what " + view.nodes[node].name + " found"));
        break;
      }
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kGraphSearchFailedRule;
const Rule kGraphSearchFailedRule = {
    "graph-search-failed",
    "NCCL found no path and fell back to simple order",
    "NCCL logs (INIT, GRAPH)",
    "The search for rings or trees found nothing and NCCL used the devices in plain order: one channel, the worst path "
    "types. Such a job is up to a hundred times slower, and one such node slows down all.",
    "A slow network alone also gives low figures, but they are steps of NCCL's scale (1.2, 0.24, 0.12); 0.1 means that "
    "no path was found.",
    {"Remove NCCL_TOPO_FILE and NCCL_GRAPH_FILE where they are set; in a virtual machine check its topology file.",
     "Check on that node that all GPUs see each other (`nvidia-smi topo -m`, peer access) and that every network "
     "device "
     "appears below a PCI bus.",
     "Run with NCCL_DEBUG_SUBSYS=INIT,GRAPH and look in the system's tree for devices without a parent."},
    {"Look for 'falling back to simple order' in the logs of every new kind of node."},
    JudgeSearch};

}  // namespace tacet
