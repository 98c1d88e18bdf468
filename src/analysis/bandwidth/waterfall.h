// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/bandwidth/sweep.h"
#include "analysis/network/topology_checks.h"
#include "predict/nccl_job_model.h"

namespace tacet {

enum class WaterfallStep : uint8_t {
  nics,       // the node with the fewest or slowest NICs
  pcie,       // slots narrower than the NIC, or than the GPU
  path,       // from the GPU to the NIC: GPUDirect RDMA, PXN, the CPU's bridges
  channels,   // what the search made of it, and the caps on channels
  protocol,   // LL and LL128 carry flags beside the data
  algorithm,  // Tree, NVLS and others move more or fewer bytes than a ring
  size,       // latency at this size
  measured,   // what is left
};
std::string_view Name(WaterfallStep step);

struct WaterfallLoss {
  WaterfallStep step = WaterfallStep::measured;
  double before_gbs = 0, after_gbs = 0;  // bus bandwidth
  std::string who;                       // node, NIC, variable or link that takes it; empty where nothing was taken
  double Lost() const { return before_gbs - after_gbs; }
};

// From what the hardware carries down to what was measured; each step begins where the one before ends, so that all
// losses together are the difference.
struct Waterfall {
  int64_t bytes = 0;
  std::string top;  // "8 NICs of 50 GB/s per node", "NVLink, 371 GB/s per GPU"
  double line_gbs = 0, measured_gbs = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;
  NcclProtocol protocol = NcclProtocol::unknown;
  std::vector<WaterfallLoss> losses;
  std::string missing;  // what would show the steps that are not there
};

// One measured size against NCCL's model of this communicator.
struct ModelPoint {
  int64_t bytes = 0;
  double measured_us = 0, predicted_us = 0, measured_gbs = 0, predicted_gbs = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;
  NcclProtocol protocol = NcclProtocol::unknown;
  bool bandwidth_bound = false;  // most of the predicted time is transfer
  double Share() const { return predicted_gbs > 0 ? measured_gbs / predicted_gbs : 0; }
};

// A sweep beside what this machine's own graph promises.
struct ModelCheck {
  size_t sweep = 0;
  std::string communicator;
  std::string other_release;  // of the log, where it is not that of the benchmark: the log is of a different run
  const NcclGroupModel* model = nullptr;
  NcclCommunicator forced;  // with the way the sweep was made to take
  NcclCostTable costs;
  std::vector<ModelPoint> points;
  double share = 0;  // median of measured over predicted bus bandwidth, of the large sizes
  size_t large_points = 0;
  double latency_ratio = 0;  // median of measured over predicted time, of the small sizes; 0: none
  Waterfall waterfall;       // at the size with the highest bandwidth
  std::vector<std::string> assumptions;
};

// Channels of the ring graph that are used: NCCL doubles those of the search, and a variable may leave fewer than it
// found.
double UsedChannels(const NcclCommunicator& c);

void BuildWaterfall(const ModelCheck& check, const ModelPoint& point, const TopologyView& view,
                    const TopologyChecks& checks, OpKind op, Waterfall& out);

ModelCheck CheckAgainstModel(const Sweep& sweep, size_t index, const NcclGroupModel& model,
                             const TopologyView& topology, const TopologyChecks& checks);

}  // namespace tacet
