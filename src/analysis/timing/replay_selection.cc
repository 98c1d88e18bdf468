// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/replay_selection.h"

#include <algorithm>
#include <map>
#include <set>

namespace tacet {
namespace {

// More are not worth naming one by one.
constexpr size_t kMostNamed = 8;

// Stages that at least half of the data-parallel ranks have.
std::set<int32_t> UsualStages(const std::map<int32_t, std::set<int32_t>>& stages_of) {
  std::map<int32_t, size_t> times;
  for (const auto& [dp, stages] : stages_of)
    for (const int32_t stage : stages) ++times[stage];
  std::set<int32_t> usual;
  for (const auto& [stage, count] : times)
    if (count * 2 >= stages_of.size()) usual.insert(stage);
  return usual;
}

}  // namespace

ReplaySelection SelectForReplay(const PipelineTrace& trace) {
  ReplaySelection out;
  out.recorded_dp_size = trace.dp_size;
  std::map<int32_t, std::set<int32_t>> stages_of;
  for (const PipelineOperation& operation : trace.operations)
    if (operation.op != PipelineOp::other) stages_of[operation.dp_rank].insert(operation.stage);
  const std::set<int32_t> usual = UsualStages(stages_of);
  size_t unnamed = 0;
  const auto miss = [&](std::string what) {
    if (out.missing.size() < kMostNamed)
      out.missing.push_back(std::move(what));
    else
      ++unnamed;
  };
  for (int32_t stage = 0; !usual.empty() && stage < *usual.rbegin(); ++stage)
    if (!usual.contains(stage)) miss("stage " + std::to_string(stage));
  std::map<int32_t, int32_t> number;
  int32_t expected = 0;
  for (const auto& [dp, stages] : stages_of) {
    for (; expected < dp && unnamed < kMostNamed; ++expected) miss("data-parallel rank " + std::to_string(expected));
    expected = dp + 1;
    bool whole = true;
    for (const int32_t stage : usual) {
      if (stages.contains(stage)) continue;
      whole = false;
      miss("stage " + std::to_string(stage) + " of data-parallel rank " + std::to_string(dp));
    }
    if (!whole) continue;
    number.emplace(dp, static_cast<int32_t>(out.dp_ranks.size()));
    out.dp_ranks.push_back(dp);
  }
  if (unnamed > 0) out.missing.push_back("more");
  out.trace.file = trace.file;
  out.trace.cut = trace.cut;
  out.trace.tp_size = trace.tp_size;
  out.trace.stages = trace.stages;
  out.trace.dp_size = static_cast<int32_t>(out.dp_ranks.size());
  for (const PipelineOperation& operation : trace.operations) {
    const auto at = number.find(operation.dp_rank);
    if (at == number.end() || !usual.contains(operation.stage)) continue;
    out.trace.operations.push_back(operation);
    out.trace.operations.back().dp_rank = at->second;
  }
  return out;
}

}  // namespace tacet
