// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/timing/gpu_activity.h"

namespace tacet {

// Where the time of one window went, in ns. Every moment of the window is counted once:
//   compute_only   a compute kernel runs, no communication
//   hidden         compute and communication run together
//   exposed        communication runs, no compute
//   copies         only copies and memsets run
//   idle, nothing runs on the device. The gap is laid to the next GPU event, and split at the start of the host call
//   that launched it:
//     data_wait      before that call, while the host was inside a data loader
//     host_wait      before that call, else: the host had not yet asked for more work
//     launch         from that call on: launch latency, and waits between streams
struct TimeBudget {
  int64_t compute_only_ns = 0, hidden_ns = 0, exposed_ns = 0, copies_ns = 0;
  int64_t host_wait_ns = 0, launch_ns = 0, data_wait_ns = 0;

  int64_t compute_ns() const { return compute_only_ns + hidden_ns; }
  int64_t communication_ns() const { return hidden_ns + exposed_ns; }
  int64_t idle_ns() const { return host_wait_ns + launch_ns + data_wait_ns; }
  int64_t total_ns() const { return compute_only_ns + hidden_ns + exposed_ns + copies_ns + idle_ns(); }
  TimeBudget& operator+=(const TimeBudget& other);
};

struct StepBudget {
  TrainingStep step;
  TimeBudget budget;  // total_ns() is the step's length, exactly
};

struct RankBudget {
  Rank rank;
  std::vector<StepBudget> steps;
  TimeBudget total;
};

// Measures any window of one timeline, which must outlive it.
class BudgetMeter {
 public:
  explicit BudgetMeter(const Timeline& timeline);
  TimeBudget Measure(Interval window) const;
  const GpuActivity& activity() const { return activity_; }

 private:
  void AddIdle(const IntervalSet& gaps, TimeBudget& budget) const;
  int64_t LaunchBefore(int64_t ns) const;

  const Timeline& timeline_;
  int32_t device_;
  GpuActivity activity_;
  IntervalSet loading_;
};

// Per step of one rank. A step is the host's window; work that the GPU does after it counts for the step it runs in.
RankBudget MeasureTimeBudget(const Timeline& timeline);

}  // namespace tacet
