// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/nccl_graph.h"
#include "predict/nccl_release.h"

namespace tacet {

enum class NcclHardware : int { nvlink, pci, net };
inline constexpr int kNcclHardware = 3;
// Rows of the tables by compute capability; columns are one node, two nodes, more.
enum class NcclGeneration : int { volta, ampere, hopper, blackwell };
inline constexpr int kNcclGenerations = 4;

// The figures in NCCL's cost model: microseconds and GB/s.
struct NcclConstants {
  float base_latency[kNcclAlgorithms][kNcclProtocols] = {};
  float hw_latency[kNcclHardware][kNcclAlgorithms][kNcclProtocols] = {};
  double ll_max[kNcclGenerations][3] = {};
  double ring_ll128_per_channel[kNcclGenerations][3] = {};
  double tree_ll128_per_channel[kNcclGenerations][3] = {};
  double tree_per_channel[kNcclGenerations][3] = {};
  double nvls_tree_per_channel[kNcclGenerations][3] = {};
  float nvls_efficiency[kNcclGenerations] = {0, 0, .85f, .74f};
};

NcclConstants NcclConstantsOf(const NcclRelease& release);

// Which row a communicator gets whose GPUs have these compute capabilities (80, 90, ...).
NcclGeneration NcclGenerationOf(const NcclRelease& release, int min_capability, int max_capability);

}  // namespace tacet
