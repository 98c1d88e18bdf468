// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// Most of the time of the steps goes by before their data is there.
struct DataWait {
  const LogOutline* outline = nullptr;
  double share = 0;                       // of the time that the lines tell, without the first of the run
  size_t lines = 0;                       // that tell both
  bool each_epoch = false;                // the first batch of each epoch has it, and no other
  double usual = 0;                       // seconds of a batch that has its data: the median of the others
  std::vector<const StepShare*> longest;  // who has it, in file order: all first batches, or those far above the median
  double longest_share = 0;               // of all time that is told, what these wait for their data
};
std::optional<DataWait> FindDataWait(const Incident& incident);

// The first batch of each epoch takes many times as long as the others; what of it is data is not told.
struct SlowFirstBatches {
  std::vector<const StepShare*> first, later;
};
std::optional<SlowFirstBatches> FindSlowFirstBatches(const Incident& incident);

// Every figure of utilization that a text tells is very low.
struct LowUtilization {
  const Utilization *lowest = nullptr, *highest = nullptr;
  size_t lines = 0;
};
std::optional<LowUtilization> FindLowUtilization(const Incident& incident);

// The same operation over fewer members is many times as fast.
struct SlowSpan {
  const GroupRate *wide = nullptr, *narrow = nullptr;
};
std::optional<SlowSpan> FindSlowSpan(const Incident& incident);

// Two pairs that share a member and differ in rate.
struct UnequalPairs {
  const PairRate *slow = nullptr, *fast = nullptr;
  std::string shared, suspect, other;  // `suspect` is in the slow pair alone, `other` in the fast one
};
std::optional<UnequalPairs> FindUnequalPairs(const Incident& incident);

}  // namespace tacet
