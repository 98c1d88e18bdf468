// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/memory_use.h"

#include <algorithm>

namespace tacet {
namespace {

// The driver, cuBLAS workspaces and NCCL buffers need the rest.
constexpr double kPressure = 0.92;

}  // namespace

std::optional<MemoryUse> MeasureMemory(const Timeline& timeline) {
  if (timeline.memory.empty() && timeline.out_of_memory_ns == kNoTime) return std::nullopt;
  MemoryUse out;
  out.out_of_memory = timeline.out_of_memory_ns != kNoTime;
  out.lowest_allocated_bytes = timeline.memory.empty() ? 0 : INT64_MAX;
  int64_t reserved_at_peak = 0;
  for (const MemorySample& sample : timeline.memory) {
    out.peak_reserved_bytes = std::max(out.peak_reserved_bytes, sample.reserved);
    out.lowest_allocated_bytes = std::min(out.lowest_allocated_bytes, sample.allocated);
    if (sample.allocated <= out.peak_allocated_bytes) continue;
    out.peak_allocated_bytes = sample.allocated;
    out.peak_allocated_ns = sample.ns;
    reserved_at_peak = sample.reserved;
  }
  if (reserved_at_peak > 0)
    out.fragmentation =
        std::max(0.0, 1 - static_cast<double>(out.peak_allocated_bytes) / static_cast<double>(reserved_at_peak));
  for (const TrainingStep& step : timeline.steps)
    if (out.peak_allocated_ns >= step.start_ns && out.peak_allocated_ns < step.end_ns) out.peak_step = step.number;
  const DeviceProperties* device = timeline.gpu.empty() ? nullptr : timeline.PropertiesOf(timeline.MainDevice());
  if (device) out.device_bytes = device->memory_bytes;
  const double full = static_cast<double>(out.device_bytes) * kPressure;
  out.pressure = out.out_of_memory || (out.device_bytes > 0 && static_cast<double>(out.peak_reserved_bytes) > full);
  return out;
}

}  // namespace tacet
