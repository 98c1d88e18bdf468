// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/waterfall.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace tacet {
namespace {

std::string Gbs(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f GB/s" : "%.0f GB/s", value);
  return text;
}

// What a node can send into the network: all its NICs, each as fast as it is and as its slot and its path allow.
struct NodeRate {
  uint32_t node = 0;
  size_t nics = 0;
  double line = 0, pcie = 0, path = 0;
  const NicView* narrow = nullptr;  // the NIC whose slot takes most
  const NicView* far = nullptr;     // the NIC whose path takes most
};

double BestPath(const NodeView& node, const NicView& nic) {
  if (!node.hardware) return 0;
  double best = 0;
  for (const HardwarePath& path : node.hardware->paths) {
    const HardwareDevice &from = node.hardware->devices[path.from], &to = node.hardware->devices[path.to];
    if (from.kind == DeviceKind::gpu && to.kind == DeviceKind::net && to.number == nic.index)
      best = std::max(best, path.gbs);
  }
  return best;
}

NodeRate RateOf(const TopologyView& view, uint32_t index) {
  const NodeView& node = view.nodes[index];
  NodeRate rate;
  rate.node = index;
  double slot_loss = 0, path_loss = 0;
  for (const NicView& nic : node.nics) {
    if (nic.speed_gbs <= 0) continue;
    ++rate.nics;
    const double slot = nic.pci_gbs > 0 ? std::min(nic.speed_gbs, nic.pci_gbs) : nic.speed_gbs;
    const double best = BestPath(node, nic), path = best > 0 ? std::min(slot, best) : slot;
    rate.line += nic.speed_gbs, rate.pcie += slot, rate.path += path;
    if (nic.speed_gbs - slot > slot_loss) slot_loss = nic.speed_gbs - slot, rate.narrow = &nic;
    if (slot - path > path_loss) path_loss = slot - path, rate.far = &nic;
  }
  return rate;
}

std::string Setting(const TopologyChecks& checks, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const Event* setting = checks.Setting(name))
      return std::string(name) + "=" + setting->As<EnvironmentSetting>().value;
  return "";
}

class Builder {
 public:
  Builder(const ModelCheck& check, const ModelPoint& point, const TopologyView& view, const TopologyChecks& checks,
          OpKind op, Waterfall& out)
      : check_(check), point_(point), view_(view), checks_(checks), op_(op), out_(out) {}

  void Build() {
    out_.bytes = point_.bytes;
    out_.measured_gbs = point_.measured_gbs;
    out_.algorithm = point_.algorithm;
    out_.protocol = point_.protocol;
    const NcclCommunicator& c = check_.forced;
    const bool wide = c.nodes > 1;
    if (!(wide ? BeginWithNics() : BeginWithinNode())) {
      at_ = GraphRate();
      out_.line_gbs = at_;
      out_.top = "NCCL's ring graph, " + std::to_string(c.ring.channels) + " channels, " + Gbs(at_);
      out_.missing = wide ? "the speeds of NICs: NCCL logs with GRAPH in NCCL_DEBUG_SUBSYS, or NCCL_TOPO_DUMP_FILE"
                          : "the speeds of NVLinks: NCCL logs with GRAPH in NCCL_DEBUG_SUBSYS, or NCCL_TOPO_DUMP_FILE";
    } else {
      Lose(WaterfallStep::channels, GraphRate(), WhoTookChannels());
    }
    AddWay();
    Lose(WaterfallStep::size, point_.predicted_gbs, "");
    Lose(WaterfallStep::measured, point_.measured_gbs, "");
  }

 private:
  void Lose(WaterfallStep step, double after, std::string who) {
    WaterfallLoss loss{step, at_, after, ""};
    // Below a percent nothing was taken.
    if (loss.Lost() > 0.01 * out_.line_gbs) loss.who = std::move(who);
    out_.losses.push_back(std::move(loss));
    at_ = after;
  }

  double GraphRate() const {
    const NcclModelGraph& ring = check_.forced.ring;
    return UsedChannels(check_.forced) * static_cast<double>(check_.forced.nodes > 1 ? ring.bw_inter : ring.bw_intra);
  }

  std::string NodeName(uint32_t node) const {
    return view_.nodes[node].name.empty() ? "node " + std::to_string(node) : view_.nodes[node].name;
  }
  std::string NicName(const NicView& nic) const {
    return nic.name.empty() ? "NIC " + std::to_string(nic.index) : nic.name;
  }

  bool BeginWithNics() {
    std::vector<NodeRate> rates;
    for (uint32_t i = 0; i < view_.nodes.size(); ++i)
      if (const NodeRate rate = RateOf(view_, i); rate.nics > 0) rates.push_back(rate);
    if (rates.empty()) return false;
    const auto less = [](const NodeRate& a, const NodeRate& b) { return a.line < b.line; };
    const NodeRate best = *std::max_element(rates.begin(), rates.end(), less);
    const NodeRate worst = *std::min_element(rates.begin(), rates.end(), [](const NodeRate& a, const NodeRate& b) {
      return std::tie(a.path, a.line) < std::tie(b.path, b.line);
    });
    out_.line_gbs = at_ = best.line;
    out_.top = std::to_string(best.nics) + (best.nics == 1 ? " NIC" : " NICs") + " per node, " + Gbs(best.line);
    Lose(WaterfallStep::nics, worst.line,
         NodeName(worst.node) + " has " + std::to_string(worst.nics) + (worst.nics == 1 ? " NIC" : " NICs") + ", " +
             Gbs(worst.line));
    Lose(WaterfallStep::pcie, worst.pcie,
         worst.narrow ? NodeName(worst.node) + ", slot of " + NicName(*worst.narrow) : "");
    Lose(WaterfallStep::path, worst.path, WhoTookPath(worst));
    return true;
  }

  // Within a node a ring leaves every GPU once: its NVLinks, or its slot where it has none.
  bool BeginWithinNode() {
    double link = 0, slot = 0;
    for (const NodeView& node : view_.nodes)
      for (const GpuView& gpu : node.gpus) link = std::max(link, gpu.nvlink_gbs), slot = std::max(slot, gpu.pci_gbs);
    if (link <= 0) link = check_.forced.link_gbps;
    if (link <= 0 && slot <= 0) return false;
    const bool nvlink = link > 0;
    out_.line_gbs = at_ = nvlink ? link : slot;
    out_.top = std::string(nvlink ? "NVLink, " : "PCIe, ") + Gbs(at_) + " per GPU";
    if (!nvlink) return true;
    // SHM or a network between GPUs that NVLink connects.
    const NcclModelGraph& ring = check_.forced.ring;
    const bool leaves = ring.type_intra > NcclPath::nvb && slot > 0;
    std::string who = Setting(checks_, {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"});
    if (who.empty() && !checks_.slow_pairs.empty())
      who = NodeName(checks_.slow_pairs.front().node) + ", between GPUs that NVLink connects";
    Lose(WaterfallStep::path, leaves ? std::min(at_, slot) : at_, who);
    return true;
  }

  std::string WhoTookPath(const NodeRate& worst) const {
    std::string who =
        Setting(checks_, {"NCCL_NET_GDR_LEVEL", "NCCL_PXN_DISABLE", "NCCL_NET_GDR_READ", "NCCL_P2P_PXN_LEVEL"});
    if (who.empty() && worst.far) who = NodeName(worst.node) + ", the path to " + NicName(*worst.far);
    return who;
  }

  std::string WhoTookChannels() const {
    std::string who = Setting(checks_, {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS", "NCCL_NCHANNELS"});
    const NcclCommunicator& c = check_.forced;
    if (who.empty() && UsedChannels(c) < c.ring.channels)
      who = "the communicator, which uses " + std::to_string(c.channels) + " of " + std::to_string(c.ring.channels) +
            " channels (maxCTAs, or a cap on a rank without a log)";
    if (who.empty() && !checks_.failed_searches.empty())
      who = NodeName(checks_.failed_searches.front().node) + ", where the search found no path";
    for (const LowerNode& lower : checks_.lower_nodes)
      if (who.empty() && lower.graph == NcclAlgorithm::ring)
        who = NodeName(lower.node) + (lower.lowered.empty() ? "" : ": " + lower.lowered.front());
    if (who.empty() && !checks_.staged.empty())
      who = NodeName(checks_.staged.front().node) + ", without GPUDirect RDMA";
    return who.empty() ? "the search: speeds per channel have fixed steps" : who;
  }

  // The ring with this protocol, then the algorithm with it.
  void AddWay() {
    const int f = NcclTunedIndex(op_);
    const NcclCommunicator& c = check_.forced;
    const double used = c.ring.channels > 0 ? UsedChannels(c) / c.ring.channels : 1;
    const double to_bus = BusBandwidth(op_, c.ranks, 1000, 1) * used;  // of 1 GB/s
    const auto rate = [&](NcclAlgorithm a, NcclProtocol p) {
      const NcclCell& cell = check_.costs.cells[f][static_cast<int>(a)][static_cast<int>(p)];
      return static_cast<double>(cell.bandwidth > 0 ? cell.bandwidth : cell.bandwidth_free) * to_bus;
    };
    const double simple = rate(NcclAlgorithm::ring, NcclProtocol::simple),
                 ring = rate(NcclAlgorithm::ring, point_.protocol);
    // What the model adds to or takes from the graph for a plain ring stays with the channels.
    if (simple > 0 && !out_.losses.empty() && out_.losses.back().step == WaterfallStep::channels)
      out_.losses.back().after_gbs = at_ = simple;
    std::string who = Setting(checks_, {"NCCL_PROTO"});
    if (who.empty() && !check_.forced.settings.proto.empty()) who = "NCCL_PROTO=" + check_.forced.settings.proto;
    if (who.empty()) who = "NCCL's choice of " + std::string(Name(point_.protocol));
    if (ring > 0) Lose(WaterfallStep::protocol, ring, who);
    who = Setting(checks_, {"NCCL_ALGO"});
    if (who.empty() && !check_.forced.settings.algo.empty()) who = "NCCL_ALGO=" + check_.forced.settings.algo;
    if (who.empty()) who = "NCCL's choice of " + std::string(Name(point_.algorithm));
    const double chosen = rate(point_.algorithm, point_.protocol);
    if (chosen > 0) Lose(WaterfallStep::algorithm, chosen, who);
  }

  const ModelCheck& check_;
  const ModelPoint& point_;
  const TopologyView& view_;
  const TopologyChecks& checks_;
  OpKind op_;
  Waterfall& out_;
  double at_ = 0;
};

}  // namespace

std::string_view Name(WaterfallStep step) {
  switch (step) {
    case WaterfallStep::nics: return "weakest node";
    case WaterfallStep::pcie: return "PCIe";
    case WaterfallStep::path: return "path (GDR, PXN)";
    case WaterfallStep::channels: return "channels";
    case WaterfallStep::protocol: return "protocol";
    case WaterfallStep::algorithm: return "algorithm";
    case WaterfallStep::size: return "latency";
    case WaterfallStep::measured: return "measured";
  }
  return "";
}

void BuildWaterfall(const ModelCheck& check, const ModelPoint& point, const TopologyView& view,
                    const TopologyChecks& checks, OpKind op, Waterfall& out) {
  Builder(check, point, view, checks, op, out).Build();
}

}  // namespace tacet
