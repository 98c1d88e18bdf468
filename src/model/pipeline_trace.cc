// SPDX-License-Identifier: Apache-2.0
#include "model/pipeline_trace.h"

#include <array>

namespace tacet {
namespace {

constexpr std::array<std::string_view, 15> kNames = {"other",
                                                     "forward-compute",
                                                     "backward-compute",
                                                     "forward-send",
                                                     "forward-recv",
                                                     "backward-send",
                                                     "backward-recv",
                                                     "params-all-gather",
                                                     "grads-reduce-scatter",
                                                     "separate-grads-all-reduce",
                                                     "layernorm-grads-all-reduce",
                                                     "embedding-grads-all-reduce",
                                                     "optimizer-clip-main-grad",
                                                     "optimizer",
                                                     "gc"};

}  // namespace

std::string_view Name(PipelineOp op) { return kNames[static_cast<size_t>(op)]; }

PipelineOp ParsePipelineOp(std::string_view name) {
  for (size_t i = 1; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<PipelineOp>(i);
  return PipelineOp::other;
}

bool IsPipelineTransfer(PipelineOp op) {
  return op == PipelineOp::forward_send || op == PipelineOp::forward_recv || op == PipelineOp::backward_send ||
         op == PipelineOp::backward_recv;
}

bool IsPipelineCommunication(PipelineOp op) {
  switch (op) {
    case PipelineOp::params_all_gather:
    case PipelineOp::grads_reduce_scatter:
    case PipelineOp::separate_grads_all_reduce:
    case PipelineOp::layernorm_grads_all_reduce:
    case PipelineOp::embedding_grads_all_reduce:
    case PipelineOp::clip_main_grad: return true;
    default: return IsPipelineTransfer(op);
  }
}

}  // namespace tacet
