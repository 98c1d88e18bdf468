// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <tuple>

#include "render/render_words.h"
#include "render/topology/topology_render.h"

namespace tacet {
namespace {

constexpr size_t kMostWholeNodes = 32;  // beyond this nodes that are alike are drawn once

// Names come from logs: quotes and backslashes would end the string.
std::string DotQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : CleanLine(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

struct Drawn {
  std::set<int> ranks;         // whose GPUs are drawn
  std::map<int, int> node_of;  // rank -> node
};

Drawn ChooseNodes(const TopologyReport& topology) {
  Drawn drawn;
  const bool fold = topology.nodes.size() > kMostWholeNodes;
  for (size_t i = 0; i < topology.nodes.size(); ++i)
    for (const int rank : topology.nodes[i].ranks) {
      drawn.node_of[rank] = static_cast<int>(i);
      if (!fold || topology.nodes[i].like == static_cast<int>(i)) drawn.ranks.insert(rank);
    }
  return drawn;
}

void DrawNode(const TopologyReport& topology, size_t index, size_t alike, std::string& out) {
  const TopologyNode& node = topology.nodes[index];
  const std::string id = std::to_string(index);
  out += "  subgraph cluster_" + id + " {\n    label=" +
         DotQuoted(node.name + (alike > 1 ? " and " + std::to_string(alike - 1) + " more like it" : "")) +
         ";\n    style=rounded; color=" + (node.guilty ? "\"#c4302b\"" : "\"#8b877f\"") + ";\n";
  for (const int rank : node.ranks)
    out += "    r" + std::to_string(rank) + " [label=\"" + std::to_string(rank) + "\"];\n";
  for (const TopologyNic& nic : node.nics) {
    const std::string name = nic.name.empty() ? "NIC " + std::to_string(nic.index) : nic.name;
    out += "    n" + id + "_" + std::to_string(nic.index) + " [shape=box, label=" + DotQuoted(name) + "];\n";
  }
  for (const TopologyGpu& gpu : node.gpus)
    for (const int nic : gpu.nics)
      if (gpu.rank >= 0 && gpu.nearest != "PXN")
        out += "    r" + std::to_string(gpu.rank) + " -> n" + id + "_" + std::to_string(nic) +
               " [dir=none, style=dotted, label=" + DotQuoted(gpu.nearest) + "];\n";
  out += "  }\n";
}

struct Edge {
  int from, to, way;
  bool operator<(const Edge& other) const {
    return std::tie(from, to, way) < std::tie(other.from, other.to, other.way);
  }
};

// All channels of a hop in one arrow.
void DrawHops(const TopologyReport& topology, const TopologyComm& comm, const Drawn& drawn, std::string& out) {
  std::map<Edge, std::vector<int>> edges;
  std::set<std::pair<int, int>> slow;
  std::map<int, const TopologyRing*> by_channel;
  for (const TopologyRing& ring : comm.rings) by_channel[ring.channel] = &ring;
  for (const TopologyRing& ring : comm.rings) {
    const TopologyRing& told = ring.same_as >= 0 ? *by_channel[ring.same_as] : ring;
    const size_t hops = told.whole ? told.order.size() : told.hops.size();
    for (size_t i = 0; i < hops; ++i) {
      const int from = told.whole ? told.order[i] : told.hops[i].first;
      const int to = told.whole ? told.order[(i + 1) % hops] : told.hops[i].second;
      if (!drawn.ranks.contains(from) || !drawn.ranks.contains(to)) continue;
      edges[{from, to, told.ways[i]}].push_back(ring.channel);
    }
    for (const int place : told.slow)
      slow.emplace(told.whole ? told.order[static_cast<size_t>(place)] : told.hops[static_cast<size_t>(place)].first,
                   told.whole ? told.order[(static_cast<size_t>(place) + 1) % hops]
                              : told.hops[static_cast<size_t>(place)].second);
  }
  for (const auto& [edge, channels] : edges) {
    const std::string way = edge.way < 0 ? "" : topology.transports[static_cast<size_t>(edge.way)].text + "\\n";
    const bool is_slow = slow.contains({edge.from, edge.to});
    out += "  r" + std::to_string(edge.from) + " -> r" + std::to_string(edge.to) + " [label=\"" + CleanLine(way) +
           "channels " + FoldRanks(channels) + "\"" + (is_slow ? ", color=\"#c4302b\", penwidth=2.5" : "") + "];\n";
  }
}

}  // namespace

std::string RenderTopologyDot(const Report& report) {
  std::string out =
      "digraph topology {\n  rankdir=LR;\n  node [shape=circle, fontname=\"sans-serif\", fontsize=10];\n"
      "  edge [fontname=\"sans-serif\", fontsize=8, color=\"#3d6aa6\"];\n";
  if (report.topology) {
    const TopologyReport& topology = *report.topology;
    const Drawn drawn = ChooseNodes(topology);
    std::map<int, size_t> alike;
    for (const TopologyNode& node : topology.nodes) ++alike[node.like];
    const bool fold = topology.nodes.size() > kMostWholeNodes;
    for (size_t i = 0; i < topology.nodes.size(); ++i)
      if (!fold || topology.nodes[i].like == static_cast<int>(i))
        DrawNode(topology, i, fold ? alike[topology.nodes[i].like] : 1, out);
    if (!topology.comms.empty()) DrawHops(topology, topology.comms.front(), drawn, out);
  }
  return out + "}\n";
}

}  // namespace tacet
