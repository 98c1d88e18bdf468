// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/operation.h"
#include "predict/nccl_cost_model.h"

namespace tacet {

struct NcclRequest {
  OpKind op = OpKind::all_reduce;
  int64_t bytes = 0;  // as NCCL counts: the whole buffer, of AllGather and ReduceScatter that of all ranks
  DataType type = DataType::unknown;
  ReduceOp reduction = ReduceOp::sum;
  int operations = 1;  // of one group call, chosen for together
};

// One way to run an operation: what it would take, or why it may not be used.
struct NcclCandidate {
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;
  NcclProtocol protocol = NcclProtocol::unknown;
  double time_us = -1;    // -1 where it may not be used
  double latency_us = 0;  // the part that does not depend on the size
  double bandwidth = 0;   // algorithm bandwidth after corrections, GB/s
  NcclObstacle obstacle = NcclObstacle::none;
};

struct NcclDecision {
  std::vector<NcclCandidate> candidates;  // in table order, those that exist
  int winner = -1;                        // index; -1 where nothing is left
  bool ring_backup = false;               // chosen although NCCL_ALGO forbids it
  int channels = 0, threads = 0;          // at the most
  double bus_bandwidth = 0;               // GB/s, as nccl-tests counts it
  const NcclCandidate* best() const { return winner < 0 ? nullptr : &candidates[static_cast<size_t>(winner)]; }
};

NcclDecision DecideNccl(const NcclCommunicator& communicator, const NcclCostTable& table, const NcclRequest& request);

// Bus bandwidth by nccl-tests' definition: of `bytes` moved in `time_us` among `ranks`.
double BusBandwidth(OpKind op, int ranks, int64_t bytes, double time_us);

}  // namespace tacet
