// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeReentries(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  for (const CommView& comm : view.comms) {
    std::vector<std::string> channels;
    std::vector<uint32_t> nodes;
    int times = 0;
    for (const RingView& ring : comm.rings) {
      if (ring.reentered.empty()) continue;
      channels.push_back(std::to_string(ring.channel));
      for (const auto& [node, entries] : ring.reentered) {
        nodes.push_back(node);
        times = std::max(times, entries);
      }
    }
    if (nodes.empty()) continue;
    Finding finding = DegradedFinding("ring-reenters-node");
    finding.group = comm.group;
    finding.ranks = RanksOfNodes(view, nodes);
    finding.headline = "Rings enter " + NodeWords(view, nodes) + " up to " + std::to_string(times) +
                       " times: each extra entry uses the network where NVLink would do";
    if (!comm.records.empty()) {
      const uint32_t record = comm.records.front();
      finding.evidence.push_back(CiteRecord(
          facts, record, facts.incident.rank_channels[record].rings_line, "",
          "the rings of channels " + ListWords(channels, 8) + " leave a node before all of its ranks are visited"));
    }
    answer.findings.push_back(std::move(finding));
  }
  return answer;
}

}  // namespace

extern const Rule kRingReentersNodeRule;
const Rule kRingReentersNodeRule = {
    "ring-reenters-node",
    "A ring enters a node more than once",
    "NCCL logs (INIT, GRAPH) of all ranks",
    "A ring should visit all GPUs of a node before it leaves. A ring that returns to a node uses the network twice for "
    "the same data, and its bandwidth halves.",
    "The list of a ring may begin in the middle of a node: the node at both ends of the list is entered once. Nodes "
    "joined by one NVLink fabric (MNNVL) count as one node to NCCL.",
    {"Check that NCCL sees the node as one: NCCL_HOSTID, host names and /proc/sys/kernel/random/boot_id must be the "
     "same for all of its processes.",
     "Remove NCCL_GRAPH_FILE or NCCL_RINGS where they are set."},
    {"Compare nNodes in the log with the number of hosts when a new image is tried."},
    JudgeReentries};

}  // namespace tacet
