// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/timing/communication_table.h"

namespace tacet {

// One gradient bucket of DistributedDataParallel, the same place in every step.
struct DdpBucket {
  int64_t bytes = 0;
  int64_t ready_ns = 0;              // from the start of the step, median: the host issued its all-reduce
  int64_t start_ns = 0, end_ns = 0;  // of the kernel, the same way
  int64_t transfer_ns = 0;           // without waiting for peers
};

struct DdpPrediction {
  double cap_mb = 0;
  size_t buckets = 0;
  double step_ns = 0;
};

// How DDP reduces its gradients, and what another bucket_cap_mb would give.
struct DdpReport {
  bool found = false;
  GroupIndex group = GroupIndex::none;
  int64_t gradient_bytes = 0;      // per step
  std::vector<DdpBucket> buckets;  // in order
  LatencyBandwidthFit fit;
  double step_ns = 0;                      // recorded, median
  double predicted_ns = 0;                 // what the model below says of the buckets as they are
  bool trusted = false;                    // that is close to the steps as they were
  std::vector<DdpPrediction> predictions;  // for caps of 1 MB to 1 GB; none where the model is not trusted
  double recommended_cap_mb = 0;
  double gain = 0;  // share of the step that the recommended cap saves; 0 when the present one is as good
};

// Buckets are the all-reduces of a step whose sizes add up to the gradients (AccumulateGrad in the trace); without
// recorded gradients, the all-reduces of a group that does nothing else. The prediction fills buckets with gradients in
// the order in which they become ready, closes one when it reaches the cap, and lets each wait for its last gradient
// and for the bucket before; its time is the fitted latency and bandwidth. A gradient is ready when the host has
// accumulated it and the kernels launched until then have ended; each bucket costs the host what a call of the
// recording did. Everything behind the last bucket is as recorded.
DdpReport AnalyseDdp(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines);

}  // namespace tacet
