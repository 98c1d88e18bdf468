// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/timing/pace.h"

namespace tacet {

// Steps in which one rank alone was late by far more than the noise of the record.
struct Stalls {
  size_t count = 0;
  double smallest = 0;  // as a share of the typical step
  double mean_ns = 0;   // of one
  double cost = 0;      // what they add to the time of all steps, as a share: later than everybody else in those steps
  double chance = 1;    // that a rank of a healthy job has so many, over all ranks of this job
  double z = 0;         // of the typical one, in deviations of the noise
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
  Stalls stalls;
};

struct PaceSummary {
  PaceSource source = PaceSource::traces;
  double step_ns = 0;  // typical
  size_t steps = 0, operations = 0;
  std::vector<RankPace> ranks;
};

PaceSummary SummarisePace(const Pace& pace);

// Of the steps of which both are known, the share in which the first was later than the second; NaN without any.
double ShareOfStepsLater(const Pace& pace, Rank first, Rank second);

}  // namespace tacet
