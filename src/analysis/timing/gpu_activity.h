// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/timing/interval.h"
#include "model/timeline.h"

namespace tacet {

// When the main device of a timeline did what, all streams merged. Compute is every kernel that is no communication;
// copies are copies and memsets.
struct GpuActivity {
  IntervalSet compute, communication, copies, busy;
};

GpuActivity MeasureActivity(const Timeline& timeline);
GpuActivity Clip(const GpuActivity& activity, Interval window);

// The steps as the profiler marks them; without marks one window from the first to the last GPU event (number -1).
std::vector<TrainingStep> StepsOf(const Timeline& timeline);

}  // namespace tacet
