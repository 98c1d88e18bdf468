// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <vector>

#include "analysis/timing/clock_alignment.h"

namespace tacet {

enum class StragglerPattern : uint8_t { persistent, intermittent };

// Why a rank is late.
enum class StragglerOrigin : uint8_t {
  unknown,
  gpu_work,      // its kernels take longer or are more
  host,          // its GPU had nothing to do: the host was slow to issue work
  data_loading,  // its host waited for the next batch
  uneven_input,  // whoever got the largest input is late, another rank every time
  stage,         // a pipeline stage with more work than the others
};

enum class Trust : uint8_t { possible, likely, certain };

// How late one rank was, over all operations in which its coming counts.
struct RankLateness {
  Rank rank;
  size_t rounds = 0, last = 0;  // operations that count; of these, those in which it came last
  size_t steps = 0, late_steps = 0;
  double share = 0;         // mean over steps of (lateness behind the median member) / (step time)
  double median_share = 0;  // the median instead: what an ordinary step has
  int64_t mean_ns = 0;      // the mean in ns per step
  int64_t worst_ns = 0;     // the worst step
};

struct Straggler {
  Rank rank;
  StragglerPattern pattern = StragglerPattern::persistent;
  StragglerOrigin origin = StragglerOrigin::unknown;
  Trust trust = Trust::possible;
  double share = 0;     // of the step time it is late
  int64_t late_ns = 0;  // per step; per late step where intermittent
  size_t late_steps = 0, steps = 0;
  double explained = 0;              // how much of the lateness the origin accounts for, 0..1
  int32_t dp_rank = -1, stage = -1;  // of a pipeline timeline, which knows workers by their place
};

struct StragglerReport {
  std::vector<RankLateness> ranks;
  std::vector<Straggler> stragglers;  // worst first; empty in a healthy job
  int64_t step_ns = 0;                // typical
  size_t rounds = 0, steps = 0;       // that the report rests on
  // What all ranks together would gain per step if the stragglers came when the last of the others comes, as a share of
  // it.
  double cost_share = 0;
};

// Step number -> length in ns.
using StepTimes = std::map<int64_t, double>;

// Who makes the others wait. A member's lateness in an operation is its arrival minus the (lower) median arrival of all
// members; arrival is the start of its kernel, or, where only durations are known, minus the duration, since who comes
// last has the shortest kernel. Of starts the raggedness of the ends is taken off, which is the error of the
// measurement; starts that merely follow the operation before do not count. A rank is a straggler when its lateness is
// at least 4 % of the step and three times that of the typical rank, and is either there in most steps (persistent: its
// median step too is late) or is a large part of a step now and then (intermittent). Expects aligned rounds with steps.
StragglerReport FindStragglers(const std::vector<CollectiveRound>& rounds, const StepTimes& step_times = {});

// From traces whose rounds are matched and aligned: find, and say why by comparing what each late rank did before it
// came with what the others did. Pipelines are looked at by stage.
StragglerReport FindStragglersInTraces(const std::vector<CollectiveRound>& aligned,
                                       std::span<const Timeline> timelines);
// The whole way: match, align, find.
StragglerReport FindStragglersInTraces(std::span<const Timeline> timelines, std::span<const Group> groups);

// From NCCL Inspector or from a Flight Recorder with timing. Neither sees the GPU's other work: a rank whose host
// issues in time and whose kernel starts late is late on the GPU; one whose host issues late may be either.
StragglerReport FindStragglersInMeasurements(const Incident& incident);
StragglerReport FindStragglersInTimedCalls(const Incident& incident);

// A few traced steps miss a stall that comes every tenth. Adds who stalls now and then by the longer records that lie
// beside the traces (Inspector, else flight records), and says how often by them; true when they told anything. That
// somebody is always late is not taken over: the traced steps would show it.
bool AddStallsOfLongerRecords(const Incident& incident, StragglerReport& report);

}  // namespace tacet
