// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_switches.h"

#include <algorithm>
#include <cstddef>

#include "base/text_scan.h"
#include "predict/nccl_filter.h"
#include "predict/nccl_indices.h"

namespace tacet {
namespace {

constexpr int kWarp = 32;

int Threads(int setting, int low, int high, int otherwise) {
  if (setting <= 0) return otherwise;
  if (setting % kWarp != 0 || setting > high) return high;
  return std::max(setting, low);
}

bool Ll128CapabilityIsTested(const NcclRelease& release, int capability) {
  if (release.AtLeast(27)) return capability >= 70;
  if (capability == 70 || capability == 80) return true;
  if (capability == 90) return release.AtLeast(15);
  return release.AtLeast(25) && (capability == 100 || capability == 120);
}

// LL128 relies on 128-byte stores staying whole on the way; where it is not named, NCCL trusts known paths only.
NcclObstacle Ll128Obstacle(const NcclCommunicator& c, OpKind op, NcclAlgorithm algorithm) {
  const NcclRelease& release = c.release;
  const bool ring_as_nvls = algorithm == NcclAlgorithm::nvls && release.Before(18);
  const NcclModelGraph& graph = ring_as_nvls ? c.ring : c.GraphOf(algorithm);
  const bool hopper = c.min_capability >= 90;
  NcclPath limit = NcclPath::pxb;
  if (hopper && release.AtLeast(17)) limit = NcclPath::pxn;
  if (release.AtLeast(27) && release.Before(27, 5) && hopper && c.settings.ll128_c2c) limit = NcclPath::p2c;
  if (release.AtLeast(27, 5) && hopper && !c.settings.ll128_c2c) limit = NcclPath::pxb;
  if (graph.type_inter > limit) return NcclObstacle::ll128_path_inter;
  if (graph.type_intra > (release.AtLeast(18, 3) ? NcclPath::nvb : NcclPath::nvl))
    return NcclObstacle::ll128_path_intra;
  if (c.min_capability != c.max_capability && !(release.AtLeast(30) && hopper)) return NcclObstacle::ll128_mixed_gpus;
  if (!Ll128CapabilityIsTested(release, c.min_capability)) return NcclObstacle::ll128_gpu;
  const bool broken = release.cuda == 1108 && c.min_capability == 90 && op == OpKind::all_reduce &&
                      algorithm == NcclAlgorithm::ring && c.ranks == 2 && release.AtLeast(15, 5);
  return broken ? NcclObstacle::ll128_cuda : NcclObstacle::none;
}

// What the hardware has not got.
NcclObstacle AlgorithmObstacle(const NcclCommunicator& c, int a) {
  const bool mnnvl = c.mnnvl && c.release.minor == 20;
  if (a == kNvlsTree && (c.nodes == 1 || mnnvl)) return NcclObstacle::one_node;
  if (a == kNvls && c.release.minor == 17 && !c.multicast) return NcclObstacle::no_nvls;
  if (!c.collnet && (a == kDirect || a == kChain)) return NcclObstacle::no_collnet;
  if (!c.collnet && a == kNvls && (c.nodes > 1 || mnnvl) && c.release.AtLeast(18)) return NcclObstacle::no_collnet;
  if (a == kDirect && !c.nvswitch && c.release.AtLeast(14)) return NcclObstacle::no_nvswitch;
  return NcclObstacle::none;
}

// Up to 2.23, NCCL_ALGO=CollNet on a job without CollNet was ignored.
void IgnoreImpossibleAlgorithms(const NcclCommunicator& c, NcclFilter& filter) {
  if (c.release.AtLeast(24) || c.collnet) return;
  for (auto& row : filter.algorithms) {
    bool left = row[kRing] != 0 || row[kTree] != 0;
    if (c.release.AtLeast(18)) {
      left |= row[kNvls] != 0 && AlgorithmObstacle(c, kNvls) == NcclObstacle::none;
      left |= row[kNvlsTree] != 0 && AlgorithmObstacle(c, kNvlsTree) == NcclObstacle::none;
    }
    if (!left) row[kRing] = row[kTree] = 1;
  }
}

// Releases that never took Ring away, or gave it back where nothing was left.
void GiveRingBack(const NcclCommunicator& c, NcclCostTable& table) {
  if (c.release.Before(19) || c.release.AtLeast(24)) return;
  for (int f = 0; f < kNcclTuned; ++f) {
    bool available = false;
    for (const auto& row : table.cells[f])
      for (const NcclCell& cell : row) available |= cell.bandwidth != 0;
    if (available) continue;
    for (int p = 0; p < kNcclProtocols; ++p) {
      NcclCell& cell = table.cells[f][kRing][p];
      cell.bandwidth = table.ring_backup[f][p];
      if (cell.bandwidth != 0) cell.obstacle = NcclObstacle::none;
    }
  }
}

void Forbid(NcclCell& cell, NcclObstacle obstacle) {
  if (cell.obstacle == NcclObstacle::none) cell.obstacle = obstacle;
  cell.bandwidth = 0;
}

void ReadThresholds(std::string_view text, int64_t (&thresholds)[kNcclAlgorithms][kNcclProtocols]) {
  for (int i = 0; i < 2 * kNcclProtocols; ++i) {
    int64_t value = -1;
    SkipBlanks(text);
    if (!TakeNumber(text, &value)) return;
    if (value >= 0) thresholds[i / kNcclProtocols][i % kNcclProtocols] = value;
  }
}

}  // namespace

void FillThreads(const NcclCommunicator& c, NcclCostTable& table) {
  constexpr int kMost = 640, kSimpleMost = 512, kLlMost = 512, kLl128Most = 640;
  constexpr float kPciBandwidth = 12;
  const NcclSettings& set = c.settings;
  const bool slow = c.ring.bw_intra * static_cast<float>(c.ring.channels) <= kPciBandwidth;
  auto& threads = table.max_threads;
  threads[kRing][kSimple] = Threads(set.nthreads, 2 * kWarp, kSimpleMost, slow ? 256 : kSimpleMost);
  threads[kTree][kSimple] = Threads(set.nthreads, 2 * kWarp, kSimpleMost, kSimpleMost);
  const int wide = c.release.AtLeast(18) ? kMost : kSimpleMost;
  const int algorithms = std::min(NcclAlgorithmCount(c.release), kNvlsTree + 1);
  for (int a = kDirect; a < algorithms; ++a) threads[a][kSimple] = wide;
  const int last = c.release.Before(14) ? kDirect : kRing;
  for (int a = kTree; a <= last; ++a) {
    threads[a][kLl] = Threads(set.nthreads, 2 * kWarp, kLlMost, kLlMost);
    threads[a][kLl128] = Threads(set.ll128_nthreads, kLl128Most / 4, kLl128Most, kLl128Most);
  }
  for (auto& row : table.thread_thresholds) {
    row[kLl] = 8;
    row[kLl128] = 8;
    row[kSimple] = 64;
  }
  table.thread_thresholds[kRing][kLl] *= std::max(1, c.ranks);
  table.thread_thresholds[kDirect][kSimple] = table.thread_thresholds[kChain][kSimple] = 512;
  ReadThresholds(set.thread_thresholds, table.thread_thresholds);
}

void ApplySwitches(const NcclCommunicator& c, NcclCostTable& table) {
  NcclFilter filter = ReadNcclFilter(c.release, c.settings.algo, c.settings.proto);
  table.complaint = filter.complaint;
  IgnoreImpossibleAlgorithms(c, filter);
  for (int f = 0; f < kNcclTuned; ++f) {
    for (int p = 0; p < kNcclProtocols; ++p) table.ring_backup[f][p] = table.cells[f][kRing][p].bandwidth;
    for (int a = 0; a < NcclAlgorithmCount(c.release); ++a) {
      const bool all_reduce = kNcclTunedOps[f] == OpKind::all_reduce;
      // Rings for other operations than AllReduce could not be switched off before 2.19.
      const bool spared = c.release.Before(17) ? !all_reduce : c.release.Before(19) && a == kRing && !all_reduce;
      const NcclObstacle missing = AlgorithmObstacle(c, a);
      for (int p = 0; p < kNcclProtocols; ++p) {
        NcclCell& cell = table.cells[f][a][p];
        const int named = filter.protocols[f][p];
        NcclObstacle protocol = named == 0 ? NcclObstacle::protocol_setting : NcclObstacle::none;
        if (named == 2) protocol = Ll128Obstacle(c, kNcclTunedOps[f], static_cast<NcclAlgorithm>(a));
        if (missing != NcclObstacle::none && !spared) Forbid(cell, missing);
        if (filter.algorithms[f][a] == 0 && !spared) Forbid(cell, NcclObstacle::algorithm_setting);
        if (protocol == NcclObstacle::none) continue;
        Forbid(cell, protocol);
        if (a == kRing && c.release.AtLeast(22)) table.ring_backup[f][p] = 0;
      }
    }
  }
  GiveRingBack(c, table);
}

std::string Explain(NcclObstacle obstacle, const NcclCommunicator& c) {
  switch (obstacle) {
    case NcclObstacle::none: return "";
    case NcclObstacle::not_made: return "not available for this operation or protocol";
    case NcclObstacle::older_release: return "not in " + c.release.Text();
    case NcclObstacle::no_paths: return "no graph: there is no path for it";
    case NcclObstacle::algorithm_setting: return "switched off by NCCL_ALGO=" + c.settings.algo;
    case NcclObstacle::protocol_setting: return "switched off by NCCL_PROTO=" + c.settings.proto;
    case NcclObstacle::one_node: return "for several nodes only";
    case NcclObstacle::no_collnet: return "no CollNet (SHARP) plugin";
    case NcclObstacle::no_nvswitch: return "no NVSwitch";
    case NcclObstacle::too_few_heads: return "a node has more ranks than CollNet heads";
    case NcclObstacle::ll128_path_inter: return "LL128 is off: the path to the network is too long";
    case NcclObstacle::ll128_path_intra: return "LL128 is off: the GPUs are not all connected by NVLink";
    case NcclObstacle::ll128_mixed_gpus: return "LL128 is off: GPUs of different compute capability";
    case NcclObstacle::ll128_gpu: return "LL128 is off: not tested on this GPU in " + c.release.Text();
    case NcclObstacle::ll128_cuda: return "LL128 is off: two Hopper GPUs with CUDA 11.8";
    case NcclObstacle::printed_zero: return "no bandwidth in the table that NCCL printed";
    case NcclObstacle::pat_off: return "PAT needs one rank per node, or NCCL_PAT_ENABLE=1";
    case NcclObstacle::no_nvls: return "no NVLink multicast";
    case NcclObstacle::data_type: return "not for this data type and reduction";
    case NcclObstacle::average: return "PAT does not average";
    case NcclObstacle::too_many_local_ranks: return "too many ranks on one node";
  }
  return "";
}

}  // namespace tacet
