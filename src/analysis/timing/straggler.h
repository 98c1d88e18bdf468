// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/timing/clock_alignment.h"
#include "analysis/timing/pace.h"
#include "analysis/timing/slow_place.h"

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

// What is decided, and how surely. Everything that names a rank goes by these.
struct StragglerLimits {
  // Chance that a healthy job names anybody, over all its ranks and sources together.
  static constexpr double kFalseAlarms = 0.01;
  // The smallest cost worth saying, as a share of the step; of a record of fewer than five steps, where chance alone
  // makes a rank the last one in all of them.
  static constexpr double kMinCost = 0.035, kMinCostOfFew = 0.10;
  // Whoever is last by a little is waited for in operation after operation where hosts are the slowest part, so chance
  // alone can make a rank late by a tenth of the step on the whole; but then others are the last in many a step.
  // Recorded delays of that size: the rank is later than each of the others in 95 % of the steps; ranks of healthy
  // jobs: in 81 %. Of one peer alone that is easier: recorded delays 98 % and more, ranks of healthy jobs up to 91 %.
  static constexpr double kNearlyEveryStep = 0.85, kNearlyEveryStepOfOne = 0.95;
};

// How late one rank was behind the median rank: in every step, and over the record.
struct RankLateness {
  Rank rank;
  size_t rounds = 0, last = 0;  // operations that it was in; of these, those in which it came last
  size_t steps = 0, late_steps = 0;
  double share = 0;         // mean lateness over mean step time
  double median_share = 0;  // the median instead: what an ordinary step has
  int64_t mean_ns = 0;      // mean lateness per step
  int64_t worst_ns = 0;     // the worst step
  double z = 0;             // mean lateness without its extremes, over its standard error
};

struct Straggler {
  Rank rank;
  StragglerPattern pattern = StragglerPattern::persistent;
  StragglerOrigin origin = StragglerOrigin::unknown;
  Trust trust = Trust::possible;
  double share = 0;     // of the step time it is late behind the median rank
  int64_t late_ns = 0;  // per step; per late step where intermittent
  size_t late_steps = 0, steps = 0;
  double explained = 0;              // how much of the lateness the origin accounts for, 0..1
  int32_t dp_rank = -1, stage = -1;  // of a pipeline timeline, which knows workers by their place
  bool counted_again = false;        // the others waited for one lateness several times: Pace::counted_again
  bool among_stages = false;         // stages of a pipeline were compared: nobody does the same work
  double cost = 0;           // share of the step that everybody would gain if it kept pace with the next-slowest rank
  double low = 0, high = 0;  // interval of the cost, at 95 %
  double z = 0;              // lateness over its standard error; 0 where no spread is known
  SlowPlace place;           // where its host loses most; of what is always late in traces
  std::string_view counted_in;  // the record in which its steps were counted: "traces"; empty: not told
};

struct StragglerReport {
  std::vector<RankLateness> ranks;
  std::vector<Straggler> stragglers;  // worst first; empty in a healthy job
  int64_t step_ns = 0;                // typical
  size_t rounds = 0, steps = 0;       // that the report rests on
  // What all ranks together would gain per step if the stragglers kept pace with the slowest of the others, as a share
  // of it: the largest of those that are always late, and what the stalls of the others add.
  double cost_share = 0;
  std::string source;  // the records that decided: "traces", "traces and black boxes"; empty when none has times

  // How much more the job would do in the same time.
  double lost_throughput() const { return cost_share < 1 ? cost_share / (1 - cost_share) : 0; }
};

// Who makes the others wait, by all records together. Each record gives every rank a mean lateness and a standard
// error; a record that sees less of a rank's work counts as less sure than its spread alone says. A rank is a straggler
// when its lateness is beyond what chance does once in a hundred healthy jobs (Student's t, for all ranks together,
// with the noise and the memory of this record's own steps) and costs at least StragglerLimits::kMinCost of the step;
// or when it stalls more often than ranks of this job and of healthy machines do, at that cost.
// `timelines` are those that a pace of traces was measured in.
StragglerReport DecideStragglers(std::span<const Pace> paces, std::span<const Timeline> timelines = {});

// What ranks that are known to be late cost by these records, in which they need not be late by more than chance: a
// cost is as well known when it is small. Those that the records do not hold are left out.
StragglerReport EstimateCosts(std::span<const Pace> paces, std::span<const Straggler> known);

// Hosts that issue hundreds of kernels per step differ by up to a millisecond in that, rank by rank and run by run, on
// a machine that has nothing wrong with it: less than this must be a larger share of the step. In steps of 3 ms, all of
// them the hosts' work, rank 0, which also serves the others' store, was 0.5 to 0.6 ms slower than they. The profiler
// makes hosts, and what they differ by, twice as slow.
bool IsWithinHostSpread(double cost, double cost_ns, double late_ns, bool traced);

// The 95 % interval of what the stragglers cost together: of one alone its own. The costs of several are not
// independent of each other, and each has its own interval only: empty.
struct CostInterval {
  double low = 0, high = 0;
  bool known() const { return high > low; }
};
CostInterval IntervalOfCost(const StragglerReport& report);

// Orders the stragglers by their cost and sets what they cost together.
void AddCosts(StragglerReport& report);

// The whole way from everything an incident has: measure, decide, say why. Flight records are left out where calls are
// unfinished (`calls_are_whole` false): a job that hangs has other worries. `aligned` are the matched rounds of the
// traces, where the caller has them.
StragglerReport FindStragglers(const Incident& incident, bool calls_are_whole = true,
                               const std::vector<CollectiveRound>* aligned = nullptr);

// One kind of record alone.
StragglerReport FindStragglersInTraces(const std::vector<CollectiveRound>& aligned,
                                       std::span<const Timeline> timelines);
StragglerReport FindStragglersInTraces(std::span<const Timeline> timelines, std::span<const Group> groups);
StragglerReport FindStragglersInMeasurements(const Incident& incident);
StragglerReport FindStragglersInTimedCalls(const Incident& incident);

}  // namespace tacet
