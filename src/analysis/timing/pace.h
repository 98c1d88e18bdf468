// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

enum class PaceSource : uint8_t { traces, inspector, black_boxes, flight_records };
std::string_view Name(PaceSource source);  // "traces", "NCCL Inspector records", ...

// How each rank kept pace with the others, step by step, as one kind of record shows it.
//
// The one measure: in every step all ranks together take the same time, so who waits least in communication has most of
// its own to do, and everybody else waits for it. A rank's lateness in a step is what the median rank waits longer than
// it does, over all operations of all groups. That needs no common clock, and follows causes by itself: a rank that was
// held up by a late one in its tensor group has waited there, and what its data-parallel peers then wait for it does
// not make it late.
struct Pace {
  PaceSource source = PaceSource::traces;
  std::vector<Rank> ranks;           // ascending
  std::vector<double> step_ns;       // length of each step
  std::vector<double> late_ns;       // of rank r in step s: [r * step_ns.size() + s]; NaN where it is not known
  // As late_ns: what the median of its peers waits longer than it does in operations of peers alone. Of pipelines;
  // empty elsewhere.
  std::vector<double> shared_ns;
  std::vector<uint32_t> peers;       // by rank: those of one number are compared with each other
  std::vector<size_t> rounds, last;  // by rank: operations it was in; of these, those that it came last to
  // Ranks that are late by less than the others waited, in sum: these waited for one lateness again and again.
  std::set<Rank> counted_again;
  size_t operations = 0;

  size_t steps() const { return step_ns.size(); }
  double late(size_t rank, size_t step) const { return late_ns[rank * step_ns.size() + step]; }
  double shared(size_t rank, size_t step) const { return shared_ns[rank * step_ns.size() + step]; }
};

// A step this many times longer than the typical one is a pause of the job: saving, evaluation, the profiler.
inline constexpr double kPauseOfJob = 5;

// Step number -> ns.
using StepTimes = std::map<int64_t, double>;

// One send or receive, or a batch of them that ran as one kernel.
struct Transfer {
  Rank rank, peer;
  int64_t at_ns = kNoTime;  // when it began, else when its host issued it
  int64_t duration_ns = 0;
  OpKind kind = OpKind::unknown;
  int64_t bytes = -1;
};
std::vector<Transfer> TransfersOfCalls(const Incident& incident);
std::vector<Transfer> TransfersOfMeasurements(std::span<const Measurement> measurements, std::span<const Group> groups);

// From the durations of operations. A kernel of communication lasts from its rank's arrival to the common end, so its
// length beyond the shortest member's is waiting. Operations that overlap the backward pass (gradient buckets) show one
// lateness again and again; of such a run only the operation counts in which it is largest. Rounds need steps.
Pace MeasurePace(const std::vector<CollectiveRound>& rounds, PaceSource source,
                 std::span<const Transfer> transfers = {});

// From traces: what a rank waits is communication that no compute hides. `peers` says whom a rank is compared with:
// ranks of one number are; empty: those that share operations, directly or through others.
Pace MeasurePaceInTraces(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                         const std::map<Rank, uint32_t>& peers = {});

// Ranks that share operations, directly or through others, get one number.
std::map<Rank, uint32_t> FindPeers(const std::vector<CollectiveRound>& rounds);
std::map<Rank, uint32_t> FindPeers(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers);

// Turns waiting (rank-major, NaN where not known) into lateness behind the median of a rank's peers.
void SetLateness(const std::vector<double>& waited_ns, const std::map<Rank, uint32_t>& peers, Pace& pace);

// No rank was later in a step than its host was behind the others, where that explains its operations' lateness.
// `columns`: of each step in the pace.
void LimitByHostLag(const std::vector<CollectiveRound>& rounds, const std::map<int64_t, size_t>& columns, Pace& pace);

// In pipelines a rank that waits for the next stage looks early beside a peer whose next stage is fast. What tells is
// how long peers wait for each other in the operations that they share: fills Pace::shared_ns.
void SetShared(const std::vector<CollectiveRound>& rounds, const std::map<int64_t, size_t>& columns, Pace& pace);

// When the first operation of each step began, and the distances between these.
StepTimes FindStepStarts(const std::vector<CollectiveRound>& rounds);
StepTimes MeasureStepTimes(const std::vector<CollectiveRound>& rounds);

// The rounds of the steps behind the last pause of the job, without the first few of these; empty where there was no
// pause, or where less than a third of the record lies behind it: jobs that save now and then are alike throughout. A
// step that a late rank made so long is no pause. `pace` is that of the rounds.
std::vector<CollectiveRound> RoundsAfterPause(const std::vector<CollectiveRound>& rounds, const Pace& pace);

}  // namespace tacet
