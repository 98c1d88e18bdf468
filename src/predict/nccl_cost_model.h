// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/nccl_graph.h"
#include "predict/nccl_release.h"

namespace tacet {

// One graph as all ranks agreed on it; all zero where NCCL did not search it.
struct NcclModelGraph {
  int channels = 0;
  float bw_intra = 0, bw_inter = 0;  // GB/s per channel
  NcclPath type_intra = NcclPath::loc, type_inter = NcclPath::loc;
  int pattern = 0;
  bool same_channels = false;
  float latency_inter = 0;  // us, of the network plugin
};

enum class CpuVendor : uint8_t { unknown, intel, amd, zhaoxin, mixed };
enum class CpuArch : uint8_t { unknown, x86, power, arm, mixed };

// Variables that change the model. -2: not set.
struct NcclSettings {
  std::string algo, proto;  // NCCL_ALGO, NCCL_PROTO
  int pat_enable = 2;       // NCCL_PAT_ENABLE
  int net_overhead_ns = -2;
  int nthreads = -2, ll128_nthreads = -2;
  bool ll128_c2c = true;          // NCCL_LL128_C2C
  std::string thread_thresholds;  // NCCL_THREAD_THRESHOLDS
};

// All that NCCL's cost model knows of a communicator.
struct NcclCommunicator {
  NcclRelease release;
  int ranks = 0, nodes = 1;
  int max_local_ranks = 0;                     // 0: ranks / nodes
  int min_capability = 0, max_capability = 0;  // 90 for sm_90
  CpuArch cpu_arch = CpuArch::x86;
  CpuVendor cpu = CpuVendor::intel;
  NcclModelGraph ring, tree, collnet_direct, collnet_chain, nvls;
  int channels = 0;  // of the communicator, after doubling
  int nvls_channels = 0;
  bool multicast = false;  // NVLS can be used
  bool collnet = false, nvswitch = false;
  bool collnet_gathers = false;  // the CollNet plugin has AllGather and ReduceScatter
  int collnet_heads = 0;
  bool mnnvl = false;
  double link_gbps = 0;  // of one GPU's NVLinks together; not in the model, but a new search needs it. 0: unknown
  NcclSettings settings;

  const NcclModelGraph& GraphOf(NcclAlgorithm algorithm) const;
  int LocalRanks() const { return max_local_ranks > 0 ? max_local_ranks : nodes > 0 ? ranks / nodes : ranks; }
};

// Why a cell of the table has no bandwidth.
enum class NcclObstacle : uint8_t {
  none,
  not_made,           // the operation has no such algorithm, or the algorithm no such protocol
  older_release,      // the algorithm came later
  no_paths,           // NCCL searched no graph for it, or found none
  algorithm_setting,  // NCCL_ALGO
  protocol_setting,   // NCCL_PROTO
  one_node,           // NVLSTree
  no_collnet,         // CollNet, and NVLS over several nodes
  no_nvswitch,        // CollNetDirect
  too_few_heads,      // CollNet gathers with more ranks on a node than heads
  ll128_path_inter,
  ll128_path_intra,
  ll128_mixed_gpus,
  ll128_gpu,
  ll128_cuda,
  printed_zero,  // the printed table has no bandwidth for it
  pat_off,       // several ranks per node, or switched off
  // Only of one operation, not of the table:
  no_nvls,
  data_type,
  average,
  too_many_local_ranks
};
std::string Explain(NcclObstacle obstacle, const NcclCommunicator& communicator);

struct NcclCell {
  float latency_us = 0;
  float bandwidth = 0;       // algorithm bandwidth, GB/s; 0 where it may not be used
  float bandwidth_free = 0;  // the same before settings and switches took it away
  NcclObstacle obstacle = NcclObstacle::not_made;
};

// NCCL's own table: by operation, algorithm and protocol.
struct NcclCostTable {
  NcclCell cells[kNcclTuned][kNcclAlgorithms][kNcclProtocols];
  // 2.19 to 2.23 keep Ring as a way out where NCCL_ALGO leaves nothing.
  float ring_backup[kNcclTuned][kNcclProtocols] = {};
  int max_threads[kNcclAlgorithms][kNcclProtocols] = {};
  int64_t thread_thresholds[kNcclAlgorithms][kNcclProtocols] = {};
  std::string complaint;  // of NCCL_ALGO or NCCL_PROTO
};

NcclCostTable ComputeNcclCosts(const NcclCommunicator& communicator);

// How many algorithms a release has in its table, from Tree on.
int NcclAlgorithmCount(const NcclRelease& release);

}  // namespace tacet
