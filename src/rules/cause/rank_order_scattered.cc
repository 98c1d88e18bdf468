// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeRankOrder(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  if (checks.scattered == kNoIndex) return answer;
  const CommView& comm = view.comms[checks.scattered];
  Finding finding = DegradedFinding("rank-order-scattered");
  finding.group = comm.group;
  finding.headline = "Ranks are scattered over nodes: ";
  std::vector<std::string> shown;
  for (int32_t rank = 0; rank < std::min(comm.ranks, 4); ++rank)
    shown.push_back("rank " + std::to_string(rank) + " is on " + view.nodes[view.NodeOf(comm, rank)].name);
  finding.headline +=
      ListWords(shown) + "; consecutive ranks, which form tensor-parallel groups, communicate over the network";
  if (!comm.setups.empty())
    finding.evidence.push_back({facts.incident.nccl_setups[comm.setups.front()].source, "",
                                "the node changes " + std::to_string(checks.scattered_runs - 1) +
                                    " times from rank 0 to rank " + std::to_string(comm.ranks - 1)});
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kRankOrderScatteredRule;
const Rule kRankOrderScatteredRule = {
    "rank-order-scattered",
    "Ranks of one node are not consecutive",
    "NCCL logs (INIT) of all ranks",
    "Frameworks form their fast groups (tensor parallel, local gradients) from consecutive ranks. Where the launcher "
    "assigns ranks to nodes in turn, these groups cross the network at every step.",
    "Communicators of one rank per node, or of every eighth rank, are made that way on purpose; only the communicator "
    "of all ranks is judged.",
    {"Start the job with `srun --distribution=block:block` or `mpirun --map-by ppr:8:node --rank-by slot`; torchrun "
     "numbers its ranks this way by itself.",
     "Sort the host file so that the slots of a host are consecutive."},
    {"Print rank and host name at start, or look at the first report of `tacet topology`."},
    JudgeRankOrder};

}  // namespace tacet
