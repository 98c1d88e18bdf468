// SPDX-License-Identifier: Apache-2.0
// NCCL's search for paths, for nodes whose GPUs are all alike and all connected alike. There the search comes down to
// trying its ladder of speeds: how many channels fit at each, and which product is the largest.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "predict/hardware.h"

namespace tacet {
namespace {

constexpr int kMostSearched = 32;  // channels; a communicator has up to twice as many

// What one channel of speed 1 takes of a node.
struct NodeLimits {
  double link = 0;  // GB/s of one GPU's NVLinks, or of its PCIe slot
  double nic = 0;   // GB/s of one NIC, its PCIe slot included
  double slot = 0;  // GB/s of one GPU's PCIe slot: what it exchanges with NICs passes it
  int nics = 0;     // 0 on one node
  int gpus = 1;
};

int ChannelsAt(float speed, const NodeLimits& node, bool tree, int most) {
  // A chain of trees uses one link less than a ring.
  const double factor = tree && node.gpus > 1 ? node.gpus / (node.gpus - 1.0) : 1.0;
  int channels = node.gpus > 1 ? static_cast<int>(std::floor(node.link * factor / speed + 1e-6)) : most;
  if (node.nics > 0) {
    const int per_nic = static_cast<int>(std::floor(node.nic / speed + 1e-6));
    const int per_slot = static_cast<int>(std::floor(node.slot / speed + 1e-6));
    channels = std::min({channels, node.nics * per_nic, node.gpus * per_slot});
  }
  return std::min(channels, most);
}

struct Found {
  int channels = 0;
  float speed = 0;
  size_t index = 0;  // in the ladder
};

// The first speed of the largest total, going down while a speed is more than about half of the best so far.
Found SearchSpeeds(const std::vector<float>& ladder, const NodeLimits& node, bool tree, int most) {
  Found best;
  for (size_t i = 0; i < ladder.size(); ++i) {
    if (best.channels > 0 && ladder[i] / best.speed <= .49f) break;
    const int channels = ChannelsAt(ladder[i], node, tree, most);
    if (static_cast<float>(channels) * ladder[i] > static_cast<float>(best.channels) * best.speed)
      best = {channels, ladder[i], i};
  }
  return best;
}

NcclModelGraph MakeGraph(const Found& found, int pattern, NcclPath intra, NcclPath inter, int capability) {
  NcclModelGraph graph{found.channels, found.speed, found.speed, intra, inter, pattern, true, 0};
  const bool keep = capability > 80 && found.speed < 50 && found.channels > 4;
  if (found.speed >= 25 && !keep && pattern != kPatternNvls && 2 * found.channels <= kMostSearched) {
    graph.channels *= 2;  // each channel is split in two of half the speed
    graph.bw_intra /= 2;
    graph.bw_inter /= 2;
  }
  return graph;
}

NcclModelGraph SearchNvls(const std::vector<float>& ladder, const NodeLimits& node, NcclPath inter) {
  for (size_t i = 0; i < ladder.size(); ++i) {
    if (ladder[i] * static_cast<float>(node.gpus) > node.link) continue;
    if (node.nics > 0 && (ladder[i] > node.nic || node.nics < node.gpus)) continue;
    NcclModelGraph graph{node.gpus, ladder[i], ladder[i], NcclPath::nvl, inter, kPatternNvls, true, 0};
    // The second pass raises the speed between nodes alone.
    for (size_t up = i; up-- > 0 && graph.bw_inter < 2 * graph.bw_intra;) {
      if (node.nics > 0 && ladder[up] > node.nic) break;
      graph.bw_inter = ladder[up];
    }
    return graph;
  }
  return {};
}

// The second pass raises the speed within the node alone, up to twice that between nodes.
void RaiseTree(const std::vector<float>& ladder, const Found& found, NodeLimits node, NcclModelGraph& tree) {
  node.nics = 0;
  for (size_t up = found.index; up-- > 0 && tree.bw_intra < 2 * tree.bw_inter;) {
    if (node.gpus > 1 && ChannelsAt(ladder[up], node, true, kMostSearched) < tree.channels) break;
    tree.bw_intra = ladder[up];
  }
}

int CommunicatorChannels(const NcclRelease& release, const NcclCommunicator& c) {
  int channels = 2 * c.ring.channels;
  if (c.min_capability >= 90 && c.nodes > 1 && c.ring.bw_intra > 45 && channels < 16) channels *= 2;
  return std::min(channels, release.AtLeast(25) ? 64 : 32);
}

std::string Gbps(double value) {
  const double rounded = std::round(value * 10) / 10;
  std::string text = std::to_string(rounded);
  text.erase(text.find('.') + 2);
  if (text.ends_with(".0")) text.erase(text.size() - 2);
  return text + " GB/s";
}

}  // namespace

std::vector<float> SpeedLadder(const NcclRelease& release, int capability, bool between_nodes) {
  std::vector<float> ladder;
  if (capability >= 100 && release.AtLeast(25)) {
    ladder = between_nodes ? std::vector<float>{96, 86,    80, 48, 45.1f, 42, 40,   30,   24,   22,
                                                20, 17.5f, 15, 12, 6,     3,  2.4f, 1.2f, .24f, .12f}
                           : std::vector<float>{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
    if (between_nodes && release.Before(30, 3)) std::erase(ladder, 86.0f);
    if (between_nodes && release.Before(29, 7)) std::erase(ladder, 80.0f);
    if (between_nodes && release.Before(27)) {
      std::erase(ladder, 96.0f);
      std::replace(ladder.begin(), ladder.end(), 45.1f, 45.0f);
    }
    if (!between_nodes && release.Before(29, 3)) std::erase(ladder, 45.0f);
    if (!between_nodes && release.Before(27)) std::erase(ladder, 18.0f);
    return ladder;
  }
  if (capability >= 90) {
    ladder = between_nodes
                 ? std::vector<float>{48, 45, 42, 40, 30, 24, 22, 20, 17.5f, 15, 12, 6, 3, 2.4f, 1.2f, .24f, .12f}
                 : std::vector<float>{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
    if (release.Before(20)) std::erase(ladder, between_nodes ? 22.0f : 50.0f);
    if (!between_nodes && release.Before(24)) std::erase(ladder, 11.0f);
    return ladder;
  }
  if (between_nodes) return {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4f, 1.2f, .24f, .12f};
  if (release.Before(17)) return {44, 30, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
  return {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
}

NcclCommunicator SearchGraphs(const NcclRelease& release, const ClusterHardware& hardware,
                              std::vector<std::string>* assumptions) {
  NcclCommunicator c;
  c.release = release;
  c.ranks = hardware.gpus_per_node * hardware.nodes;
  c.nodes = hardware.nodes;
  c.max_local_ranks = hardware.gpus_per_node;
  c.min_capability = c.max_capability = hardware.gpu.capability;
  c.cpu = hardware.cpu;
  const bool nvlink = hardware.gpu.nvlinks > 0 && hardware.gpus_per_node > 1;
  const bool several = hardware.nodes > 1;
  c.link_gbps = nvlink ? hardware.gpu.nvlinks * NvlinkGbps(release, hardware.gpu.capability) : 0;
  c.nvswitch = nvlink && hardware.gpu.nvswitch && hardware.gpus_per_node > 2;
  NodeLimits node;
  node.gpus = hardware.gpus_per_node;
  node.link = nvlink ? hardware.gpu.nvlinks * NvlinkGbps(release, hardware.gpu.capability) : hardware.gpu.pcie_gbps;
  if (several) {
    node.nics = std::max(1, hardware.nics_per_node);
    node.slot = hardware.gpu.pcie_gbps;
    node.nic = std::min(hardware.nic_gbit > 0 ? hardware.nic_gbit / 8 : 12.0, hardware.gpu.pcie_gbps);
  }
  const NcclPath intra = hardware.gpus_per_node == 1 ? NcclPath::loc : nvlink ? NcclPath::nvl : NcclPath::phb;
  const bool own_nic = node.nics >= node.gpus;
  const NcclPath inter = !several                  ? NcclPath::loc
                         : !hardware.gdr           ? NcclPath::phb
                         : nvlink && node.gpus > 1 ? NcclPath::pxn
                         : own_nic                 ? NcclPath::pix
                                                   : NcclPath::pxb;
  const std::vector<float> ladder = SpeedLadder(release, hardware.gpu.capability, several);
  c.ring =
      MakeGraph(SearchSpeeds(ladder, node, false, kMostSearched), kPatternRing, intra, inter, hardware.gpu.capability);
  const Found tree = SearchSpeeds(ladder, node, true, std::max(1, c.ring.channels));
  const int pattern = node.gpus == 1                 ? kPatternTree
                      : hardware.gpu.capability < 80 ? kPatternSplitTree
                                                     : kPatternBalancedTree;
  c.tree = MakeGraph(tree, pattern, intra, inter, hardware.gpu.capability);
  if (several) RaiseTree(ladder, tree, node, c.tree);
  c.ring.channels = c.tree.channels = std::min(c.ring.channels, c.tree.channels);
  if (c.nvswitch && hardware.gpu.capability >= 90 && release.AtLeast(18)) {
    c.nvls = SearchNvls(ladder, node, inter);
    c.multicast = c.nvls.channels > 0;
    const bool blackwell = hardware.gpu.capability >= 100 && release.AtLeast(25);
    c.nvls_channels = !c.multicast ? 0 : blackwell ? (several ? 32 : 24) : 16;
  }
  c.channels = CommunicatorChannels(release, c);
  assumptions->push_back(std::string(several ? "all nodes are identical: " : "") +
                         std::string(nvlink ? "NVLink " : "PCIe ") + Gbps(node.link) + " per GPU" +
                         (several ? ", NICs " + Gbps(node.nic) + " each behind PCIe" : ""));
  if (several && node.nics * node.nic > node.gpus * node.slot * 1.001)
    assumptions->push_back(std::to_string(node.nics) + " NICs per node, but " + std::to_string(node.gpus) +
                           (node.gpus == 1 ? " GPU: its PCIe link (" : " GPUs: their PCIe links (") + Gbps(node.slot) +
                           (node.gpus == 1 ? ") is the limit" : " each) are the limit"));
  assumptions->push_back(
      "numbers of channels and speeds from NCCL's tables, without its full search; a log or a graph file "
      "(NCCL_GRAPH_DUMP_FILE) holds what NCCL found");
  if (several && hardware.nic_gbit <= 0)
    assumptions->push_back(std::to_string(node.nics) + (node.nics == 1 ? " NIC" : " NICs") +
                           " of 12 GB/s per node (--nics sets number and speed)");
  return c;
}

}  // namespace tacet
