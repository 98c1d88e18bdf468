// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <set>

#include "render/joined_pages.h"
#include "render/page_fill.h"
#include "render/render_words.h"
#include "render/report/json_render.h"
#include "render/text_layout.h"
#include "render/topology/topology_render.h"

namespace tacet {
namespace {

constexpr size_t kMostComms = 6, kMostNodesOfRing = 4, kMostGpuRows = 16;

std::string Gbs(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

// "node0,2-3": names that end in numbers and have all before them in common. Empty where they do not.
std::string NumberedNames(const std::vector<const TopologyNode*>& nodes) {
  constexpr size_t kMostDigits = 8, kRoom = 32;
  std::string stem;
  std::vector<int> numbers;
  numbers.reserve(nodes.size());
  for (const TopologyNode* node : nodes) {
    const std::string name = CleanLine(node->name);
    const size_t end = name.find_last_not_of("0123456789") + 1;
    const std::string digits = name.substr(end);
    if (digits.empty() || digits.size() > kMostDigits || (digits.size() > 1 && digits.front() == '0')) return "";
    if (numbers.empty()) stem = name.substr(0, end);
    if (name.compare(0, end, stem) != 0) return "";
    numbers.push_back(std::stoi(digits));
  }
  std::sort(numbers.begin(), numbers.end());
  return stem + FoldRanks(numbers, kRoom);
}

// "gpu000", "gpu000 to gpu255 (256 identical)", "gpu000, gpu002 to gpu007 (7 identical)": a range names no node that
// differs.
std::string NamesOf(const std::vector<const TopologyNode*>& nodes) {
  const std::string alike = nodes.size() > 2 ? " (" + std::to_string(nodes.size()) + " identical)" : "";
  const bool together = nodes.back() - nodes.front() + 1 == static_cast<std::ptrdiff_t>(nodes.size());
  if (const std::string numbered = together ? "" : NumberedNames(nodes); !numbered.empty()) return numbered + alike;
  constexpr size_t kMostRuns = 4;
  std::string out;
  size_t named = 0;
  for (size_t i = 0, runs = 0; i < nodes.size() && runs < kMostRuns; ++runs) {
    size_t end = i + 1;
    while (end < nodes.size() && nodes[end] == nodes[end - 1] + 1) ++end;
    const size_t count = end - i;
    if (!out.empty()) out += ", ";
    out += CleanLine(nodes[i]->name);
    if (count == 2) out += ", ";
    if (count > 2) out += " to ";
    if (count > 1) out += CleanLine(nodes[end - 1]->name);
    named += count;
    i = end;
  }
  if (named < nodes.size()) out += ", ...";
  return out + alike;
}

// "8 GPUs, NVLink 370 GB/s"; of several nodes that are alike "1 GPU each", and "1 GPU, shared by all nodes" where they
// are one host to which NCCL_HOSTID gives several names.
std::string GpuWords(const TopologyNode& node, bool several) {
  const std::string each = node.shares_gpus ? (several ? ", shared by all nodes" : ", shared with other nodes")
                           : several        ? " each"
                                            : "";
  if (node.gpus.empty()) return "unknown";
  std::string out = Count(node.gpus.size(), "GPU") + each;
  double least = 0, most = 0;
  for (const TopologyGpu& gpu : node.gpus) {
    if (gpu.nvlink_gbs > 0 && (least == 0 || gpu.nvlink_gbs < least)) least = gpu.nvlink_gbs;
    most = std::max(most, gpu.nvlink_gbs);
  }
  if (least > 0) out += ", NVLink " + Gbs(least) + (Gbs(most) != Gbs(least) ? " to " + Gbs(most) : "") + " GB/s";
  if (node.nvswitch) out += ", NVSwitch";
  return out;
}

// "mlx5_0..mlx5_4, mlx5_6, mlx5_7": a range holds every name between its ends.
std::string FoldNames(const std::vector<std::string>& names) {
  constexpr size_t kMostDigits = 8, kLeastFolded = 3;
  const auto number_of = [](const std::string& name, std::string* stem) {
    const size_t end = name.find_last_not_of("0123456789") + 1;
    const std::string digits = name.substr(end);
    *stem = name.substr(0, end);
    const bool plain = !digits.empty() && digits.size() <= kMostDigits && (digits.size() == 1 || digits.front() != '0');
    return plain ? std::stoi(digits) : -1;
  };
  std::string out;
  for (size_t i = 0; i < names.size();) {
    std::string stem, next;
    const int first = number_of(names[i], &stem);
    size_t end = i + 1;
    while (first >= 0 && end < names.size() && number_of(names[end], &next) == first + static_cast<int>(end - i) &&
           next == stem)
      ++end;
    if (end - i < kLeastFolded) end = i + 1;
    out += (out.empty() ? "" : ", ") + names[i] + (end > i + 1 ? ".." + names[end - 1] : "");
    i = end;
  }
  return out;
}

std::string NicWords(const TopologyNode& node) {
  std::map<std::pair<std::string, double>, std::vector<std::string>> kinds;
  for (const TopologyNic& nic : node.nics)
    kinds[{nic.link.empty() ? node.net : nic.link, nic.speed_gbs}].push_back(
        nic.name.empty() ? "NIC " + std::to_string(nic.index) : CleanLine(nic.name));
  std::string out;
  for (const auto& [kind, names] : kinds) {
    if (!out.empty()) out += "; ";
    out += Count(names.size(), "NIC") + " " + FoldNames(names);
    std::string words = CleanLine(kind.first);
    if (kind.second > 0) words += (words.empty() ? "" : ", ") + Gbs(kind.second) + " GB/s";
    if (!words.empty()) out += " (" + words + ")";
  }
  return out;
}

std::string NodeHead(const TopologyReport& topology) {
  return !topology.nodes.empty() && topology.nodes.front().of_file ? "FILE" : "NODE";
}

void AddNodes(TextPage& page, const TopologyReport& topology) {
  page.Heading("Nodes");
  std::map<int, std::vector<const TopologyNode*>> alike;
  for (const TopologyNode& node : topology.nodes) alike[node.like].push_back(&node);
  std::vector<TextRow> rows = {{{NodeHead(topology)}, {"RANKS"}, {"GPUS"}, {"NICS"}}};
  for (const auto& [first, nodes] : alike) {
    const TopologyNode& node = *nodes.front();
    std::vector<int> ranks;
    for (const TopologyNode* one : nodes) ranks.insert(ranks.end(), one->ranks.begin(), one->ranks.end());
    rows.push_back({{NamesOf(nodes), node.guilty ? Ink::yellow : Ink::strong},
                    {DescribeRanks(ranks, 24)},
                    {GpuWords(node, nodes.size() > 1)},
                    {NicWords(node)}});
  }
  // What tells apart nodes that look the same here: how many hops of rings leave them.
  std::map<std::pair<std::string, std::string>, std::set<uint32_t>> hops_of;
  std::vector<std::pair<std::string, std::string>> looks(1);
  std::vector<uint32_t> hops(1, 0);
  for (const auto& [first, nodes] : alike) {
    uint32_t& own = hops.emplace_back(0);
    for (const TopologyNic& nic : nodes.front()->nics) own += nic.ring_sends;
    looks.emplace_back(GpuWords(*nodes.front(), false), NicWords(*nodes.front()));
    hops_of[looks.back()].insert(own);
  }
  for (size_t i = 1; i < rows.size(); ++i)
    if (hops_of[looks[i]].size() > 1) rows[i][3].text += ", " + Count(hops[i], "ring hop");
  page.PartsTable(rows, 2);
}

class RankNodes {
 public:
  explicit RankNodes(const TopologyReport& topology) {
    for (const TopologyNode& node : topology.nodes)
      for (const int rank : node.ranks) node_of_[rank] = &node;
  }
  const TopologyNode* Of(int rank) const {
    const auto found = node_of_.find(rank);
    return found == node_of_.end() ? nullptr : found->second;
  }

 private:
  std::map<int, const TopologyNode*> node_of_;
};

// "gpu000 0 1 2 3 4 5 6 7 > gpu001 8 9 10 11 12 13 14 15": a hop to another node is an arrow, a slow hop a mark.
std::string RingWords(const TopologyRing& ring, const RankNodes& nodes) {
  if (!ring.whole) {
    std::string out = "incomplete: " + Count(ring.hops.size(), "hop") + " known";
    for (const std::string& one : ring.breaks) out += "; " + CleanLine(one);
    return out;
  }
  const std::set<int> slow(ring.slow.begin(), ring.slow.end());
  std::vector<std::string> runs;
  const TopologyNode* before = nullptr;
  for (size_t i = 0; i < ring.order.size(); ++i) {
    const TopologyNode* node = nodes.Of(ring.order[i]);
    if (runs.empty() || node != before) runs.push_back(node ? CleanLine(node->name) : "?");
    runs.back() += " " + std::to_string(ring.order[i]) + (slow.contains(static_cast<int>(i)) ? "!" : "");
    before = node;
  }
  std::string out;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > kMostNodesOfRing + 1 && i == kMostNodesOfRing - 1) {
      out += " > ... " + std::to_string(runs.size() - kMostNodesOfRing) + " more nodes ...";
      i = runs.size() - 2;
      continue;
    }
    out += (i > 0 ? " > " : "") + runs[i];
  }
  return out;
}

int DepthOf(const TopologyTree& tree) {
  std::map<int, int> parent;
  for (const auto& [rank, up] : tree.parents) parent[rank] = up;
  int deepest = 0;
  for (const auto& [rank, up] : tree.parents) {
    int depth = 0;
    for (int at = rank; depth <= static_cast<int>(parent.size()); ++depth) {
      const auto found = parent.find(at);
      if (found == parent.end() || found->second < 0) break;
      at = found->second;
    }
    // Of members whose ranks no log tells, numbers of the communicator and of the job can meet: no depth follows.
    if (depth <= static_cast<int>(parent.size())) deepest = std::max(deepest, depth);
  }
  return deepest;
}

template <typename Item>
std::vector<int> ChannelsLike(const std::vector<Item>& items, const Item& item) {
  std::vector<int> channels;
  for (const Item& one : items)
    if (&one == &item || one.same_as == item.channel) channels.push_back(one.channel);
  return channels;
}

void AddRings(TextPage& page, const TopologyComm& comm, const RankNodes& nodes, bool verbose) {
  constexpr size_t kMostRings = 8;
  size_t shown = 0, left = 0, widest = 0;
  const auto channels = [&](const TopologyRing& ring) { return FoldRanks(ChannelsLike(comm.rings, ring), 24); };
  for (const TopologyRing& ring : comm.rings)
    if (ring.same_as < 0) widest = std::max(widest, channels(ring).size());
  bool slow = false;
  for (const TopologyRing& ring : comm.rings) {
    if (ring.same_as >= 0) continue;
    const bool marked = !ring.slow.empty() || !ring.breaks.empty();
    if (!verbose && !marked && shown >= kMostRings) {
      ++left;
      continue;
    }
    ++shown;
    slow = slow || (ring.whole && !ring.slow.empty());
    std::string label = channels(ring);
    label.resize(widest, ' ');
    page.Paragraph("  ring " + label + "  ", RingWords(ring, nodes), marked ? Ink::yellow : Ink::plain);
  }
  if (slow) page.Line("  " + page.Paint("! marks a hop that is slower than it could be", Ink::dim));
  if (left > 0)
    page.Line("  " +
              page.Paint(Count(left, "more ring") + (left == 1 ? "; --verbose lists it" : "; --verbose lists them"),
                         Ink::dim));
  // Trees of one depth tell nothing apart but their roots.
  std::vector<int> tree_channels, roots;
  std::set<int> depths;
  for (const TopologyTree& tree : comm.trees) {
    tree_channels.push_back(tree.channel);
    if (tree.root >= 0) roots.push_back(tree.root);
    depths.insert(DepthOf(tree));
  }
  constexpr size_t kFewTrees = 2;
  if (!verbose && depths.size() == 1 && comm.trees.size() > kFewTrees) {
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    page.Line("  trees " + FoldRanks(tree_channels, 24) + "  " +
              (roots.empty()       ? std::string()
               : roots.size() == 1 ? "root rank " + std::to_string(roots[0]) + ", "
                                   : "root ranks " + FoldRanks(roots, 24) + ", ") +
              (comm.seen < comm.ranks ? "depth at least " : "depth ") + std::to_string(*depths.begin()));
    return;
  }
  size_t trees_shown = 0, trees_left = 0;
  for (const TopologyTree& tree : comm.trees) {
    if (tree.same_as >= 0) continue;
    if (!verbose && trees_shown >= kMostRings) {
      ++trees_left;
      continue;
    }
    ++trees_shown;
    page.Line("  tree " + FoldRanks(ChannelsLike(comm.trees, tree), 24) + "  " +
              (tree.root >= 0 ? "root rank " + std::to_string(tree.root) + ", " : "") +
              (comm.seen < comm.ranks ? "depth at least " : "depth ") + std::to_string(DepthOf(tree)));
  }
  if (trees_left > 0)
    page.Line("  " + page.Paint(Count(trees_left, "more tree") +
                                    (trees_left == 1 ? "; --verbose lists it" : "; --verbose lists them"),
                                Ink::dim));
}

void AddComm(TextPage& page, const TopologyReport& topology, const TopologyComm& comm, const RankNodes& nodes,
             bool verbose) {
  std::string title = CleanLine(comm.label);
  if (comm.ranks > 0) title += ": " + Count(static_cast<uint64_t>(comm.ranks), "rank");
  if (comm.nodes > 0) title += " on " + Count(static_cast<uint64_t>(comm.nodes), "node");
  if (comm.channels > 0) title += ", " + Count(static_cast<uint64_t>(comm.channels), "channel");
  const auto ring = std::find_if(comm.graphs.begin(), comm.graphs.end(),
                                 [](const TopologyGraph& graph) { return graph.name == "Ring"; });
  if (ring != comm.graphs.end() && comm.channels == 2 * ring->channels)
    title += " (" + std::to_string(ring->channels) + " of the ring graph, doubled)";
  if (comm.nvls_channels > 0) title += ", " + std::to_string(comm.nvls_channels) + " for NVLS";
  page.Heading(title);
  if (comm.seen < comm.ranks)
    page.Line("  " + page.Paint("the logs show only " + std::to_string(comm.seen) + " of these ranks in it", Ink::dim));
  for (const TopologyGraph& graph : comm.graphs) {
    std::string line = graph.name + " graph: " + Count(static_cast<uint64_t>(graph.channels), "channel") +
                       (graph.channels == 1 ? ": " : ", each ") + Gbs(graph.intra_gbs) + " GB/s inside a node (path " +
                       graph.type_intra + "), " + Gbs(graph.inter_gbs) + " GB/s between nodes (path " +
                       graph.type_inter + ")";
    if (graph.cross_nic > 0) line += ", enters and leaves nodes through different NICs on purpose";
    if (!graph.lowered_by.empty()) line += "; lowered by " + CleanLine(graph.lowered_by);
    page.Paragraph("  ", line, graph.lowered_by.empty() ? Ink::plain : Ink::yellow);
  }
  AddRings(page, comm, nodes, verbose);
  std::vector<TextRow> rows = {
      {{"hops by transport", Ink::dim}, {"inside nodes", Ink::dim}, {"between nodes", Ink::dim}}};
  for (const TopologyWay& way : comm.ways)
    rows.push_back({{"  " + CleanLine(topology.transports[static_cast<size_t>(way.transport)].text)},
                    {std::to_string(way.inside)},
                    {std::to_string(way.between)}});
  if (rows.size() > 1) page.Table(rows, 2, false);
}

void AddGpus(TextPage& page, const TopologyReport& topology, bool verbose) {
  std::vector<TextRow> rows;
  size_t left = 0;
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    const TopologyNode& node = topology.nodes[i];
    if (!verbose && (node.like != static_cast<int>(i) || rows.size() >= kMostGpuRows)) continue;
    for (const TopologyGpu& gpu : node.gpus) {
      if (gpu.nics.empty() && gpu.uses.empty()) continue;
      const auto names = [&](const std::vector<int>& nics) {
        std::vector<std::string> list;
        for (const int nic : nics) {
          const auto found = std::find_if(node.nics.begin(), node.nics.end(),
                                          [&](const TopologyNic& one) { return one.index == nic; });
          const bool named = found != node.nics.end() && !found->name.empty();
          list.push_back(named ? CleanLine(found->name) : "NIC " + std::to_string(nic));
        }
        constexpr size_t kMostNamed = 3;
        constexpr size_t kRoom = 20;  // the table of nodes has all names
        const std::string folded = FoldNames(list);
        if (list.size() > kMostNamed) return Count(list.size(), "NIC") + (folded.size() <= kRoom ? " " + folded : "");
        std::string out;
        for (const std::string& name : list) out += (out.empty() ? "" : ", ") + name;
        return out;
      };
      rows.push_back({{gpu.rank >= 0 ? std::to_string(gpu.rank) : "-"},
                      {CleanLine(node.name)},
                      {gpu.bus},
                      {gpu.nearest.empty() ? "" : gpu.nearest + " to " + names(gpu.nics)},
                      {gpu.uses.empty() ? "" : names(gpu.uses)}});
    }
  }
  if (rows.empty()) return;
  rows.insert(rows.begin(), {{"RANK"}, {NodeHead(topology)}, {"BUS"}, {"NEAREST"}, {"USED"}});
  page.Heading("NIC of each GPU");
  page.Table(rows, 2, false);
  for (size_t i = 0; i < topology.nodes.size(); ++i) left += topology.nodes[i].like != static_cast<int>(i) ? 1 : 0;
  if (!verbose && left > 0)
    page.Line("  " + page.Paint("identical nodes are shown once; --verbose lists all", Ink::dim));
}

}  // namespace

std::string RenderTopologyText(const Report& report, const TextOptions& options) {
  std::string out = RenderText(report, options);
  if (!report.topology) return out;
  const TopologyReport& topology = *report.topology;
  TextPage page(static_cast<size_t>(std::clamp(options.width, 40, 1000)), options.colour);
  if (!topology.nodes.empty()) AddNodes(page, topology);
  const RankNodes nodes(topology);
  for (size_t i = 0; i < topology.comms.size() && (options.verbose || i < kMostComms); ++i)
    AddComm(page, topology, topology.comms[i], nodes, options.verbose);
  if (!options.verbose && topology.comms.size() > kMostComms)
    page.Line(
        page.Paint(Count(topology.comms.size() - kMostComms, "more communicator") +
                       (topology.comms.size() - kMostComms == 1 ? "; --verbose lists it" : "; --verbose lists them"),
                   Ink::dim));
  AddGpus(page, topology, options.verbose);
  const std::string sections = page.Take();
  return out + (sections.empty() || sections.front() == '\n' ? "" : "\n") + sections;
}

std::string RenderTopologyHtml(const Report& report) {
  return FillPage(TopologyPage(), {.title = "Tacet topology: " + std::string(Name(report.verdict.status)),
                                   .plain = RenderTopologyText(report, TextOptions()),
                                   .json = RenderJson(report),
                                   .asks_server = false});
}

}  // namespace tacet
