// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "analysis/timing/whatif_replay.h"

namespace tacet {
namespace {

// Healthy pipelines lose a few percent to the spread of their microbatches and to a last stage that is a little
// heavier.
constexpr double kMinLoss = 0.10;
// Who is named must account for most of it.
constexpr double kMostOfIt = 0.5;

bool IsCompute(std::string_view kind) {
  return kind == Name(PipelineOp::forward_compute) || kind == Name(PipelineOp::backward_compute);
}

// The part of the slowdown that recorded times of a part cause alone, 0..1.
double ShareOf(double slowdown, const WhatIfReport& replay) {
  return std::isfinite(slowdown) ? (slowdown - 1) / (replay.slowdown - 1) : 0;
}

size_t CountLateSteps(const WhatIfReport& replay) {
  return static_cast<size_t>(std::count_if(replay.by_step.begin(), replay.by_step.end(), [&](const auto& step) {
    return step.ideal_ns > 0 && step.replayed_ns / step.ideal_ns - 1 > kMostOfIt * (replay.slowdown - 1);
  }));
}

Straggler Describe(const WhatIfReport& replay, int32_t dp_rank, int32_t stage, StragglerOrigin origin, double share) {
  Straggler out;
  out.rank = Rank{stage * static_cast<int32_t>(replay.by_dp_rank.size()) + dp_rank};
  out.dp_rank = dp_rank;
  out.stage = stage;
  out.origin = origin;
  out.steps = replay.by_step.size();
  out.late_steps = CountLateSteps(replay);
  out.pattern = out.late_steps * 2 < out.steps ? StragglerPattern::intermittent : StragglerPattern::persistent;
  out.explained = std::min(1.0, share);
  const double lost = replay.replayed_ns - replay.ideal_ns;
  out.share = std::min(1.0, share) * lost / replay.replayed_ns;
  out.cost = out.low = out.high = out.share;
  out.late_ns = static_cast<int64_t>(std::min(1.0, share) * lost);
  if (out.pattern == StragglerPattern::intermittent)
    out.late_ns =
        out.late_ns * static_cast<int64_t>(out.steps) / static_cast<int64_t>(std::max<size_t>(1, out.late_steps));
  out.trust = out.steps >= 3 && share >= 0.8 ? Trust::certain : Trust::likely;
  return out;
}

// Workers that stand out of their own stage: a stage that is slow on all data-parallel ranks is no worker's fault, and
// with one rank alone the two cannot be told apart.
void AddWorkers(const WhatIfReport& replay, StragglerReport& report) {
  if (replay.dp_size < 2 || replay.worst_workers_share < kMostOfIt) return;
  const bool compute = !replay.by_operation.empty() && IsCompute(replay.by_operation.front().first);
  for (size_t i = 0; i < std::min(replay.worst_workers, replay.workers.size()); ++i) {
    const WhatIfReport::Worker& worker = replay.workers[i];
    const double share = ShareOf(worker.slowdown, replay);
    if (share < kMostOfIt / static_cast<double>(replay.worst_workers)) continue;
    report.stragglers.push_back(Describe(replay, worker.dp_rank, worker.stage,
                                         compute ? StragglerOrigin::gpu_work : StragglerOrigin::unknown,
                                         std::min(1.0, replay.worst_workers_share)));
  }
}

void AddStage(const WhatIfReport& replay, StragglerReport& report) {
  if (replay.stages < 2 || replay.worst_stage < 0) return;
  const double share = ShareOf(replay.by_stage[static_cast<size_t>(replay.worst_stage)], replay);
  if (share < kMostOfIt) return;
  for (int32_t dp = 0; dp < static_cast<int32_t>(replay.by_dp_rank.size()); ++dp)
    if (std::isfinite(replay.by_dp_rank[static_cast<size_t>(dp)]))
      report.stragglers.push_back(Describe(replay, dp, replay.worst_stage, StragglerOrigin::stage, share));
}

}  // namespace

StragglerReport FindStragglersInReplay(const WhatIfReport& replay) {
  StragglerReport report;
  if (!replay.valid) return report;
  report.steps = replay.steps;
  report.step_ns = static_cast<int64_t>(replay.replayed_ns);
  for (const WhatIfReport::Worker& worker : replay.workers) {
    RankLateness one;
    one.rank = Rank{worker.stage * static_cast<int32_t>(replay.by_dp_rank.size()) + worker.dp_rank};
    report.ranks.push_back(one);
  }
  std::sort(report.ranks.begin(), report.ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const double loss = replay.slowdown > 0 ? 1 - 1 / replay.slowdown : 0;
  if (loss < kMinLoss) return report;
  AddWorkers(replay, report);
  if (report.stragglers.empty()) AddStage(replay, report);
  if (report.stragglers.empty()) return report;
  report.cost_share = report.stragglers.front().share;
  report.source = "the pipeline's timeline";
  return report;
}

}  // namespace tacet
