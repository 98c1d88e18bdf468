// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeUnlike(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  const OddGpu* first = nullptr;
  Finding finding = DegradedFinding("rank-unlike-others");
  for (const OddGpu& odd : checks.odd_gpus) {
    // Where the whole node is the exception, or lacks a device, that has been said.
    if (HasFewerNics(checks, odd.node) || IsLowerNode(checks, odd.node) || HasFailedSearch(checks, odd.node)) continue;
    finding.ranks.push_back(odd.gpu->rank);
    if (!first) first = &odd;
  }
  if (!first) return answer;
  finding.headline =
      "The GPU of " + RankWords({first->gpu->rank}) + " on " + view.nodes[first->node].name + " has " + first->differs;
  if (finding.ranks.size() > 1)
    finding.headline += "; so it is on " + std::to_string(finding.ranks.size()) + " ranks in all";
  if (view.nodes[first->node].hardware)
    finding.evidence.push_back(
        {view.nodes[first->node].hardware->source, "", "the hardware of " + view.nodes[first->node].name});
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kRankUnlikeOthersRule;
const Rule kRankUnlikeOthersRule = {
    "rank-unlike-others",
    "One rank has slower hardware than the others",
    "NCCL logs (INIT, GRAPH) with the system's tree, or topology files",
    "Nearly all GPUs of the job agree in NVLink bandwidth, PCIe link and network device, and a few have less. "
    "Collectives wait for the slowest member, so one GPU with half of its links slows down all of them.",
    "Where whole nodes differ, they are a different kind of node, not a fault. A node whose search lowers all others "
    "is node-lowers-graph.",
    {"`nvidia-smi nvlink -s -i GPU` for links that are down, `lspci -vv` for a PCIe link below its full speed and "
     "width, "
     "`ibstat` for the port's rate.",
     "Reset the GPU or drain the node; reseat the card if it persists."},
    {"Compare link counts and widths of all GPUs before a job starts."},
    JudgeUnlike};

}  // namespace tacet
