// SPDX-License-Identifier: Apache-2.0
// The ways to a straggler report from each kind of evidence.
#include <algorithm>

#include "analysis/timing/pipeline.h"
#include "analysis/timing/statistics.h"
#include "analysis/timing/straggler.h"
#include "analysis/timing/straggler_origin.h"

namespace tacet {
namespace {

// A step is as long as it is for the typical rank.
StepTimes TimesOf(std::span<const Timeline> timelines) {
  std::map<int64_t, std::vector<double>> lengths;
  for (const Timeline& timeline : timelines)
    for (const TrainingStep& step : timeline.steps)
      lengths[step.number].push_back(static_cast<double>(step.end_ns - step.start_ns));
  StepTimes times;
  for (auto& [step, values] : lengths) times[step] = Median(std::move(values));
  return times;
}

// A stage this much heavier than the others, where equal stages would save this share of the step, is worth a new
// partition. The last stage of a language model carries the output layer and is a fifth heavier in healthy jobs.
constexpr double kHeavyStage = 1.3, kMinBalanceGain = 0.10;

void AddHeavyStage(const PipelineReport& pipeline, size_t steps, StragglerReport& report) {
  if (pipeline.imbalance < kHeavyStage || pipeline.balance_gain < kMinBalanceGain) return;
  const PipelineStage& heavy = pipeline.by_stage[static_cast<size_t>(pipeline.heaviest)];
  const auto usual = static_cast<double>(heavy.compute_ns) / pipeline.imbalance;
  for (const Rank rank : heavy.ranks) {
    std::erase_if(report.stragglers, [&](const Straggler& known) { return known.rank == rank; });
    report.stragglers.push_back({.rank = rank,
                                 .pattern = StragglerPattern::persistent,
                                 .origin = StragglerOrigin::stage,
                                 .trust = pipeline.imbalance >= 1.5 ? Trust::certain : Trust::likely,
                                 .share = pipeline.balance_gain,
                                 .late_ns = heavy.compute_ns - static_cast<int64_t>(usual),
                                 .late_steps = steps,
                                 .steps = steps,
                                 .explained = 1});
  }
  report.step_ns = pipeline.step_ns;
  report.cost_share = std::max(report.cost_share, pipeline.balance_gain);
}

}  // namespace

StragglerReport FindStragglersInTraces(std::span<const Timeline> timelines, std::span<const Group> groups) {
  std::vector<CollectiveRound> rounds = MatchCollectives(timelines, groups);
  ApplyAlignment(AlignClocks(rounds), rounds);
  return FindStragglersInTraces(rounds, timelines);
}

StragglerReport FindStragglersInTraces(const std::vector<CollectiveRound>& rounds,
                                       std::span<const Timeline> timelines) {
  const bool marked =
      std::any_of(timelines.begin(), timelines.end(), [](const auto& one) { return !one.steps.empty(); });
  if (!marked && !rounds.empty()) {
    // Nobody called prof.step(): steps are what repeats.
    std::vector<CollectiveRound> stepped = rounds;
    AssignPeriods(stepped);
    StragglerReport report = FindStragglers(stepped, {});
    ExplainFromTraces(stepped, timelines, report);
    return report;
  }
  StragglerReport report = FindStragglers(rounds, TimesOf(timelines));
  ExplainFromTraces(rounds, timelines, report);
  const PipelineReport pipeline = AnalysePipeline(rounds, timelines);
  if (pipeline.found) {
    AddHeavyStage(pipeline, timelines.empty() ? 0 : timelines[0].steps.size(), report);
  } else {
    AddUnevenWork(rounds, timelines, report);
  }
  std::stable_sort(report.stragglers.begin(), report.stragglers.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return report;
}

StragglerReport FindStragglersInMeasurements(const Incident& incident) {
  const auto rounds = MatchMeasurements(incident);
  StragglerReport report = FindStragglers(rounds);
  const bool boxes = std::any_of(incident.streams.begin(), incident.streams.end(), [](const CallStream& stream) {
    return stream.source == CallSource::black_box && !stream.calls.empty();
  });
  ExplainFromEnters(rounds, report, !boxes);
  return report;
}

bool AddStallsOfLongerRecords(const Incident& incident, StragglerReport& report) {
  // Shared machines have hiccups: fewer stalls than these, or shorter ones, are none.
  constexpr size_t kMinStalls = 3;
  constexpr double kMinStallShare = 0.08;
  const StragglerReport longer =
      incident.measurements.empty() ? FindStragglersInTimedCalls(incident) : FindStragglersInMeasurements(incident);
  bool told = false;
  for (const Straggler& stall : longer.stragglers) {
    if (stall.pattern != StragglerPattern::intermittent || stall.late_steps < kMinStalls ||
        stall.share < kMinStallShare)
      continue;
    const auto known = std::find_if(report.stragglers.begin(), report.stragglers.end(),
                                    [&](const Straggler& one) { return one.rank == stall.rank; });
    if (known != report.stragglers.end() && known->pattern == StragglerPattern::persistent) continue;
    told = true;
    report.cost_share = std::max(known == report.stragglers.end() ? report.cost_share : 0, longer.cost_share);
    if (known == report.stragglers.end()) {
      report.stragglers.push_back(stall);
    } else {
      const StragglerOrigin origin = known->origin;
      *known = stall;
      known->origin = origin;
    }
  }
  std::stable_sort(report.stragglers.begin(), report.stragglers.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return told;
}

StragglerReport FindStragglersInTimedCalls(const Incident& incident) {
  const auto rounds = MatchTimedCalls(incident);
  StragglerReport report = FindStragglers(rounds);
  ExplainFromEnters(rounds, report, true);
  return report;
}

}  // namespace tacet
