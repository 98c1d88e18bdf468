// SPDX-License-Identifier: Apache-2.0
// The ways to a straggler report from each kind of evidence, and from all together.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/timing/issue_rounds.h"
#include "analysis/timing/one_by_one.h"
#include "analysis/timing/pace_replay.h"
#include "analysis/timing/pipeline.h"
#include "analysis/timing/slow_stage.h"
#include "analysis/timing/statistics.h"
#include "analysis/timing/straggler.h"
#include "analysis/timing/straggler_cost.h"
#include "analysis/timing/straggler_origin.h"
#include "analysis/timing/time_budget.h"

namespace tacet {
namespace {

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
                                 .late_ns = heavy.compute_ns - static_cast<int64_t>(usual),
                                 .late_steps = steps,
                                 .steps = steps,
                                 .explained = 1,
                                 .cost = pipeline.balance_gain,
                                 .low = pipeline.balance_gain,
                                 .high = pipeline.balance_gain});
  }
  report.step_ns = pipeline.step_ns;
  if (report.source.empty()) report.source = Name(PaceSource::traces);
  report.cost_share = std::max(report.cost_share, pipeline.balance_gain);
}

bool HasStepMarks(std::span<const Timeline> timelines) {
  return std::any_of(timelines.begin(), timelines.end(), [](const auto& one) { return !one.steps.empty(); });
}

// Everything that traces alone can say.
struct TraceView {
  std::vector<CollectiveRound> rounds;  // with steps
  std::span<const Timeline> timelines;
  PipelineReport pipeline;
  Pace pace;
};

TraceView ViewTraces(std::vector<CollectiveRound> rounds, std::span<const Timeline> timelines) {
  TraceView view{.rounds = std::move(rounds), .timelines = timelines, .pipeline = {}, .pace = {}};
  if (!HasStepMarks(timelines)) {
    // Nobody called prof.step(): steps are what repeats.
    AssignPeriods(view.rounds);
    view.pace = MeasurePace(view.rounds, PaceSource::traces);
    return view;
  }
  view.pipeline = AnalysePipeline(view.rounds, timelines);
  // Stages of a pipeline wait for each other by design: a rank is compared with those that do the same stage.
  std::map<Rank, uint32_t> peers;
  for (const PipelineStage& stage : view.pipeline.by_stage)
    for (const Rank rank : stage.ranks) peers[rank] = static_cast<uint32_t>(stage.stage);
  view.pace = MeasurePaceInTraces(view.rounds, timelines, view.pipeline.found ? peers : std::map<Rank, uint32_t>());
  return view;
}

// What traces show besides lateness: overloaded stages, and work that is uneven although nobody comes late.
void AddWork(const TraceView& view, StragglerReport& report) {
  if (!HasStepMarks(view.timelines)) return;
  if (view.pipeline.found) {
    AddHeavyStage(view.pipeline, view.timelines.empty() ? 0 : view.timelines[0].steps.size(), report);
  } else {
    AddUnevenWork(view.rounds, view.timelines, report);
    if (report.source.empty() && !report.stragglers.empty()) report.source = Name(PaceSource::traces);
  }
  std::stable_sort(report.stragglers.begin(), report.stragglers.end(),
                   [](const auto& a, const auto& b) { return a.cost > b.cost; });
}

// Records that end at different places compare different steps.
bool HasCutRecord(const Incident& incident) {
  return std::any_of(incident.streams.begin(), incident.streams.end(), [](const CallStream& stream) {
    return stream.source == CallSource::flight_recorder && stream.cut;
  });
}

bool IsBox(const Incident& incident, const Measurement& measurement) {
  const auto file = static_cast<uint32_t>(measurement.source.file);
  return file < incident.files.size() && incident.files[file].format == "black_box";
}

// Rounds without a timeline, by the records they come from.
struct MeasuredView {
  PaceSource source;
  std::vector<CollectiveRound> rounds;
  std::vector<Transfer> transfers;
  bool by_issue = false;  // rounds are of moments of issue alone
};

Pace PaceOf(const MeasuredView& view) {
  if (view.by_issue) return MeasurePaceOfIssues(view.rounds, view.source);
  if (view.source != PaceSource::flight_records || FitOneByOne(view.rounds))
    return MeasurePace(view.rounds, view.source, view.transfers);
  return MeasurePace(RunOneByOne(view.rounds), view.source, view.transfers);
}

std::vector<Measurement> MeasurementsOf(const Incident& incident, PaceSource source) {
  std::vector<Measurement> own;
  for (const Measurement& one : incident.measurements)
    if (IsBox(incident, one) == (source == PaceSource::black_boxes)) own.push_back(one);
  return own;
}

std::vector<MeasuredView> ViewMeasurements(const Incident& incident) {
  std::vector<MeasuredView> out;
  for (const PaceSource source : {PaceSource::inspector, PaceSource::black_boxes}) {
    const std::vector<Measurement> own = MeasurementsOf(incident, source);
    if (!own.empty())
      out.push_back({source, MatchMeasurements(own, incident.groups), TransfersOfMeasurements(own, incident.groups)});
  }
  return out;
}

// Where steps could not be told apart their lengths scatter, and a share of a step means nothing.
bool HasSteadySteps(const Pace& pace) {
  constexpr double kSteady = 0.6;
  return RobustDeviation(pace.step_ns) <= kSteady * Median(pace.step_ns);
}

// Lateness as a share of the step: of traces the one that `tacet profile` tells; records without a trace have the
// typical step here, and profiles, which tell the mean one, state them anew.
void StateSharesOfJob(const TraceView* traces, StragglerReport& report) {
  if (traces && HasStepMarks(traces->timelines)) {
    int64_t total = 0, steps = 0;
    for (const Timeline& timeline : traces->timelines)
      for (const TrainingStep& step : StepsOf(timeline)) total += step.end_ns - step.start_ns, ++steps;
    if (steps > 0 && total > 0) report.step_ns = total / steps;
  }
  if (report.step_ns <= 0) return;
  for (Straggler& one : report.stragglers) {
    // The median rank is half the late one itself where there are two, and drawn towards it where there are few: behind
    // the others alone it is late by at least what it costs them.
    const auto least = std::llround(one.cost * static_cast<double>(report.step_ns));
    if (one.pattern == StragglerPattern::persistent && one.late_ns < least) {
      one.late_ns = least;
      for (RankLateness& own : report.ranks)
        if (own.rank == one.rank) own.mean_ns = std::max<int64_t>(own.mean_ns, least);
    }
  }
  StateShares(report.step_ns, report);
}

// Traces show kernels and host. Who is late there by neither was made late by something else: a device that ranks
// share, an operation of another group. Nothing of its own is to be found, so it is not named.
void DropUnexplained(const TraceView& traces, StragglerReport& report) {
  if (!HasStepMarks(traces.timelines) || traces.pipeline.found) return;
  std::erase_if(report.stragglers, [](const Straggler& one) {
    return one.origin == StragglerOrigin::unknown && one.pattern == StragglerPattern::persistent;
  });
}

double ComputeShare(std::span<const Timeline> timelines) {
  double compute = 0, total = 0;
  for (const Timeline& timeline : timelines) {
    const BudgetMeter meter(timeline);
    for (const TrainingStep& step : timeline.steps) {
      const TimeBudget budget = meter.Measure({step.start_ns, step.end_ns});
      compute += static_cast<double>(budget.compute_ns());
      total += static_cast<double>(budget.total_ns());
    }
  }
  return total > 0 ? compute / total : 1;
}

// The profiler makes hosts half as slow again, and not all alike: in steps of 26 ms that are the hosts' work for the
// most part one of four was 6 ms slower than the others in a job that had nothing wrong with it, and in steps of 3 ms
// one was 1 ms slower. They were so in all places of the step alike: what happens in one place is the program's own.
void DropSpreadOfProfiledHosts(const TraceView& traces, StragglerReport& report) {
  constexpr double kHostsWork = 0.2, kBeyondProfiler = 0.15, kVeryLate = 0.3;
  constexpr int64_t kVeryLateNs = 10'000'000, kStallNs = 2'000'000, kLittleNs = 1'500'000;
  const auto is_within = [](const Straggler& one) {
    if (one.origin != StragglerOrigin::host || one.place.HoldsMostOf(static_cast<double>(one.late_ns))) return false;
    if (one.cost < kVeryLate && one.late_ns < kLittleNs && one.place.steps > 0) return true;
    if (one.cost >= kBeyondProfiler) return false;
    if (one.pattern == StragglerPattern::intermittent) return one.late_ns < kStallNs;
    return one.share < kVeryLate && one.late_ns < kVeryLateNs;
  };
  if (std::none_of(report.stragglers.begin(), report.stragglers.end(), is_within)) return;
  if (ComputeShare(traces.timelines) >= kHostsWork) return;
  std::erase_if(report.stragglers, is_within);
  AddCosts(report);
}

// Lateness and cost are to be of the same steps: where traces are, those of the traces, which the profiler made longer.
std::vector<const std::vector<CollectiveRound>*> RecordsToReplay(const TraceView* traces,
                                                                 const std::vector<MeasuredView>& measured) {
  std::vector<const std::vector<CollectiveRound>*> out;
  if (traces) {
    if (!traces->pipeline.found) out.push_back(&traces->rounds);
    return out;
  }
  for (const MeasuredView& view : measured)
    if (view.transfers.empty()) out.push_back(&view.rounds);
  return out;
}

bool Tells(const MeasuredView& view, const Pace& pace) {
  const bool tells = view.by_issue || view.source == PaceSource::flight_records || FitOneByOne(view.rounds);
  return tells && pace.operations > 0 && HasSteadySteps(pace);
}

std::vector<Pace> PacesOf(const std::vector<MeasuredView>& measured) {
  std::vector<Pace> paces;
  for (const MeasuredView& view : measured) paces.push_back(PaceOf(view));
  return paces;
}

StragglerReport Judge(const TraceView* traces, const std::vector<MeasuredView>& measured,
                      const std::vector<Pace>& paces_measured) {
  std::vector<Pace> paces;
  if (traces && traces->pace.operations > 0) paces.push_back(traces->pace);
  for (size_t i = 0; i < measured.size(); ++i)
    if (Tells(measured[i], paces_measured[i])) paces.push_back(paces_measured[i]);
  StragglerReport report = DecideStragglers(paces, traces ? traces->timelines : std::span<const Timeline>());
  if (traces) ExplainFromTraces(traces->rounds, traces->timelines, report);
  for (const MeasuredView& view : measured)
    ExplainFromEnters(view.rounds, report, view.source != PaceSource::black_boxes);
  if (traces) DropUnexplained(*traces, report);
  BoundCosts(RecordsToReplay(traces, measured), report);
  return report;
}

// Who is late is told by all steps. What it costs is told by the last ones where the job paused before: a profiler,
// which makes steps longer and writes its trace in the pause, or an input that was read ahead is no part of them.
void TakeCostsOfLastSteps(const std::vector<MeasuredView>& measured, const std::vector<Pace>& paces_measured,
                          StragglerReport& report) {
  if (report.stragglers.empty()) return;
  std::vector<MeasuredView> last;
  for (size_t i = 0; i < measured.size(); ++i) {
    const MeasuredView& view = measured[i];
    if (auto rounds = RoundsAfterPause(view.rounds, paces_measured[i]); !rounds.empty())
      last.push_back({view.source, std::move(rounds), view.transfers, view.by_issue});
  }
  if (last.empty()) return;
  std::vector<Pace> paces;
  for (const MeasuredView& view : last)
    if (Pace pace = PaceOf(view); Tells(view, pace)) paces.push_back(std::move(pace));
  StragglerReport now = EstimateCosts(paces, report.stragglers);
  LimitCosts(RecordsToReplay(nullptr, last), now);
  for (Straggler& one : report.stragglers)
    for (const Straggler& other : now.stragglers)
      if (other.rank == one.rank && other.pattern == one.pattern)
        one.cost = other.cost, one.low = other.low, one.high = other.high;
  AddCosts(report);
}

StragglerReport Settle(const TraceView* traces, const std::vector<MeasuredView>& measured) {
  const std::vector<Pace> paces = PacesOf(measured);
  StragglerReport report = Judge(traces, measured, paces);
  if (!traces) TakeCostsOfLastSteps(measured, paces, report);
  if (traces && measured.empty()) DropSpreadOfProfiledHosts(*traces, report);
  if (traces) AddWork(*traces, report);
  for (const MeasuredView& view : measured)
    if (!traces && view.source == PaceSource::flight_records) AddSlowStage(view.rounds, view.transfers, report);
  StateSharesOfJob(traces, report);
  return report;
}

// No more than possible: when an operation was issued does not show whether a GPU waited for it. Where no host waits
// for its GPU anywhere in a step, nobody waits for a host either.
StragglerReport JudgeIssues(PaceSource source, IssueRounds issues) {
  const MeasuredView view{source, std::move(issues.rounds), {}, true};
  StragglerReport report = Settle(nullptr, {view});
  std::erase_if(report.stragglers, [&](const auto& one) { return !ReplayWithPeers(view.rounds, one.rank).known; });
  for (Straggler& one : report.stragglers) one.trust = Trust::possible;
  AddCosts(report);
  if (source == PaceSource::flight_records) report.source = "the times of issue in flight records";
  return report;
}

// Where lengths of operations do not tell who is late, and are not to be believed: those of exchanges, and those that
// do not fit into the time of the record.
StragglerReport SettleMeasured(const Incident& incident, const std::vector<MeasuredView>& measured) {
  StragglerReport report = Settle(nullptr, measured);
  if (!report.stragglers.empty()) return report;
  for (const MeasuredView& view : measured) {
    if (view.source != PaceSource::black_boxes && view.source != PaceSource::inspector) return report;
    if (view.transfers.empty() && FitOneByOne(view.rounds)) return report;
  }
  for (const MeasuredView& view : measured) {
    IssueRounds issues = view.source == PaceSource::black_boxes
                             ? MatchIssues(incident, CallSource::black_box)
                             : MatchIssues(incident, MeasurementsOf(incident, PaceSource::inspector));
    if (issues.exchanges == 0 && FitOneByOne(view.rounds)) continue;
    if (StragglerReport told = JudgeIssues(view.source, std::move(issues)); !told.stragglers.empty()) return told;
  }
  return report;
}

}  // namespace

StragglerReport FindStragglersInTraces(std::span<const Timeline> timelines, std::span<const Group> groups) {
  std::vector<CollectiveRound> rounds = MatchCollectives(timelines, groups);
  ApplyAlignment(AlignClocks(rounds), rounds);
  return FindStragglersInTraces(rounds, timelines);
}

StragglerReport FindStragglersInTraces(const std::vector<CollectiveRound>& rounds,
                                       std::span<const Timeline> timelines) {
  const TraceView view = ViewTraces(rounds, timelines);
  return Settle(&view, {});
}

StragglerReport FindStragglersInMeasurements(const Incident& incident) {
  return SettleMeasured(incident, ViewMeasurements(incident));
}

StragglerReport FindStragglersInTimedCalls(const Incident& incident) {
  return Settle(nullptr, {{PaceSource::flight_records, MatchTimedCalls(incident), TransfersOfCalls(incident)}});
}

StragglerReport FindStragglers(const Incident& incident, bool calls_are_whole,
                               const std::vector<CollectiveRound>* aligned) {
  std::vector<MeasuredView> measured = ViewMeasurements(incident);
  if (calls_are_whole && !HasCutRecord(incident)) {
    MeasuredView view{PaceSource::flight_records, MatchTimedCalls(incident), TransfersOfCalls(incident)};
    if (!view.rounds.empty() || !view.transfers.empty()) measured.push_back(std::move(view));
  }
  if (incident.timelines.size() < 2) {
    // Flight records without times of the GPU still hold when each operation was issued.
    if (measured.empty() && calls_are_whole && !HasCutRecord(incident))
      return JudgeIssues(PaceSource::flight_records, MatchIssues(incident, CallSource::flight_recorder));
    return SettleMeasured(incident, measured);
  }
  std::vector<CollectiveRound> rounds;
  if (aligned) {
    rounds = *aligned;
  } else {
    rounds = MatchCollectives(incident.timelines, incident.groups);
    ApplyAlignment(AlignClocks(rounds), rounds);
  }
  const TraceView view = ViewTraces(std::move(rounds), incident.timelines);
  return Settle(&view, measured);
}

}  // namespace tacet
