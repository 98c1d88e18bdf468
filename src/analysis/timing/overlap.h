// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/timing/time_budget.h"

namespace tacet {

// How much of the communication was hidden under compute: |communication and compute| / |communication|, both merged
// over all streams (the definition of HTA's get_comm_comp_overlap). The exposed rest is what a step waits for.
struct Overlap {
  int64_t communication_ns = 0, compute_ns = 0, overlapped_ns = 0;
  double ratio() const {
    return communication_ns == 0 ? 0 : static_cast<double>(overlapped_ns) / static_cast<double>(communication_ns);
  }
  // Time in which either runs.
  int64_t actual_ns() const { return communication_ns + compute_ns - overlapped_ns; }
  // 1 - (actual - max(compute, comm)) / min(compute, comm): 1 when the shorter of the two is hidden whole, 0 when they
  // run one after the other. Idle time is no part of it: it says nothing about overlap, and where a step has more of it
  // than the shorter of the two lasts, the figure would be negative. 0 where one of them never runs.
  double efficiency() const;
};

// The same figures of a budget, whose parts are merged in this way already.
Overlap OverlapOf(const TimeBudget& budget);

Overlap MeasureOverlap(const GpuActivity& activity, Interval window);
Overlap MeasureOverlap(const Timeline& timeline);  // over the whole trace, first to last GPU event

}  // namespace tacet
