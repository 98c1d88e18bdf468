// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/mfu.h"

#include <algorithm>
#include <string>

#include "analysis/timing/gpu_activity.h"

namespace tacet {
namespace {

struct PeakEntry {
  std::string_view pattern;  // all parts, separated by '+', must be in the name
  DevicePeak peak;
};

// The first match wins: a GB200 is no B200, an H100 PCIe no H100 SXM.
constexpr PeakEntry kPeaks[] = {
    {"GB300", {"GB300", 2500, 900, 100}},
    {"GB200", {"GB200", 2500, 900, 50}},
    {"B300", {"B300", 2250, 900, 100}},
    {"B200", {"B200", 2250, 900, 50}},
    {"H200", {"H200", 989, 450, 50}},
    {"GH200", {"GH200", 989, 450, 50}},
    {"H100+PCIE", {"H100 PCIe", 756, 0, 0}},
    {"H100+NVL", {"H100 NVL", 835, 300, 50}},
    {"H800", {"H800", 989, 200, 50}},
    {"H100", {"H100 SXM", 989, 450, 50}},
    {"A100", {"A100", 312, 300, 25}},
    {"A800", {"A800", 312, 200, 25}},
    {"V100+SXM", {"V100 SXM2", 125, 150, 12.5}},
    {"V100", {"V100 PCIe", 112, 0, 12.5}},
    {"MI250X", {"MI250X (one of two dies)", 191.5, 175, 25}},
    {"MI300X", {"MI300X", 1307, 448, 50}},
    {"MI325X", {"MI325X", 1307, 448, 50}},
    {"MI355X", {"MI355X", 2500, 538, 50}},
};

bool Matches(const std::string& name, std::string_view pattern) {
  while (!pattern.empty()) {
    const size_t plus = pattern.find('+');
    if (name.find(pattern.substr(0, plus)) == std::string::npos) return false;
    if (plus == std::string_view::npos) return true;
    pattern.remove_prefix(plus + 1);
  }
  return true;
}

double ParametersOf(const TransformerShape& shape) {
  return shape.parameters > 0 ? shape.parameters : ParametersOfShape(shape);
}

double AttentionOf(const TransformerShape& shape) {
  return shape.layers * shape.heads * shape.head_dim * shape.sequence;
}

}  // namespace

std::optional<DevicePeak> FindDevicePeak(std::string_view device_name) {
  std::string name(device_name);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : static_cast<char>(c);
  });
  for (const PeakEntry& entry : kPeaks)
    if (Matches(name, entry.pattern)) return entry.peak;
  return std::nullopt;
}

double ParametersOfShape(const TransformerShape& shape) {
  return 12 * shape.layers * shape.hidden * shape.hidden + shape.vocabulary * shape.hidden;
}

double ModelFlopsPerToken(const TransformerShape& shape) { return 6 * ParametersOf(shape) + 12 * AttentionOf(shape); }

double HardwareFlopsPerToken(const TransformerShape& shape, bool full_recompute) {
  return full_recompute ? 8 * ParametersOf(shape) + 16 * AttentionOf(shape) : ModelFlopsPerToken(shape);
}

double MegatronFlopsPerIteration(const TransformerShape& shape, double batch, bool full_recompute) {
  const double base = batch * shape.sequence * shape.layers * shape.hidden * shape.hidden;
  if (base <= 0) return 0;
  const double attention = shape.sequence / (6 * shape.hidden),
               logits = shape.vocabulary / (shape.layers * shape.hidden);
  return full_recompute ? 96 * base * (1 + attention + logits / 16) : 72 * base * (1 + attention + logits / 12);
}

Utilisation MeasureUtilisation(double flops_per_device_and_step, double step_seconds, double peak_tflops) {
  return {flops_per_device_and_step, step_seconds, peak_tflops};
}

std::optional<Utilisation> MeasureUtilisation(const Timeline& timeline) {
  const DeviceProperties* device = timeline.gpu.empty() ? nullptr : timeline.PropertiesOf(timeline.MainDevice());
  const auto peak = device ? FindDevicePeak(device->name) : std::nullopt;
  if (!peak || timeline.matrix_work.empty()) return std::nullopt;
  Utilisation out;
  out.peak_tflops = peak->bf16_tflops;
  const auto steps = StepsOf(timeline);
  for (const TrainingStep& step : steps) {
    out.seconds += static_cast<double>(step.end_ns - step.start_ns) / 1e9;
    for (const MatrixWork& work : timeline.matrix_work)
      if (work.start_ns >= step.start_ns && work.start_ns < step.end_ns) out.flops += work.flops;
  }
  out.seconds /= static_cast<double>(steps.size());
  out.flops /= static_cast<double>(steps.size());
  return out;
}

}  // namespace tacet
