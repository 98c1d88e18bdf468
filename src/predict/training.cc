// SPDX-License-Identifier: Apache-2.0
#include "predict/training.h"

#include <algorithm>
#include <cmath>

namespace tacet {

ParameterCount CountParameters(const TrainingModel& m) {
  ParameterCount count;
  const double head = m.head_dim > 0 ? m.head_dim : m.heads > 0 ? m.hidden / m.heads : 0;
  const double query = m.heads > 0 ? m.heads * head : m.hidden;
  const double kv = m.kv_heads > 0 ? m.kv_heads * head : query;
  const double ffn = m.ffn > 0 ? m.ffn : 4 * m.hidden;
  const double expert = (m.gated ? 3 : 2) * m.hidden * ffn;
  count.attention = m.layers * (2 * m.hidden * query + 2 * m.hidden * kv);
  count.feed_forward = m.layers * expert * std::max(1.0, m.experts);
  count.embedding = 2 * m.vocabulary * m.hidden;
  const double used = m.experts > 0 ? std::max(1.0, m.active_experts) : 1;
  count.active = count.attention + m.layers * expert * used + count.embedding;
  if (count.total() > 0) return count;
  count.feed_forward = count.active = m.parameters;
  return count;
}

TrainingMemory EstimateMemory(const TrainingModel& m, const TrainingLayout& l) {
  const ParameterCount count = CountParameters(m);
  const double tensor = l.tensor, pipeline = l.pipeline, data = l.data;
  // Experts are spread over the data dimension; what is left of it holds copies.
  const double expert = m.experts > 0 ? std::max(1, l.expert) : 1;
  const double dense = (count.attention + (m.experts > 0 ? 0 : count.feed_forward)) / pipeline +
                       (m.layers > 0 ? count.embedding / (pipeline > 1 ? 2 : 1) : 0);
  const double sparse = m.experts > 0 ? count.feed_forward / pipeline / expert : 0;
  const auto shard = [&](int stage) {
    const double divide = l.zero >= stage ? data : 1,
                 divide_sparse = l.zero >= stage ? std::max(1.0, data / expert) : 1;
    return dense / tensor / divide + sparse / tensor / divide_sparse;
  };
  TrainingMemory memory;
  memory.parameters = shard(3) * l.parameter_bytes;
  memory.gradients = shard(2) * l.gradient_bytes;
  memory.optimizer = shard(1) * l.optimizer_bytes;
  // Korthikanti 2022, bytes of one layer and microbatch at 16 bits: s b h (10 + 24/t + 5 a s / h t), all of it divided
  // by t with sequence parallelism; selective recomputation drops the attention term, full leaves the input.
  const double sbh = m.sequence / std::max(1, l.context) * l.micro_batch * m.hidden;
  const double scores = m.hidden > 0 ? 5 * m.heads * m.sequence / m.hidden : 0;
  const double fixed = l.sequence_parallel ? 10 / tensor : 10;
  const double kept = sbh * (fixed + 24 / tensor + (l.recompute == Recompute::none ? scores / tensor : 0));
  const double input = sbh * 2 / (l.sequence_parallel ? tensor : 1);
  const double layers = m.layers / pipeline;
  const double full =
      l.recompute == Recompute::full ? (l.recomputed_layers >= 0 ? std::min(l.recomputed_layers, layers) : layers) : 0;
  const double stage = full * input + (layers - full) * kept;
  const double in_flight = std::min<double>(l.micro_batches, l.pipeline) *
                           (l.interleave > 1 ? 1 + (pipeline - 1) / (pipeline * l.interleave) : 1);
  memory.activations = stage * in_flight;
  return memory;
}

double ModelFlopsOfToken(const TrainingModel& m) {
  const ParameterCount count = CountParameters(m);
  // The lookup of the input embedding multiplies nothing.
  const double matrices = count.active - m.vocabulary * m.hidden;
  return 6 * matrices + 12 * m.layers * m.hidden * m.sequence;
}

double HardwareFlopsOfToken(const TrainingModel& m, const TrainingLayout& l) {
  const double model = ModelFlopsOfToken(m), attention = 12 * m.layers * m.hidden * m.sequence;
  if (l.recompute == Recompute::none) return model;
  if (l.recompute == Recompute::selective) return model + attention / 3;  // the scores once more
  const double layers = m.layers / std::max(1, l.pipeline);
  const double share = l.recomputed_layers >= 0 && layers > 0 ? std::min(1.0, l.recomputed_layers / layers) : 1;
  return model + share * model / 3;
}

StepEstimate EstimateStep(const TrainingModel& m, const TrainingLayout& l, const std::vector<StepTraffic>& traffic,
                          double peak_tflops, double step_ms) {
  StepEstimate step;
  step.tokens = m.sequence * l.micro_batch * l.micro_batches * l.data;
  step.model_flops = ModelFlopsOfToken(m) * step.tokens;
  step.hardware_flops = HardwareFlopsOfToken(m, l) * step.tokens;
  const double peak = peak_tflops * 1e12 * l.gpus();
  if (peak > 0) step.compute_ms = step.hardware_flops / peak * 1e3;
  const double stages = l.pipeline,
               chunks = std::max(1, l.interleave) * static_cast<double>(std::max(1, l.micro_batches));
  step.bubble = (stages - 1) / (chunks + stages - 1);
  for (const StepTraffic& one : traffic) step.communication_ms += one.time_ms;
  step.ideal_ms = std::max(step.compute_ms / (1 - step.bubble), step.communication_ms);
  step.step_ms = step_ms;
  if (step_ms > 0 && peak > 0) {
    step.mfu = step.model_flops / (step_ms * 1e-3) / peak;
    step.hfu = step.hardware_flops / (step_ms * 1e-3) / peak;
    step.gpu_hours_lost_per_day = std::max(0.0, 1 - step.mfu) * 24 * l.gpus();
  }
  return step;
}

double OverlapEfficiency(double compute_ms, double communication_ms, double step_ms) {
  const double least = std::max(compute_ms, communication_ms), hidden = std::min(compute_ms, communication_ms);
  return hidden <= 0 ? 1 : 1 - (step_ms - least) / hidden;
}

}  // namespace tacet
