// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"
#include "predict/nccl_cost_model.h"

namespace tacet {

// What the tree below "=== System" shows of a job's machines. NCCL prints neither the GPU's name nor its compute
// capability, but the speed of its NVLinks, which belongs to few generations.
struct LoggedHardware {
  CpuArch arch = CpuArch::unknown;
  CpuVendor vendor = CpuVendor::unknown;
  bool nvswitch = false;
  double nvlink_gbps = 0;         // the fastest link seen, all its lanes
  std::vector<int> capabilities;  // that are possible, likeliest first
};
LoggedHardware ReadLoggedHardware(const Incident& incident, const std::vector<const NcclSetup*>& setups);

// GPUs of the node of one rank; 0 where its tree was not printed.
int CountSystemGpus(const Incident& incident, const NcclSetup& setup);

}  // namespace tacet
