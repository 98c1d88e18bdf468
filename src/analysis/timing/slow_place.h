// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/timeline.h"

namespace tacet {

// Where in its step a host takes longer than the others do. All ranks issue the same work in the same order, so the
// time between one launch and the next can be compared, launch by launch. A host that is slower as a whole (its clock,
// the profiler, another process beside it) loses a little everywhere; one that sleeps, waits for data, writes a file or
// collects garbage loses all in one place.
struct SlowPlace {
  double late_ns = 0;               // behind the median of the others in this place, in a typical step
  double share = 0;                 // of all that the host loses in places where it is slower, 0..1
  size_t steps = 0;                 // that were compared
  size_t launch = 0, launches = 0;  // the place is before this launch of the step; how many a step has
  std::string before;               // name of the kernel or copy that is launched next; empty at the end of a step

  // Is this where a rank came to be so late? Then it is the program's own, and not how fast the host is as a whole.
  bool HoldsMostOf(double lateness_ns) const;

  std::string Words() const;  // "before launch 2 of 83 (Memcpy HtoD)", "at the end of the step"
};

// The place in which the host of `rank` loses most. Time that hosts spend waiting for their GPU does not count. Without
// steps, or where ranks issue different numbers of launches, nothing is compared and `steps` is 0.
SlowPlace FindSlowPlace(std::span<const Timeline> timelines, Rank rank);

}  // namespace tacet
