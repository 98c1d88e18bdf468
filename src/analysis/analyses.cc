// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyses.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "analysis/timeouts/gloo_waits.h"
#include "analysis/timing/whatif_replay.h"
#include "base/parallel.h"

namespace tacet {

const SourceAnalysis* Analyses::Of(CallSource source) const {
  for (const SourceAnalysis& one : sources)
    if (one.source == source) return &one;
  return nullptr;
}

const StackReading* Analyses::StackOf(Rank rank) const {
  for (const StackReading& reading : stacks)
    if (reading.rank == rank) return &reading;
  return nullptr;
}

namespace {

// Others wait for the rank, and it waits for nobody itself.
bool IsOwed(const Analyses& analyses, Rank rank) {
  const SourceAnalysis* boxes = analyses.Of(CallSource::black_box);
  if (!boxes) return false;
  bool owed = false;
  for (const BlockedOperation& operation : boxes->waits.operations) {
    const auto is_it = [&](const Missing& missing) { return missing.rank == rank; };
    if (std::any_of(operation.missing.begin(), operation.missing.end(), is_it)) owed = true;
    const bool waits = std::find(operation.waiters.begin(), operation.waiters.end(), rank) != operation.waiters.end();
    if (waits && !std::all_of(operation.missing.begin(), operation.missing.end(), is_it)) return false;
  }
  return owed;
}

// Somebody has begun what is not finished, and its process was not seen to go.
bool SomebodyIsLeftWaiting(const Incident& incident, const std::vector<Silence>& silences) {
  std::set<Rank> gone;
  for (const Silence& silence : silences)
    if (silence.dead()) gone.insert(silence.rank);
  return std::any_of(incident.streams.begin(), incident.streams.end(),
                     [&](const CallStream& stream) { return !gone.contains(stream.rank) && FirstUnfinished(stream); });
}

// Of several timelines the first in which somebody is late.
void FindLateWorkers(const Incident& incident, Analyses& out) {
  for (const PipelineTrace& trace : incident.pipeline_traces) {
    const WhatIfReport replay = ReplayWhatIf(trace);
    if (!replay.valid) continue;
    if (out.replay_slowdown == 0) out.replay_slowdown = replay.slowdown;
    StragglerReport late = FindStragglersInReplay(replay);
    if (late.stragglers.empty()) continue;
    out.stragglers = std::move(late);
    return;
  }
}

// All records of times together; timelines of pipelines where there are none.
void FindLateRanks(const Incident& incident, Analyses& out) {
  out.stragglers = FindStragglers(incident, !out.outcome.unfinished_calls);
  if (out.stragglers.rounds == 0) FindLateWorkers(incident, out);
}

// Black boxes show how a job ended. Where a watchdog fired and operations went on for a while after that, they tell of
// what came of it; how things stood at the time is in the flight records, which are written then.
bool BoxesTellTheAftermath(const Incident& incident, const Outcome& outcome) {
  if (!outcome.first_timeout || outcome.first_timeout->wall_ns == kNoTime) return false;
  const int64_t later_ns = outcome.first_timeout->wall_ns + incident.patience.early_end_ns;
  bool dumped = false, went_on = false;
  for (const CallStream& stream : incident.streams) {
    dumped |= stream.source == CallSource::flight_recorder && !stream.stub;
    if (stream.source != CallSource::black_box || went_on) continue;
    went_on = std::any_of(stream.calls.begin(), stream.calls.end(), [&](const Call& call) {
      return call.enter_wall_ns != kNoTime && call.enter_wall_ns > later_ns;
    });
  }
  return dumped && went_on;
}

}  // namespace

Analyses Analyse(const Incident& incident) {
  Analyses out;
  out.life = ReadSignsOfLife(incident);
  out.silences = FindSilences(incident);
  out.outcome = ReadOutcome(incident, out.life);
  out.stacks = ReadStacks(incident);
  out.told = FindToldLaggards(incident);
  // NCCL was asked twice, somebody is behind, and nothing moved in between.
  if (std::any_of(out.told.begin(), out.told.end(), [](const ToldLaggard& told) { return told.stands; }))
    out.outcome.unfinished_calls = out.outcome.aged = true;
  out.printed = ReadPrintedLines(incident);
  out.front = FindOutputFront(out.printed);
  out.printed_laggard = FindPrintedLaggard(incident);
  out.stated = FindStatedDifference(out.printed);
  out.nameless = ReadNamelessWaits(incident);
  if (out.told.empty()) out.told = FindGlooLaggards(out.life, out.stacks, out.front, out.printed, out.nameless);
  std::array<CallSource, 3> order = {CallSource::black_box, CallSource::flight_recorder, CallSource::nccl_log};
  if (BoxesTellTheAftermath(incident, out.outcome)) std::swap(order[0], order[1]);
  for (const CallSource source : order) {
    const bool any = std::any_of(incident.streams.begin(), incident.streams.end(),
                                 [&](const CallStream& s) { return s.source == source && !s.stub; });
    if (!any) continue;
    SourceAnalysis analysis{.source = source};
    // Both read millions of calls, each in its own way.
    ParallelFor(2, 0, [&](size_t part) {
      if (part == 1) {
        analysis.divergences = CompareProgramOrder(incident, source);
        return;
      }
      analysis.groups = CollectGroupCalls(incident, source);
      analysis.links = MatchPointToPoint(incident, source);
      analysis.differences = FindDifferences(incident, analysis.groups);
      analysis.waits = BuildWaitGraph(incident, source, analysis.groups, analysis.links);
    });
    out.sources.push_back(std::move(analysis));
  }
  // Who waits for a process that was seen dead or stopped, or that ended, waits for ever, however young the wait is.
  // Where all are gone nobody waits: that job crashed.
  if (!out.silences.empty() && SomebodyIsLeftWaiting(incident, out.silences))
    for (const Silence& silence : out.silences)
      out.outcome.aged |=
          (silence.sight != nullptr && silence.lasts()) || (silence.exited && IsOwed(out, silence.rank));
  out.end = ReadJobEnd(incident, out.life, out.outcome, out.front);
  FindLateRanks(incident, out);
  out.topology = ReadTopology(incident);
  out.topology_checks = CheckTopology(incident, out.topology);
  if (!incident.benchmark_runs.empty())
    out.bandwidth = MeasureBandwidth({{&incident, &out.topology, &out.topology_checks}});
  return out;
}

}  // namespace tacet
