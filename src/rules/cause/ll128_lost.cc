// SPDX-License-Identifier: Apache-2.0
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

// LL128 needs NVLink inside nodes and near network devices; over PXN only since Hopper, whose NVLinks carry more than
// this.
constexpr double kHopperNvlinkGbs = 300;

// NVLink bridges of workstation GPUs carry less than this; several releases have no LL128 for these GPUs.
constexpr double kServerNvlinkGbs = 100;

bool AllowsLl128(const NodeView& node, const NcclGraphSearch& ring) {
  for (const GpuView& gpu : node.gpus)
    if (gpu.rank.known() && gpu.nvlink_gbs < kServerNvlinkGbs) return false;
  if (ring.type_intra != NcclPath::nvl && ring.type_intra != NcclPath::nvb) return false;
  if (ring.type_inter == NcclPath::pxn) {
    for (const GpuView& gpu : node.gpus)
      if (gpu.nvlink_gbs > 0 && gpu.nvlink_gbs < kHopperNvlinkGbs) return false;
    return !node.gpus.empty();
  }
  return ring.type_inter <= NcclPath::pxb;
}

RuleAnswer JudgeLl128(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  // What forbids it is a separate cause.
  if (checks.Setting("NCCL_PROTO") || checks.Setting("NCCL_TUNER_PLUGIN") || !checks.failed_searches.empty() ||
      !checks.far_nodes.empty())
    return answer;
  const int all_reduce = NcclTunedIndex(OpKind::all_reduce);
  constexpr auto kRing = static_cast<size_t>(NcclAlgorithm::ring);
  constexpr auto kLl128 = static_cast<size_t>(NcclProtocol::ll128), kSimple = static_cast<size_t>(NcclProtocol::simple);
  for (const CommView& comm : view.comms) {
    if (comm.ranks <= 2) continue;  // a pair of Hopper GPUs goes without it under some versions of CUDA
    for (const uint32_t index : comm.setups) {
      const NcclSetup& setup = facts.incident.nccl_setups[index];
      const uint32_t node = view.NodeOfProcess(setup.speaker);
      const NcclGraphSearch* ring = setup.GraphOf(NcclAlgorithm::ring);
      if (setup.tables.empty() || !ring || node == kNoIndex || !setup.tables[0].has[all_reduce][kRing]) continue;
      const auto& cells = setup.tables[0].cells[all_reduce][kRing];
      if (cells[kLl128].bandwidth_gbps > 0 || cells[kSimple].bandwidth_gbps <= 0) continue;
      bool allowed = true;  // on all nodes: the worst path decides for all
      for (uint32_t n = 0; n < view.nodes.size(); ++n)
        if (const NcclGraphSearch* own = GraphOfNode(facts.incident, comm, n, NcclAlgorithm::ring))
          allowed &= AllowsLl128(view.nodes[n], *own);
      if (!allowed) continue;
      Finding finding = DegradedFinding("ll128-lost");
      finding.group = comm.group;
      finding.confidence = Confidence::likely;
      finding.headline =
          "The LL128 protocol is off although the paths of all nodes that left logs allow it: messages from a few "
          "kilobytes to a few megabytes use LL or Simple, at about half the speed";
      finding.evidence.push_back(
          {setup.tables[0].row_sources[all_reduce], "", "LL128 has a bandwidth of 0 in NCCL's table for all_reduce"});
      finding.evidence.push_back(CiteGraph(*ring, "paths that allow LL128"));
      answer.findings.push_back(std::move(finding));
      return answer;
    }
  }
  return answer;
}

}  // namespace

extern const Rule kLl128LostRule;
const Rule kLl128LostRule = {
    "ll128-lost",
    "LL128 is off although the paths allow it",
    "NCCL logs of rank 0 (INIT, GRAPH, TUNING)",
    "LL128 gives about 95 % of the bandwidth at a fraction of Simple's latency. NCCL turns it off where GPUs of the "
    "job "
    "differ in compute capability, where a node that left no log has worse paths, and on GPUs for which a release does "
    "not trust it.",
    "Without NVLink, or where network devices are reached through the CPU, LL128 is off by design. NCCL_PROTO that "
    "leaves it out is a setting, not a loss. Releases before 2.27 have no LL128 on compute capability 8.6 and 8.9.",
    {"Look for a GPU of another generation in the job, and for nodes whose Pattern lines show different path types.",
     "Update NCCL where the release does not know the GPU.",
     "Do not force it with NCCL_PROTO on hardware that NCCL excludes: data may be corrupted."},
    {"Keep GPU generations in separate queues."},
    JudgeLl128};

}  // namespace tacet
