// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/timeline.h"

namespace tacet {

// What a device can do at best. Dense figures; "with sparsity" in data sheets is twice that.
struct DevicePeak {
  std::string_view name;
  double bf16_tflops = 0;  // fp16 where there is no bf16
  double link_gbs = 0;     // NVLink or xGMI, one direction, all links of one device; 0 where there is none
  double nic_gbs = 0;      // the usual network card of one device; 0 where none is usual
};

// By the name that the driver gives: "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", "AMD Instinct MI300X".
std::optional<DevicePeak> FindDevicePeak(std::string_view device_name);

// A decoder-only transformer.
struct TransformerShape {
  double parameters = 0;  // N; of a mixture of experts the active ones. 0: from the shape
  double layers = 0, heads = 0, head_dim = 0, hidden = 0, vocabulary = 0, sequence = 0;
};

// Model FLOPs of one token, PaLM: 6 N + 12 L H Q T. Hardware FLOPs with all activations recomputed: 8 N + 16 L H Q T.
double ModelFlopsPerToken(const TransformerShape& shape);
double HardwareFlopsPerToken(const TransformerShape& shape, bool full_recompute);
// Megatron (Narayanan 2021), one iteration of batch B: 72 B s l h^2 (1 + s/6h + V/12lh), with full recompute
// 96 B s l h^2 (1 + s/6h + V/16lh).
double MegatronFlopsPerIteration(const TransformerShape& shape, double batch, bool full_recompute);
// 12 l h^2 + V h, biases and norms left out: for when N is not given.
double ParametersOfShape(const TransformerShape& shape);

struct Utilisation {
  double flops = 0;    // per device and step
  double seconds = 0;  // of the step
  double peak_tflops = 0;
  double share() const { return seconds > 0 && peak_tflops > 0 ? flops / seconds / (peak_tflops * 1e12) : 0; }
};

// MFU = FLOPs of the model per second / peak; HFU counts what the hardware really did.
Utilisation MeasureUtilisation(double flops_per_device_and_step, double step_seconds, double peak_tflops);

// Hardware FLOPs from the matrix shapes in a trace, per step (mean over steps): recomputation is in them, so this gives
// HFU, and MFU where nothing is recomputed. Empty when the trace has no shapes or the device is not known.
std::optional<Utilisation> MeasureUtilisation(const Timeline& timeline);

}  // namespace tacet
