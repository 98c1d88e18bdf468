// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/gpu_activity.h"

#include <algorithm>

namespace tacet {

GpuActivity MeasureActivity(const Timeline& timeline) {
  const int32_t device = timeline.MainDevice();
  std::vector<Interval> compute, communication, copies;
  compute.reserve(static_cast<size_t>(std::count_if(
      timeline.gpu.begin(), timeline.gpu.end(), [](const GpuEvent& event) { return event.work == GpuWork::compute; })));
  for (const GpuEvent& event : timeline.gpu) {
    if (timeline.DeviceOf(event) != device) continue;
    std::vector<Interval>& kind = event.work == GpuWork::compute         ? compute
                                  : event.work == GpuWork::communication ? communication
                                                                         : copies;
    kind.push_back({event.start_ns, event.end_ns});
  }
  GpuActivity activity;
  activity.compute = MergeIntervals(std::move(compute));
  activity.communication = MergeIntervals(std::move(communication));
  activity.copies = MergeIntervals(std::move(copies));
  activity.busy = Unite(Unite(activity.compute, activity.communication), activity.copies);
  return activity;
}

GpuActivity Clip(const GpuActivity& activity, Interval window) {
  return {Clip(activity.compute, window), Clip(activity.communication, window), Clip(activity.copies, window),
          Clip(activity.busy, window)};
}

std::vector<TrainingStep> StepsOf(const Timeline& timeline) {
  if (!timeline.steps.empty()) return timeline.steps;
  if (timeline.gpu.empty()) return {};
  TrainingStep whole{-1, timeline.gpu.front().start_ns, timeline.gpu.front().end_ns};
  for (const GpuEvent& event : timeline.gpu) whole.end_ns = std::max(whole.end_ns, event.end_ns);
  return {whole};
}

}  // namespace tacet
