// SPDX-License-Identifier: Apache-2.0
// What each node's own search found, compared with the others'.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include "analysis/network/topology_checks.h"
#include "base/text_scan.h"

namespace tacet {

const NcclGraphSearch* GraphOfNode(const Incident& incident, const CommView& comm, uint32_t node,
                                   NcclAlgorithm algorithm) {
  const auto setups = comm.setups_of_node.find(node);
  if (setups == comm.setups_of_node.end()) return nullptr;
  for (const uint32_t index : setups->second)
    if (const NcclGraphSearch* graph = incident.nccl_setups[index].GraphOf(algorithm)) return graph;
  return nullptr;
}

namespace {

std::string Figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// The value that most nodes have; of equally frequent ones the better.
template <typename T>
T Usual(const std::map<T, int>& counts, bool larger_is_better) {
  T best{};
  int most = 0;
  for (const auto& [value, times] : counts)
    if (times > most || (times == most && larger_is_better)) best = value, most = times;
  return best;
}

using NodeGraphs = std::map<uint32_t, const NcclGraphSearch*>;

NodeGraphs GraphsOf(const Incident& incident, const TopologyView& view, const CommView& comm, NcclAlgorithm graph) {
  NodeGraphs graphs;
  for (const uint32_t index : comm.setups) {
    const NcclSetup& setup = incident.nccl_setups[index];
    const uint32_t node = view.NodeOfProcess(setup.speaker);
    if (node == kNoIndex || graphs.contains(node)) continue;
    if (const NcclGraphSearch* found = setup.GraphOf(graph)) graphs.emplace(node, found);
  }
  return graphs;
}

bool IsFailed(const NcclGraphSearch& graph) {
  // The search's ladder of speeds ends above this: 0.1 stands for "no path found".
  constexpr double kNoPathGbs = 0.11;
  return graph.simple_order ||
         (graph.channels > 0 && graph.bw_intra > 0 && graph.bw_intra < kNoPathGbs && graph.bw_inter < kNoPathGbs);
}

double Least(const NodeView& node, double GpuView::*field) {
  double least = 0;
  for (const GpuView& gpu : node.gpus)
    if (gpu.*field > 0 && (least == 0 || gpu.*field < least)) least = gpu.*field;
  return least;
}

double LeastNic(const NodeView& node, double NicView::*field) {
  double least = 0;
  for (const NicView& nic : node.nics)
    if (nic.*field > 0 && (least == 0 || nic.*field < least)) least = nic.*field;
  return least;
}

void Compare(double own, double usual, const std::string& what, std::vector<std::string>& lacks) {
  if (own > 0 && usual > 0 && own < usual * 0.95)
    lacks.push_back(what + " carries " + Figure(own) + " GB/s instead of " + Figure(usual));
}

// What the lesser node's hardware has less of.
std::vector<std::string> Lacks(const NodeView& own, const NodeView& usual) {
  std::vector<std::string> lacks;
  if (own.nics.size() < usual.nics.size() && !own.nics.empty())
    lacks.push_back("it has " + std::to_string(own.nics.size()) + " network devices instead of " +
                    std::to_string(usual.nics.size()));
  if (usual.has_nvlink && !own.has_nvlink && own.hardware) lacks.push_back("its GPUs have no NVLink");
  Compare(Least(own, &GpuView::nvlink_gbs), Least(usual, &GpuView::nvlink_gbs), "the NVLink of a GPU", lacks);
  Compare(Least(own, &GpuView::pci_gbs), Least(usual, &GpuView::pci_gbs), "the PCIe link of a GPU", lacks);
  Compare(LeastNic(own, &NicView::speed_gbs), LeastNic(usual, &NicView::speed_gbs), "a network device", lacks);
  Compare(LeastNic(own, &NicView::pci_gbs), LeastNic(usual, &NicView::pci_gbs), "the PCIe link of a network device",
          lacks);
  const auto worst = [](const NodeView& node) {
    NcclPath path = NcclPath::unknown;
    for (const GpuView& gpu : node.gpus) path = std::max(path, gpu.nearest);
    return path;
  };
  if (own.knows_paths && usual.knows_paths && worst(own) > worst(usual))
    lacks.push_back("a GPU reaches its nearest network device over " + std::string(Name(worst(own))) + " instead of " +
                    std::string(Name(worst(usual))));
  return lacks;
}

void FindLowerNodes(const TopologyView& view, uint32_t comm, NcclAlgorithm algorithm, const NodeGraphs& graphs,
                    TopologyChecks& checks) {
  if (graphs.size() < 2) return;
  std::map<int32_t, int> channels;
  std::map<double, int> intra, inter;
  std::map<NcclPath, int> type_intra, type_inter;
  for (const auto& [node, graph] : graphs) {
    ++channels[graph->channels];
    ++intra[graph->bw_intra], ++inter[graph->bw_inter];
    ++type_intra[graph->type_intra], ++type_inter[graph->type_inter];
  }
  const int32_t usual_channels = Usual(channels, true);
  const double usual_intra = Usual(intra, true), usual_inter = Usual(inter, true);
  const NcclPath near_intra = Usual(type_intra, false), near_inter = Usual(type_inter, false);
  const auto is_usual = [&](const NcclGraphSearch& graph) {
    return graph.channels >= usual_channels && graph.bw_intra >= usual_intra && graph.bw_inter >= usual_inter;
  };
  const auto usual = std::find_if(graphs.begin(), graphs.end(), [&](const auto& one) { return is_usual(*one.second); });
  if (usual == graphs.end()) return;
  std::vector<LowerNode> found;
  for (const auto& [node, graph] : graphs) {
    LowerNode lower;
    const auto less = [&](std::string own, const std::string& than) {
      lower.lowered.push_back(std::move(own) + " instead of " + than);
    };
    if (graph->channels < usual_channels)
      less(std::to_string(graph->channels) + (graph->channels == 1 ? " channel" : " channels"),
           std::to_string(usual_channels));
    const bool alike = graph->bw_inter == graph->bw_intra && usual_inter == usual_intra;
    if (graph->bw_inter < usual_inter && alike)
      less(Figure(graph->bw_inter) + " GB/s per channel", Figure(usual_inter));
    else if (graph->bw_inter < usual_inter)
      less(Figure(graph->bw_inter) + " GB/s per channel between nodes", Figure(usual_inter));
    if (graph->bw_intra < usual_intra && !alike)
      less(Figure(graph->bw_intra) + " GB/s per channel inside the node", Figure(usual_intra));
    if (graph->type_inter > near_inter && near_inter != NcclPath::unknown)
      less("paths of type " + std::string(Name(graph->type_inter)) + " to the network", std::string(Name(near_inter)));
    if (graph->type_intra > near_intra && near_intra != NcclPath::unknown)
      less("paths of type " + std::string(Name(graph->type_intra)) + " between GPUs", std::string(Name(near_intra)));
    if (lower.lowered.empty()) continue;
    lower.node = node;
    lower.comm = comm;
    lower.graph = algorithm;
    lower.own = graph;
    lower.usual = usual->second;
    lower.lacks = Lacks(view.nodes[node], view.nodes[usual->first]);
    found.push_back(std::move(lower));
  }
  // Where half of the nodes or more have less, nobody is the exception.
  if (found.size() * 2 > graphs.size()) return;
  for (LowerNode& lower : found) {
    const bool known = std::any_of(checks.lower_nodes.begin(), checks.lower_nodes.end(),
                                   [&](const LowerNode& other) { return other.node == lower.node; });
    if (!known) checks.lower_nodes.push_back(std::move(lower));
  }
}

// NICs hang on switches next to GPUs, and the ring reaches them through the CPU all the same.
bool IsFar(const NodeView& node, const NcclGraphSearch& ring, int minor) {
  if (ring.type_inter != NcclPath::phb && ring.type_inter != NcclPath::sys) return false;
  if (!node.knows_paths || node.gpus.empty()) return false;
  const auto has_near = [](const GpuView& gpu) { return IsNear(gpu.nearest); };
  // Behind an NVSwitch every GPU reaches the NIC of every other one (PXN, since 2.12), so that one of them is enough.
  constexpr int kFirstWithPxn = 12;
  return node.has_nvswitch && (minor < 0 || minor >= kFirstWithPxn)
             ? std::any_of(node.gpus.begin(), node.gpus.end(), has_near)
             : std::all_of(node.gpus.begin(), node.gpus.end(), has_near);
}

// Nodes that take part with different numbers of GPUs find different graphs by right.
bool NodesAreEven(const Incident& incident, const CommView& comm) {
  int32_t local_ranks = -1;
  for (const uint32_t index : comm.setups) {
    const int32_t own = incident.nccl_setups[index].local_ranks;
    if (own < 0) continue;
    if (local_ranks >= 0 && own != local_ranks) return false;
    local_ranks = own;
  }
  return true;
}

}  // namespace

int MinorReleaseOf(const Incident& incident, const CommView& comm) {
  if (comm.setups.empty()) return -1;
  std::string_view version = incident.strings.Get(incident.nccl_setups[comm.setups.front()].version);
  int minor = -1;
  TakeLiteral(version, "RCCL ");
  return TakeLiteral(version, "2.") && TakeNumber(version, &minor) ? minor : -1;
}

void CheckGraphs(const Incident& incident, const TopologyView& view, TopologyChecks& checks) {
  std::set<uint32_t> failed, far;
  for (uint32_t c = 0; c < view.comms.size(); ++c) {
    const CommView& comm = view.comms[c];
    const int minor = MinorReleaseOf(incident, comm);
    const bool even = NodesAreEven(incident, comm);
    for (const NcclAlgorithm algorithm : {NcclAlgorithm::ring, NcclAlgorithm::tree}) {
      const NodeGraphs graphs = GraphsOf(incident, view, comm, algorithm);
      for (const auto& [node, graph] : graphs) {
        if (IsFailed(*graph) && failed.insert(node).second) checks.failed_searches.push_back({node, c, graph});
        if (algorithm == NcclAlgorithm::ring && comm.nodes > 1 && !IsFailed(*graph) &&
            IsFar(view.nodes[node], *graph, minor))
          far.insert(node);
      }
      if (even) FindLowerNodes(view, c, algorithm, graphs, checks);
    }
  }
  checks.far_nodes.assign(far.begin(), far.end());
}

}  // namespace tacet
