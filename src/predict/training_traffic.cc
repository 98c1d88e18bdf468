// SPDX-License-Identifier: Apache-2.0
// What one training step sends, and how long that takes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "predict/nccl_choice.h"
#include "predict/training.h"

namespace tacet {
namespace {

// Tensor parallelism sits innermost on a node, then context, then data, then pipeline stages.
int RanksPerNode(int ranks, int stride, int gpus_per_node) {
  return std::clamp(gpus_per_node / std::max(1, stride), 1, std::max(1, ranks));
}

void Add(std::vector<StepTraffic>& all, std::string what, OpKind op, int ranks, int stride, int gpus_per_node,
         double bytes, double times, std::string formula) {
  if (ranks <= 1 || bytes <= 0 || times <= 0) return;
  StepTraffic one;
  one.what = std::move(what);
  one.op = op;
  one.ranks = ranks;
  one.ranks_per_node = RanksPerNode(ranks, stride, gpus_per_node);
  one.bytes = bytes;
  one.times = times;
  const double passes = op == OpKind::send ? 1 : BusFactor(op, ranks);
  one.sent_bytes = passes * bytes * times;
  one.formula = std::move(formula);
  all.push_back(std::move(one));
}

void AddData(const TrainingModel& m, const TrainingLayout& l, int gpus_per_node, std::vector<StepTraffic>& all) {
  const ParameterCount count = CountParameters(m);
  const double shared = (m.experts > 0 ? count.attention + count.embedding : count.total()) / l.tensor / l.pipeline;
  const double sparse = m.experts > 0 ? count.feed_forward / l.tensor / l.pipeline / std::max(1, l.expert) : 0;
  const int stride = l.tensor * l.context;
  const auto add = [&](double parameters, int ranks, int step, const std::string& whose) {
    const double weights = parameters * l.parameter_bytes, gradients = parameters * l.gradient_bytes;
    if (l.zero == 0) {
      Add(all, "data parallel: gradients" + whose, OpKind::all_reduce, ranks, step, gpus_per_node, gradients, 1,
          "all-reduce of 2 bytes per parameter, once per step");
      return;
    }
    Add(all, "ZeRO: gradients" + whose, OpKind::reduce_scatter, ranks, step, gpus_per_node, gradients,
        l.zero >= 2 ? l.micro_batches : 1, "reduce-scatter of 2 bytes per parameter; per microbatch from stage 2 on");
    if (l.zero < 3) {
      Add(all, "ZeRO: parameters" + whose, OpKind::all_gather, ranks, step, gpus_per_node, weights, 1,
          "all-gather of 2 bytes per parameter, once per step");
    } else {
      Add(all, "ZeRO-3: parameters" + whose, OpKind::all_gather, ranks, step, gpus_per_node, weights,
          2.0 * l.micro_batches, "all-gather of 2 bytes per parameter, forward and backward of each microbatch");
    }
  };
  add(shared, l.data * l.context, l.tensor, "");
  if (sparse > 0)
    add(sparse, std::max(1, l.data / std::max(1, l.expert)), stride * std::max(1, l.expert), " of experts");
}

}  // namespace

std::vector<StepTraffic> EstimateTraffic(const TrainingModel& m, const TrainingLayout& l, int gpus_per_node) {
  std::vector<StepTraffic> all;
  const double tokens = m.sequence / std::max(1, l.context) * l.micro_batch;
  const double activation = tokens * m.hidden * 2;
  const double layers = m.layers / std::max(1, l.pipeline);
  const double passes = l.recompute == Recompute::full ? 6 : 4;
  AddData(m, l, gpus_per_node, all);
  if (l.sequence_parallel) {
    for (const auto& [name, op] :
         {std::pair("gather", OpKind::all_gather), std::pair("scatter", OpKind::reduce_scatter)})
      Add(all, std::string("tensor parallel: ") + name, op, l.tensor, 1, gpus_per_node, activation,
          passes * layers * l.micro_batches, "s b h 2 bytes, 4 per layer and microbatch (6 with full recomputation)");
  } else {
    Add(all, "tensor parallel", OpKind::all_reduce, l.tensor, 1, gpus_per_node, activation,
        passes * layers * l.micro_batches, "s b h 2 bytes, 4 per layer and microbatch (6 with full recomputation)");
  }
  Add(all, "context parallel: keys and values", OpKind::send, l.context, l.tensor, gpus_per_node,
      2 * activation * (m.kv_heads > 0 && m.heads > 0 ? m.kv_heads / m.heads : 1) / l.tensor,
      3.0 * (l.context - 1) * layers * l.micro_batches, "ring of 2 s b h 2 bytes / t, forward once and backward twice");
  const int stage_stride = l.tensor * l.context * l.data;
  Add(all, "pipeline: activations and gradients", OpKind::send, l.pipeline, stage_stride, gpus_per_node,
      activation / (l.sequence_parallel ? l.tensor : 1), 2.0 * l.micro_batches * l.interleave,
      "s b h 2 bytes, forward and backward of each microbatch and chunk");
  if (m.experts > 0)
    Add(all, "experts: dispatch and combine", OpKind::all_to_all, l.expert, l.tensor * l.context, gpus_per_node,
        activation * std::max(1.0, m.active_experts) / l.tensor, 4 * layers * l.micro_batches,
        "s b h k 2 bytes, 4 per layer and microbatch");
  return all;
}

void TimeTraffic(const NcclRelease& release, const ClusterHardware& hardware, std::vector<StepTraffic>& traffic) {
  for (StepTraffic& one : traffic) {
    ClusterHardware group = hardware;
    group.gpus_per_node = std::max(1, std::min(one.ranks_per_node, hardware.gpus_per_node));
    group.nodes = std::max(1, (one.ranks + group.gpus_per_node - 1) / group.gpus_per_node);
    // A group that has part of a node's GPUs has that part of its NICs.
    const double nics = static_cast<double>(hardware.nics_per_node) * group.gpus_per_node / hardware.gpus_per_node;
    group.nics_per_node = std::max(1, static_cast<int>(nics));
    const double slow_nic = nics < 1 && nics > 0 ? nics : 1;
    group.nic_gbit = hardware.nic_gbit * slow_nic;
    std::vector<std::string> unused;
    const NcclCommunicator c = SearchGraphs(release, group, &unused);
    if (NcclTunedIndex(one.op) >= 0 && HasCostModel(release)) {
      const NcclDecision decision = DecideNccl(c, ComputeNcclCosts(c), {one.op, static_cast<int64_t>(one.bytes)});
      if (decision.best()) one.time_ms = decision.best()->time_us * one.times / 1e3;
      continue;
    }
    const double link = c.nodes > 1 ? c.ring.bw_inter : c.ring.bw_intra;
    const double bandwidth = std::max(1e-3, link * std::max(1, c.ring.channels));
    const double factor = one.op == OpKind::all_to_all ? BusFactor(one.op, one.ranks) : 1;
    one.time_ms = one.bytes * factor / (bandwidth * 1000) * one.times / 1e3;
  }
}

}  // namespace tacet
