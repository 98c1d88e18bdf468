// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

RuleAnswer JudgeFarNics(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  // Without PXN only the GPUs next to a NIC reach it below the switch.
  const bool no_pxn = checks.pxn_disabled || !checks.unrelayed.empty() || checks.Setting("NCCL_PXN_DISABLE");
  if (checks.far_nodes.empty() || no_pxn) return answer;
  const uint32_t first = checks.far_nodes.front();
  Finding finding = DegradedFinding("nic-path-through-cpu");
  finding.ranks = RanksOfNodes(view, checks.far_nodes);
  for (const CommView& comm : view.comms) {
    const NcclGraphSearch* ring = GraphOfNode(facts.incident, comm, first, NcclAlgorithm::ring);
    if (!ring || comm.nodes < 2) continue;
    finding.group = comm.group;
    finding.headline = "On " + NodeWords(view, checks.far_nodes) + " rings reach the network through the CPU (type " +
                       std::string(Name(ring->type_inter)) + ") although network devices and GPUs share PCIe switches" +
                       LoweringWords(facts, first);
    finding.evidence.push_back(CiteGraph(*ring, "the worst path between GPU and network device on a ring"));
    break;
  }
  if (const NodeView& node = view.nodes[first]; node.hardware)
    for (const GpuView& gpu : node.gpus)
      if (IsNear(gpu.nearest) && !gpu.nearest_nics.empty()) {
        finding.evidence.push_back({node.hardware->source, "",
                                    (gpu.rank.known() ? RankWords({gpu.rank}) : std::string("a GPU")) +
                                        " has a network device at distance " + std::string(Name(gpu.nearest))});
        break;
      }
  if (!finding.headline.empty()) answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kNicPathThroughCpuRule;
const Rule kNicPathThroughCpuRule = {
    "nic-path-through-cpu",
    "Rings reach network devices through the CPU",
    "NCCL logs (INIT, GRAPH) with the system's tree, or topology and graph files",
    "The search for rings chose paths over the host bridge (PHB) or the link between sockets (SYS), although "
    "GPUs and network devices share PCIe switches. That costs GPUDirect RDMA and LL128, and half of the bandwidth or "
    "more.",
    "Where network devices are attached to the CPU itself, PHB is the best the machine can do. With PXN off, GPUs that "
    "are not next to a device have no other path: see pxn-off.",
    {"Check NCCL_TOPO_FILE and the virtual machine's topology (/var/run/nvidia-topologyd/virtualTopology.xml): a wrong "
     "file hides the switches.",
     "Check NCCL_IB_HCA: it may leave out the devices next to the GPUs. Check ACS and IOMMU settings, which cut paths "
     "below a switch.",
     "Compare with `nvidia-smi topo -m`: PIX and PXB are near, NODE, PHB and SYS are not."},
    {"Keep a topology dump of a good node (NCCL_TOPO_DUMP_FILE) and compare new images with it."},
    JudgeFarNics};

}  // namespace tacet
