// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/nccl_cost_model.h"

namespace tacet {

// A GPU as data sheets and NCCL's link tables describe it.
struct GpuModel {
  std::string_view name;   // "H100"
  int capability = 0;      // 90
  int nvlinks = 0;         // links per GPU
  bool nvswitch = false;   // in the usual machine
  double pcie_gbps = 0;    // of its slot, as NCCL counts it: Gen4 x16 24, Gen5 x16 48
  double bf16_tflops = 0;  // dense, tensor cores
  double memory_gb = 0;    // 1e9 bytes
};
const std::vector<GpuModel>& KnownGpus();
const GpuModel* FindGpu(std::string_view name);                 // without case, "h100-sxm" too; nullptr where unknown
double NvlinkGbps(const NcclRelease& release, int capability);  // per link and direction

// "8xH100", "16 nodes", "8x400G": what --gpus, --nodes and --nics say.
struct ClusterHardware {
  GpuModel gpu;
  int gpus_per_node = 8, nodes = 1;
  int nics_per_node = 0;
  double nic_gbit = 0;
  bool gdr = true;
  CpuVendor cpu = CpuVendor::intel;
};
Result<std::pair<int, const GpuModel*>> ParseGpus(std::string_view text);  // "8xH100"
Result<std::pair<int, double>> ParseNics(std::string_view text);           // "8x400G": number and Gbit/s

// The communicator of all GPUs, with graphs as NCCL's search finds them on nodes whose GPUs and NICs are alike. What
// had to be supposed is added to `assumptions`.
NcclCommunicator SearchGraphs(const NcclRelease& release, const ClusterHardware& hardware,
                              std::vector<std::string>* assumptions);

// Speeds that the search tries, from the fastest: per channel, within or between nodes.
std::vector<float> SpeedLadder(const NcclRelease& release, int capability, bool between_nodes);

}  // namespace tacet
