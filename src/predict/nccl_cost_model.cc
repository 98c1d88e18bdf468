// SPDX-License-Identifier: Apache-2.0
// NCCL's estimate of latency and bandwidth. The arithmetic is in float and double exactly where NCCL's is: printed
// digits and close choices depend on it.
#include "predict/nccl_cost_model.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "predict/nccl_constants.h"
#include "predict/nccl_indices.h"
#include "predict/nccl_switches.h"

namespace tacet {
namespace {

constexpr OpKind kGathers[] = {OpKind::all_gather, OpKind::reduce_scatter};

int Log2Down(int value) {
  int log = 0;
  while (value >>= 1) ++log;
  return log;
}

// One pass over all cells.
class CostModel {
 public:
  explicit CostModel(const NcclCommunicator& communicator)
      : c_(communicator),
        release_(communicator.release),
        constants_(NcclConstantsOf(communicator.release)),
        nodes_(communicator.mnnvl && communicator.release.minor == 20 ? 1 : communicator.nodes),
        ppn_(static_cast<float>(communicator.ranks) / static_cast<float>(nodes_)),
        generation_(static_cast<int>(
            NcclGenerationOf(communicator.release, communicator.min_capability, communicator.max_capability))),
        column_(nodes_ <= 2 ? nodes_ - 1 : 2) {
    const bool amd = c_.cpu == CpuVendor::amd || (c_.cpu == CpuVendor::mixed && release_.AtLeast(24));
    ll_max_ = constants_.ll_max[nodes_ == 1 ? generation_ : amd ? 1 : 0][column_];
    if (c_.cpu_arch == CpuArch::power)
      constants_.hw_latency[kPci][kTree][kSimple] = constants_.hw_latency[kPci][kRing][kSimple];
  }

  void Fill(NcclCostTable& table) const {
    for (int f = 0; f < kNcclTuned; ++f)
      for (int a = 0; a < NcclAlgorithmCount(release_); ++a)
        for (int p = 0; p < kNcclProtocols; ++p) {
          const auto algorithm = static_cast<NcclAlgorithm>(a);
          const auto protocol = static_cast<NcclProtocol>(p);
          NcclCell& cell = table.cells[f][a][p];
          if (!Exists(kNcclTunedOps[f], algorithm, protocol, &cell.obstacle)) continue;
          cell.obstacle = NcclObstacle::none;
          cell.bandwidth = cell.bandwidth_free = Bandwidth(kNcclTunedOps[f], algorithm, protocol, &cell.obstacle);
          cell.latency_us = Latency(kNcclTunedOps[f], algorithm, protocol);
          if (cell.bandwidth == 0 && cell.obstacle == NcclObstacle::none)
            cell.obstacle = Graph(algorithm).channels == 0 ? NcclObstacle::no_paths : NcclObstacle::not_made;
        }
  }

 private:
  // In 2.17 NVLS had no graph of its own.
  const NcclModelGraph& Graph(NcclAlgorithm algorithm) const {
    if (algorithm == NcclAlgorithm::nvls && release_.Before(18)) return c_.ring;
    if ((algorithm == NcclAlgorithm::collnet_chain || algorithm == NcclAlgorithm::collnet_direct) &&
        release_.Before(18))  // one graph for both
      return c_.collnet_direct.channels > 0 ? c_.collnet_direct : c_.collnet_chain;
    return c_.GraphOf(algorithm);
  }
  bool Gathers(OpKind op) const { return op == kGathers[0] || op == kGathers[1]; }
  static bool IsNvls(NcclAlgorithm a) { return a == NcclAlgorithm::nvls || a == NcclAlgorithm::nvls_tree; }
  static bool IsCollNet(NcclAlgorithm a) {
    return a == NcclAlgorithm::collnet_direct || a == NcclAlgorithm::collnet_chain;
  }

  bool Exists(OpKind op, NcclAlgorithm a, NcclProtocol p, NcclObstacle* why) const {
    *why = NcclObstacle::not_made;
    if (a != NcclAlgorithm::ring && (op == OpKind::broadcast || op == OpKind::reduce)) return false;
    if (op == OpKind::all_reduce && a == NcclAlgorithm::pat) return false;
    if (Gathers(op) && a != NcclAlgorithm::ring) {
      const bool nvls = a == NcclAlgorithm::nvls && (release_.minor == 17 || release_.AtLeast(19));
      const bool direct = a == NcclAlgorithm::collnet_direct && release_.AtLeast(20);
      if (!nvls && !direct && a != NcclAlgorithm::pat) return false;
    }
    if (IsNvls(a) && p != NcclProtocol::simple) return false;
    if (a == NcclAlgorithm::pat) {
      if (p != NcclProtocol::simple) return false;
      *why = NcclObstacle::pat_off;
      if (!PatIsOn()) return false;
    }
    if (IsNvls(a) && release_.AtLeast(28, 3) && Graph(a).channels < 2) {
      *why = NcclObstacle::no_paths;
      return false;
    }
    return true;
  }

  bool PatIsOn() const {
    if (release_.AtLeast(26) && c_.min_capability < 60) return false;
    if (c_.settings.pat_enable != 2) return c_.settings.pat_enable != 0;
    return c_.nodes == c_.ranks;
  }

  // GB/s of one channel.
  float ChannelBandwidth(OpKind op, NcclAlgorithm a, const NcclModelGraph& graph) const {
    float bw = nodes_ <= 2 || IsCollNet(a) ? graph.bw_intra : graph.bw_inter;
    if (!IsNvls(a) || release_.Before(19)) return bw;
    if (release_.Before(28, 3)) {
      if (a == NcclAlgorithm::nvls_tree)
        return std::min(graph.bw_intra, nodes_ <= 2 ? graph.bw_inter : graph.bw_inter / 2);
      if (op == OpKind::all_reduce || release_.Before(27)) return std::min(graph.bw_intra, graph.bw_inter);
      return std::min(graph.bw_intra * (ppn_ - 1.0f) / ppn_, graph.bw_inter * 0.9f);
    }
    float intra = graph.bw_intra * constants_.nvls_efficiency[generation_] * static_cast<float>(graph.channels - 1) /
                  static_cast<float>(graph.channels);
    if (op == OpKind::all_reduce)
      intra *= 2.0f;
    else
      intra *= (ppn_ - 1) / ppn_;
    const float inter = graph.bw_inter * (nodes_ <= 2 && a == NcclAlgorithm::nvls_tree ? 2 : 1);
    const float cap = a == NcclAlgorithm::nvls_tree
                          ? static_cast<float>(constants_.nvls_tree_per_channel[generation_][column_])
                          : std::numeric_limits<float>::max();
    return std::min({intra, inter, cap});
  }

  float Bandwidth(OpKind op, NcclAlgorithm a, NcclProtocol p, NcclObstacle* obstacle) const {
    const NcclModelGraph& graph = Graph(a);
    const bool all_reduce = op == OpKind::all_reduce;
    const float channel_bw = ChannelBandwidth(op, a, graph);
    float bw = static_cast<float>(graph.channels) * channel_bw;
    if (release_.Before(18) && generation_ == static_cast<int>(NcclGeneration::ampere)) bw = std::min(bw, 235.0f);
    if (release_.minor == 17 && generation_ == static_cast<int>(NcclGeneration::hopper)) bw = std::min(bw, 370.0f);
    if (a == NcclAlgorithm::ring) RefineRing(op, p, graph, bw);
    if (a == NcclAlgorithm::tree) RefineTree(all_reduce, p, graph, bw);
    if (a == NcclAlgorithm::pat) bw = static_cast<float>(bw * (release_.AtLeast(24) ? .75 : .85));
    if (IsCollNet(a)) RefineCollNet(op, a, p, graph, channel_bw, bw);
    if (GathersNeedCollNet(op, a, p)) {
      *obstacle = !c_.collnet || !c_.collnet_gathers ? NcclObstacle::no_collnet : NcclObstacle::too_few_heads;
      return 0;
    }
    return AlgorithmBandwidth(op, a, bw);
  }

  void RefineRing(OpKind op, NcclProtocol p, const NcclModelGraph& graph, float& bw) const {
    if (p == NcclProtocol::ll) {
      const bool quarter = nodes_ > 1 || op == OpKind::all_reduce || op == OpKind::reduce;
      const double share = release_.AtLeast(21) ? .5 : quarter ? 1.0 / 4.0 : 1.0 / 3.0;
      bw = static_cast<float>(std::min(ll_max_, bw * share));
    }
    if (p == NcclProtocol::ll128) {
      const double share = ppn_ < 2 && release_.Before(23) ? 0.7 : 0.92;
      bw = static_cast<float>(
          std::min(bw * share, graph.channels * constants_.ring_ll128_per_channel[generation_][column_]));
    }
  }

  void RefineTree(bool all_reduce, NcclProtocol p, const NcclModelGraph& graph, float& bw) const {
    if (all_reduce)
      bw = static_cast<float>(std::min(bw * .92, graph.channels * constants_.tree_per_channel[generation_][column_]));
    if (p == NcclProtocol::ll) bw = static_cast<float>(std::min(bw * 1.0 / 3.8, ll_max_));
    if (p == NcclProtocol::ll128)
      bw = static_cast<float>(std::min(bw * (nodes_ == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                                       graph.channels * constants_.tree_ll128_per_channel[generation_][column_]));
    if (release_.AtLeast(18, 3) && graph.pattern == kPatternTree) bw = static_cast<float>(bw * .85);
  }

  void RefineCollNet(OpKind op, NcclAlgorithm a, NcclProtocol p, const NcclModelGraph& graph, float channel_bw,
                     float& bw) const {
    if (p != NcclProtocol::simple) {
      bw = 0;
      return;
    }
    if (release_.Before(14)) return;
    if (a == NcclAlgorithm::collnet_chain) {
      if (release_.Before(18)) bw = static_cast<float>(bw * .75);
      return;
    }
    if (Gathers(op)) {
      if (release_.AtLeast(27)) {
        bw = ppn_ * std::min(graph.bw_intra, graph.bw_inter * 0.9f);
        return;
      }
      bw = ppn_ * channel_bw;
      const float weight = (ppn_ - 1) / (8 - 1);
      bw = static_cast<float>(bw * (weight * 0.85 + (1 - weight) * 0.95));
      return;
    }
    if (graph.channels == 0) return;
    float ratio = static_cast<float>(ppn_ / (1.0 * graph.channels));
    ratio -= (ratio - 1) / 2;
    bw /= ratio;
    if (release_.AtLeast(18) && c_.min_capability >= 90) bw = static_cast<float>(bw * .85);
  }

  bool GathersNeedCollNet(OpKind op, NcclAlgorithm a, NcclProtocol p) const {
    if (!Gathers(op) || p != NcclProtocol::simple || c_.nodes <= 1) return false;
    const bool direct = a == NcclAlgorithm::collnet_direct;
    if (!direct && !(a == NcclAlgorithm::nvls && release_.AtLeast(27))) return false;
    if (!c_.collnet || !c_.collnet_gathers) return true;
    return release_.AtLeast(27) ? c_.LocalRanks() > c_.collnet_heads : ppn_ > static_cast<float>(c_.collnet_heads);
  }

  int Steps(OpKind op) const {
    return op == OpKind::all_reduce ? 2 * (c_.ranks - 1) : Gathers(op) ? c_.ranks - 1 : c_.ranks;
  }

  float AlgorithmBandwidth(OpKind op, NcclAlgorithm a, float bw) const {
    const bool ring = a == NcclAlgorithm::ring;
    if (Gathers(op) && !ring && release_.AtLeast(23)) return bw;
    if (Gathers(op) && a == NcclAlgorithm::collnet_direct) return bw;
    double ratio = .5;
    if (ring || (IsNvls(a) && release_.AtLeast(28, 3))) {
      ratio = (1.0 * c_.ranks) / Steps(op);
    } else if (a == NcclAlgorithm::nvls) {
      ratio = release_.Before(18, 3) ? .75 : 5.0 / 6.0;
    } else if (a == NcclAlgorithm::nvls_tree) {
      ratio = release_.Before(19) ? .70 * nodes_ / (2 * std::max(1, nodes_ - 1)) : 5.0 / 6.0;
    }
    return bw * static_cast<float>(ratio);
  }

  float NetOverhead(NcclProtocol p) const {
    if (nodes_ <= 1 || release_.Before(18)) return 0;
    float overhead = 1.0f;
    if (c_.settings.net_overhead_ns != -2)
      overhead = static_cast<float>(c_.settings.net_overhead_ns * .001);
    else if (c_.cpu_arch == CpuArch::x86 && c_.cpu == CpuVendor::amd)
      overhead = 2.0f;
    return p == NcclProtocol::simple ? overhead * 3 : overhead;
  }

  float Latency(OpKind op, NcclAlgorithm algorithm, NcclProtocol protocol) const {
    const NcclModelGraph& graph = Graph(algorithm);
    const int a = static_cast<int>(algorithm), p = static_cast<int>(protocol);
    const int intra_hw = graph.type_intra == NcclPath::nvl ? kNvlink : kPci;
    const float base = constants_.base_latency[a][p];
    float intra = constants_.hw_latency[intra_hw][a][p];
    const bool exposed = ppn_ == 1 && release_.AtLeast(23);
    float inter = constants_.hw_latency[kNet][exposed ? kTree : a][p];
    if (release_.Before(18)) {
      if (graph.latency_inter != 0) inter = graph.latency_inter;
      if (nodes_ > 1 && protocol == NcclProtocol::ll) intra = static_cast<float>(intra * 1.8);
    } else {
      inter += graph.latency_inter;
      if (protocol == NcclProtocol::simple) inter += graph.latency_inter;
    }
    const int chain = c_.ranks / nodes_ - 1;
    switch (algorithm) {
      case NcclAlgorithm::ring: return RingLatency(op, protocol, graph, base, intra, inter, intra_hw);
      case NcclAlgorithm::tree:
        return op == OpKind::all_reduce ? base + 2 * (chain * intra + Log2Down(nodes_) * inter) : base;
      case NcclAlgorithm::collnet_direct:
        return static_cast<float>(
            base + (2 * (std::min(1, chain) * intra + chain * (release_.Before(19) ? 0.5 : 0.4)) + inter));
      case NcclAlgorithm::collnet_chain: return base + 2 * chain * intra + (release_.Before(18) ? 0 : inter);
      case NcclAlgorithm::nvls: return NvlsLatency(base, intra, inter);
      case NcclAlgorithm::nvls_tree:
        if (release_.Before(19)) return base + 2 * (nodes_ - 1) * constants_.hw_latency[kNet][a][p];
        return base + (intra + 2 * Log2Down(nodes_) * inter);
      case NcclAlgorithm::pat:
        return static_cast<float>(constants_.base_latency[a][p] + (Log2Down(nodes_) * (inter / 3.5) + c_.ranks * 2.8));
      case NcclAlgorithm::unknown: break;
    }
    return base;
  }

  float NvlsLatency(float base, float intra, float inter) const {
    if (release_.Before(18)) return base;
    if (release_.Before(19)) return nodes_ > 1 ? base + constants_.hw_latency[kNet][kNvls][kSimple] : base;
    return nodes_ > 1 ? intra + inter : intra;
  }

  float RingLatency(OpKind op, NcclProtocol protocol, const NcclModelGraph& graph, float base, float intra, float inter,
                    int intra_hw) const {
    const int p = static_cast<int>(protocol), hw = nodes_ == 1 ? intra_hw : kNet;
    const int steps = Steps(op);
    if (op == OpKind::reduce || op == OpKind::broadcast) {
      const int row = !graph.same_channels && protocol == NcclProtocol::simple ? kTree : kRing;
      const float lat = constants_.hw_latency[hw][row][p];
      return graph.same_channels ? base + lat : base + static_cast<float>(steps) * lat;
    }
    intra = std::max(intra, NetOverhead(protocol));
    int inter_steps = nodes_ == 1 ? 0 : op == OpKind::all_reduce ? 2 * (nodes_ - 1) : nodes_ - 1;
    if (release_.Before(23) && op == OpKind::all_reduce && nodes_ > 1) inter_steps = 2 * nodes_;
    return base + (static_cast<float>(steps - inter_steps) * intra + static_cast<float>(inter_steps) * inter);
  }

  const NcclCommunicator& c_;
  const NcclRelease& release_;
  NcclConstants constants_;
  int nodes_;
  float ppn_;
  int generation_, column_;
  double ll_max_ = 0;
};

}  // namespace

const NcclModelGraph& NcclCommunicator::GraphOf(NcclAlgorithm algorithm) const {
  switch (algorithm) {
    case NcclAlgorithm::ring: return ring;
    case NcclAlgorithm::collnet_direct: return collnet_direct;
    case NcclAlgorithm::collnet_chain: return collnet_chain;
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree: return nvls;
    case NcclAlgorithm::tree:
    case NcclAlgorithm::pat:
    case NcclAlgorithm::unknown: break;
  }
  return tree;
}

int NcclAlgorithmCount(const NcclRelease& release) {
  if (!release.known() || release.AtLeast(23)) return 7;
  if (release.AtLeast(18)) return 6;
  if (release.AtLeast(17)) return 5;
  return release.AtLeast(14) ? 4 : 3;
}

NcclCostTable ComputeNcclCosts(const NcclCommunicator& communicator) {
  NcclCostTable table;
  FillThreads(communicator, table);
  for (auto& rows : table.cells)
    for (int a = NcclAlgorithmCount(communicator.release); a < kNcclAlgorithms; ++a)
      for (NcclCell& cell : rows[a]) cell.obstacle = NcclObstacle::older_release;
  if (communicator.ranks <= 1 || communicator.nodes < 1) return table;
  CostModel(communicator).Fill(table);
  ApplySwitches(communicator, table);
  return table;
}

}  // namespace tacet
