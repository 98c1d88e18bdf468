// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/memory_use.h"

#include <algorithm>

#include "analysis/timing/gradient_order.h"

namespace tacet {
namespace {

// The driver, cuBLAS workspaces and NCCL buffers need the rest.
constexpr double kPressure = 0.92;

int64_t ParameterBytes(const Timeline& timeline, const TrainingStep& step) {
  int64_t sum = 0;
  for (const GradientReady& gradient : GradientsOfStep(timeline, step)) {
    int64_t bytes = 0;
    const int64_t size = gradient.type == DataType::unknown ? 4 : BytesOf(gradient.type);
    if (__builtin_mul_overflow(gradient.elements, size, &bytes) || __builtin_add_overflow(sum, bytes, &sum)) return 0;
  }
  return sum;
}

void LocatePeak(const Timeline& timeline, int32_t shards, MemoryUse& out) {
  for (const TrainingStep& step : timeline.steps) {
    if (out.peak_allocated_ns < step.start_ns || out.peak_allocated_ns >= step.end_ns) continue;
    out.peak_step = step.number;
    const std::vector<GradientReady> gradients = GradientsOfStep(timeline, step);
    if (gradients.empty()) return;
    out.peak_phase = out.peak_allocated_ns < gradients.front().ns   ? StepPhase::forward
                     : out.peak_allocated_ns <= gradients.back().ns ? StepPhase::backward
                                                                    : StepPhase::optimizer;
    const int64_t parameters = ParameterBytes(timeline, step) / std::max(1, shards);
    // More parameters than what stays: the step began in the middle of the recording's life, or they are offloaded.
    if (parameters <= 0 || parameters > out.lowest_allocated_bytes) return;
    const int64_t passing = out.peak_allocated_bytes - out.lowest_allocated_bytes;
    out.split = {parameters, out.lowest_allocated_bytes - parameters, passing, std::min(parameters, passing)};
  }
}

}  // namespace

std::string_view Name(StepPhase phase) {
  switch (phase) {
    case StepPhase::unknown: return "unknown";
    case StepPhase::forward: return "forward pass";
    case StepPhase::backward: return "backward pass";
    case StepPhase::optimizer: return "after the backward pass";
  }
  return "unknown";
}

std::optional<MemoryUse> MeasureMemory(const Timeline& timeline, int32_t shards) {
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
  LocatePeak(timeline, shards, out);
  const DeviceProperties* device = timeline.gpu.empty() ? nullptr : timeline.PropertiesOf(timeline.MainDevice());
  if (device) out.device_bytes = device->memory_bytes;
  const double full = static_cast<double>(out.device_bytes) * kPressure;
  out.pressure = out.out_of_memory || (out.device_bytes > 0 && static_cast<double>(out.peak_reserved_bytes) > full);
  return out;
}

}  // namespace tacet
