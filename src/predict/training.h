// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/operation.h"
#include "predict/hardware.h"

namespace tacet {

// A decoder-only transformer; with `experts` a mixture, of which `active_experts` see each token.
struct TrainingModel {
  double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0, sequence = 0;
  double experts = 0, active_experts = 0;
  bool gated = true;      // three matrices in the feed-forward part (SwiGLU), else two
  double parameters = 0;  // where only their number is known
};
struct ParameterCount {
  double attention = 0, feed_forward = 0, embedding = 0;  // feed_forward of all experts
  double active = 0;                                      // that one token uses
  double total() const { return attention + feed_forward + embedding; }
};
ParameterCount CountParameters(const TrainingModel& model);

enum class Recompute { none, selective, full };

// How the job is cut. GPUs: data x tensor x pipeline x context; experts live inside the data dimension.
struct TrainingLayout {
  int data = 1, tensor = 1, pipeline = 1, context = 1, expert = 1;
  int zero = 0;            // 0 to 3
  double micro_batch = 1;  // sequences
  int micro_batches = 1;   // per step and data-parallel replica
  int interleave = 1;      // model chunks per pipeline stage
  bool sequence_parallel = true;
  Recompute recompute = Recompute::none;
  double recomputed_layers = -1;  // of each stage, where only some are recomputed in full
  double parameter_bytes = 2, gradient_bytes = 2, optimizer_bytes = 12;
  int gpus() const { return data * tensor * pipeline * context; }
};

// Bytes on one GPU of the first pipeline stage, which holds most.
struct TrainingMemory {
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  double total() const { return parameters + gradients + optimizer + activations; }
};
TrainingMemory EstimateMemory(const TrainingModel& model, const TrainingLayout& layout);

// One kind of communication in one step, as one GPU sees it.
struct StepTraffic {
  std::string what;  // "ZeRO-3 gather"
  OpKind op = OpKind::unknown;
  int ranks = 1;  // of the group
  int ranks_per_node = 1;
  double bytes = 0;       // of one operation's buffer
  double times = 0;       // per step
  double sent_bytes = 0;  // by one GPU, per step
  double time_ms = 0;     // all of them, one after the other; 0 where no hardware is given
  std::string formula;
};
std::vector<StepTraffic> EstimateTraffic(const TrainingModel& model, const TrainingLayout& layout, int gpus_per_node);
// Fills in the times: by NCCL's model where it has one, by bandwidth where it has not.
void TimeTraffic(const NcclRelease& release, const ClusterHardware& hardware, std::vector<StepTraffic>& traffic);

// FLOPs of one token, forward and backward: 6 per active parameter and 12 L h s of attention (PaLM).
double ModelFlopsOfToken(const TrainingModel& model);
// With what is recomputed: one more forward pass of the recomputed share.
double HardwareFlopsOfToken(const TrainingModel& model, const TrainingLayout& layout);

struct StepEstimate {
  double tokens = 0;                           // of the whole job
  double model_flops = 0, hardware_flops = 0;  // of the whole job
  double compute_ms = 0;                       // at the GPUs' peak
  double bubble = 0;                           // share of the pipeline's time, (p-1)/(v m + p-1)
  double communication_ms = 0;                 // all of it, one after the other
  double ideal_ms = 0;                         // compute at peak and bubble, all communication hidden
  // With a measured step time:
  double step_ms = 0;
  double mfu = 0, hfu = 0;
  double gpu_hours_lost_per_day = 0;  // (1 - MFU) of all GPUs
};
StepEstimate EstimateStep(const TrainingModel& model, const TrainingLayout& layout,
                          const std::vector<StepTraffic>& traffic, double peak_tflops, double step_ms);

// 1 - (step - max(compute, communication)) / min(compute, communication): 1 where all is hidden, 0 where nothing is.
double OverlapEfficiency(double compute_ms, double communication_ms, double step_ms);

}  // namespace tacet
