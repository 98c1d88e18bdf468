// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

enum class PipelineSchedule : uint8_t { unknown, gpipe, one_forward_one_backward, interleaved };

// One stage; with data parallelism several ranks do the same stage.
struct PipelineStage {
  int32_t stage = 0;
  std::vector<Rank> ranks;
  int64_t compute_ns = 0;  // per step, mean of its ranks: time with a compute kernel running
  int64_t waiting_ns = 0;  // per step: only communication runs; the stage waits for its neighbours
  int64_t idle_ns = 0;     // per step: nothing runs
};

// What the sends and receives of a job tell about its pipeline.
struct PipelineReport {
  bool found = false;
  int32_t stages = 0, microbatches = 0, chunks = 1;  // chunks: model chunks per stage (interleaved)
  size_t pipelines = 0;                              // data-parallel replicas
  PipelineSchedule schedule = PipelineSchedule::unknown;
  std::vector<PipelineStage> by_stage;
  int64_t step_ns = 0;
  // Mean over stages of the share of the step in which a stage only waits for its neighbours.
  double bubble = 0;
  // (p - 1) / (v m + p - 1): what stages of equal work would wait.
  double ideal_bubble = 0;
  double idle = 0;        // share of the step in which nothing runs: host and launches, no pipeline matter
  int32_t heaviest = -1;  // stage with most compute
  double imbalance = 1;   // its compute over the median of the others
  // Share of the step that equal stages of the same total work would save: T = sum of the stages' times + (m - 1) of
  // the longest.
  double balance_gain = 0;
};

// Stages are the order of ranks along the sends: the first stage sends before it receives. Microbatches are the
// messages of a step from the first stage to the second; a wrap from the last stage to the first means several chunks a
// stage.
PipelineReport AnalysePipeline(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines);

}  // namespace tacet
