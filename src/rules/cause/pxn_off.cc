// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgePxn(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  // A variable that turns it off is a separate cause: environment-cripples.
  if (checks.Setting("NCCL_PXN_DISABLE") || checks.Setting("NCCL_P2P_PXN_LEVEL")) return answer;
  const bool crosses = !checks.unrelayed.empty();
  bool could_relay = false;
  for (const NodeView& node : view.nodes)
    could_relay |= view.nodes.size() > 1 && node.has_nvlink && node.nics.size() > 1 && node.net != "Socket";
  if (!crosses && !(checks.pxn_disabled && could_relay)) return answer;
  Finding finding = DegradedFinding("pxn-off");
  std::vector<uint32_t> nodes;
  for (const SlowPair& pair : checks.unrelayed) {
    nodes.push_back(pair.node);
    const Rank rank = facts.incident.rank_channels[pair.record].rank;
    if (rank.known()) finding.ranks.push_back(rank);
  }
  finding.headline = "PXN is off: ";
  if (crosses)
    finding.headline +=
        "sends of " + NodeWords(view, nodes) +
        " leave through the sender's own NIC and arrive on another rail, instead of moving over NVLink to "
        "the GPU next to the right NIC first";
  else
    finding.headline += "GPUs cannot use the NIC of another GPU of their node over NVLink";
  if (checks.pxn_disabled)
    finding.evidence.push_back({checks.pxn_disabled->pxn_source, "PXN Disabled", "NCCL says so itself"});
  if (crosses)
    finding.evidence.push_back(
        CitePair(facts, checks.unrelayed.front(), "no relay GPU in parentheses after the device"));
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kPxnOffRule;
const Rule kPxnOffRule = {
    "pxn-off",
    "PXN is not used",
    "NCCL logs (INIT, NET) of ranks of several nodes",
    "With PXN a GPU passes data over NVLink to the GPU next to the NIC of the receiver's rail. Without it "
    "all-to-all traffic crosses rails, and rings that leave through another GPU's NIC go through the CPU.",
    "Rings in which every GPU leaves through its own NIC need no PXN: 'use ring PXN 0' alone is not a fault. Nodes "
    "without NVLink, or with one NIC, cannot use it. NCCL_PXN_DISABLE is reported as environment-cripples.",
    {"Update the network plugin: NCCL turns PXN off for plugins of version 4 and older ('PXN Disabled as plugin is "
     "v4').",
     "Check that NCCL_NVB_DISABLE, NCCL_P2P_DISABLE and cgroup limits do not prevent peer access between the GPUs of a "
     "node."},
    {"Look for a number in parentheses after NET devices in the log of a new image: NET/IB/3(5)."},
    JudgePxn};

}  // namespace tacet
