// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <vector>

#include "analysis/timing/pace.h"

namespace tacet {

// Steps in which one rank alone was late by far more than the noise of the record.
struct Stalls {
  size_t count = 0;
  double smallest = 0, usual = 0;  // as shares of the typical step
  double beside = 0;               // how late another rank is now and then, the same
  double mean_ns = 0;              // of one
  double cost = 0;  // what they add to the time of all steps, as a share: later than everybody else in those steps
  double usual_cost = 0;   // without the greatest of many: one event is nothing that comes now and then
  double chance = 1;       // that a rank of a healthy job has so many, over all ranks of this job
  double z = 0;            // of the typical one, in deviations of the noise
  bool throughout = true;  // no third of the record is without them, where so many would be in each
  // By how much the steps around them are longer than usual, over what the others waited; NaN where lengths of steps
  // are not known. A stall that makes no step longer is an error of the record.
  double lengthens = std::numeric_limits<double>::quiet_NaN();
};

// What one record says about one rank. Shares are of the record's typical step.
struct RankPace {
  Rank rank;
  PaceSource source = PaceSource::traces;
  uint32_t peers = 0;
  size_t rounds = 0, last = 0, steps = 0, late_steps = 0;
  double share = 0, mean_ns = 0, worst_ns = 0;  // over all steps; share: of the mean step
  double mean = 0, median = 0;                  // mean without the extremes
  double error = 0;                             // standard error of the mean, with what this kind of record cannot see
  double freedom = 1;
  double least_third = 0;  // the median of that third of a long record in which it is least; of a short one the median
  // Of a pipeline: what its peers wait for it in the operations that they share, as mean and error; NaN elsewhere.
  double shared = std::numeric_limits<double>::quiet_NaN(), shared_error = 0;
  bool counted_again = false;  // Pace's
  Stalls stalls;
};

struct PaceSummary {
  PaceSource source = PaceSource::traces;
  double step_ns = 0;  // typical
  size_t steps = 0, operations = 0;
  std::vector<RankPace> ranks;
};

// Where hosts run ahead of their GPU and wait for it now and then, the median distance of two steps is too short.
struct TypicalStep {
  double ns = 0;
  bool runs_ahead = false;
};
TypicalStep FindTypicalStep(const std::vector<double>& step_ns);

PaceSummary SummarisePace(const Pace& pace);

// Of the steps of which both are known, the share in which the first was later than the second; NaN without any. In a
// pipeline: in which the second waited for it.
double ShareOfStepsLater(const Pace& pace, Rank first, Rank second);

}  // namespace tacet
