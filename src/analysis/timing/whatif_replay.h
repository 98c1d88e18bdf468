// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/timing/straggler.h"
#include "model/pipeline_trace.h"

namespace tacet {

// What-if replay after "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI'25).
//
// The operations of a step and what they wait for form a graph: computes of a stage run one after another, a receive
// comes before its compute and a send after it, gradients are reduced after the last backward pass, the optimizer comes
// last. An operation starts when all it waits for have ended. Communication starts for everybody when its last member
// has started, and ends after its transfer time, which is the recorded end minus the last member's recorded start.
//
// The replay with the recorded times gives `replayed`. With every time replaced by the mean of its kind over all
// workers and steps (the median for communication) nobody is a straggler: `ideal`. Slowdown S = replayed / ideal.
// Keeping the recorded times of one kind of operation, one data-parallel rank or one stage only, in the ideal timeline,
// gives the slowdown that this part alone causes. M_W is the share of the slowdown that goes away when the worst 3 % of
// workers get ideal times, M_S when the last stage does.
struct WhatIfReport {
  bool valid = false;
  std::string problem;  // why it is not
  std::string file;     // of the timeline
  int32_t dp_size = 0, stages = 0, chunks = 1;
  size_t steps = 0;                  // replayed
  size_t dropped_steps = 0;          // incomplete, or with other operations than the usual ones
  size_t rare_operations = 0;        // left out, since fewer than half of the steps have them
  std::vector<std::string> missing;  // workers that were not recorded; their data-parallel ranks are left out
  double recorded_ns = 0;            // mean step time as recorded, first start to last end
  double replayed_ns = 0, ideal_ns = 0;
  double slowdown = 1;  // S

  std::vector<std::pair<std::string, double>> by_operation;  // largest first; sends and receives by direction
  std::vector<double> by_dp_rank, by_stage;                  // slowdown caused by each alone; NaN where it is left out
  int32_t worst_dp_rank = -1, worst_stage = -1;

  struct Worker {
    int32_t dp_rank = 0, stage = 0;
    double slowdown = 1;  // the smaller of its rank's and its stage's
  };
  std::vector<Worker> workers;     // worst first
  size_t worst_workers = 0;        // how many the share rests on
  double worst_workers_share = 0;  // M_W
  double last_stage_share = 0;     // M_S

  struct Step {
    int32_t step = 0;
    double recorded_ns = 0, replayed_ns = 0, ideal_ns = 0;
  };
  std::vector<Step> by_step;
};

WhatIfReport ReplayWhatIf(const PipelineTrace& trace);

// Who makes the others wait, by the replay: a worker (data-parallel rank of a stage) or a whole stage whose recorded
// times alone cause most of a slowdown that is worth a word. Timelines name no ranks; a worker's is its place in
// Megatron's order of those that were recorded: stage x data-parallel size + data-parallel rank. `report.stragglers` is
// empty where the loss is spread over all, or small.
StragglerReport FindStragglersInReplay(const WhatIfReport& replay);

}  // namespace tacet
