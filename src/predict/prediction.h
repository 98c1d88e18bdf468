// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/alpha_beta.h"
#include "predict/nccl_job_model.h"
#include "predict/training.h"

namespace tacet {

struct PredictedPoint {
  OpKind op = OpKind::unknown;
  int64_t bytes = 0;
  NcclDecision decision;
};
// From `first_bytes` on, up to the next range of the same operation.
struct WinnerRange {
  OpKind op = OpKind::unknown;
  int64_t first_bytes = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;
  NcclProtocol protocol = NcclProtocol::unknown;
  double bus_gbps = 0;  // at its largest size
};

// What NCCL itself says that operations take (2.20 to 2.23, and from 2.31 on).
struct ToldTime {
  OpKind op = OpKind::unknown;
  int64_t bytes = 0;
  std::string how;  // "Ring LL128", "AllGather_LL (symmetric)"
  double time_us = 0, bus_gbps = 0;
  uint64_t times = 0;
};

struct CommunicatorPrediction {
  std::string label;
  size_t alike = 1;  // communicators of the job with the same inputs
  NcclCommunicator communicator;
  NcclCostTable costs;
  bool is_modelled = false;
  bool of_hardware = false;  // described, not logged
  std::vector<std::string> assumptions;
  std::vector<PredictedPoint> points;
  std::vector<WinnerRange> ranges;
  bool has_table = false;
  NcclTableCheck table;
  NcclChoiceCheck choices;
  std::vector<ToldTime> told;
};

struct PredictionRequest {
  std::vector<OpKind> ops;
  std::vector<int64_t> sizes;
};

// Of a log's communicators, those with equal inputs once, most ranks first.
std::vector<CommunicatorPrediction> PredictJob(const Incident& incident, const std::vector<NcclGroupModel>& models,
                                               const PredictionRequest& request);
CommunicatorPrediction PredictCommunicator(const NcclCommunicator& communicator, std::string label,
                                           const PredictionRequest& request);
// Fills points and ranges from communicator and costs.
void FillPoints(const PredictionRequest& request, CommunicatorPrediction& prediction);

// A change to a communicator: "nics=8x400G", "gdr=on", "version=2.24", "nodes=32", "channels=16", "algo=Ring",
// "proto=^LL128", "cpu=amd", "gpus=8xB200", "pat=1". What had to be supposed is added to `assumptions`.
Result<NcclCommunicator> ApplyChange(NcclCommunicator communicator, const std::vector<std::string>& changes,
                                     std::vector<std::string>* assumptions);

// Everything that one call of `tacet predict` answers.
struct Prediction {
  std::vector<CommunicatorPrediction> before, after;  // `after` in the order of `before`, with --what-if
  std::vector<std::string> changes;
  std::vector<std::string> notes;  // what was asked for and could not be predicted
  struct PlainRow {
    OpKind op = OpKind::unknown;
    int64_t bytes = 0;
    PlainCost cost;
    double time_us = 0, bus_gbps = 0;
  };
  std::vector<PlainRow> plain;
  std::string plain_link;  // "alpha 5 us, 45 GB/s, 64 ranks"
  bool has_step = false;
  TrainingModel model;
  TrainingLayout layout;
  ParameterCount parameters;
  TrainingMemory memory;
  double memory_limit_gb = 0;
  std::vector<StepTraffic> traffic;
  StepEstimate step;
  double overlap = -1;
  std::vector<std::string> step_assumptions;
};

}  // namespace tacet
