// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/source_ref.h"

namespace tacet {

// The operations of a Megatron-style training step, as an in-house profiler of the framework writes them.
enum class PipelineOp : uint8_t {
  other,
  forward_compute,
  backward_compute,
  forward_send,
  forward_recv,
  backward_send,
  backward_recv,
  params_all_gather,
  grads_reduce_scatter,
  separate_grads_all_reduce,
  layernorm_grads_all_reduce,
  embedding_grads_all_reduce,
  clip_main_grad,
  optimizer,
  garbage_collection,
};

std::string_view Name(PipelineOp op);  // "forward-compute"
PipelineOp ParsePipelineOp(std::string_view name);
bool IsPipelineTransfer(PipelineOp op);       // one of the four sends and receives
bool IsPipelineCommunication(PipelineOp op);  // any communication

// One operation of one worker. A worker is a (data-parallel rank, stage); of tensor-parallel ranks only one is
// recorded.
struct PipelineOperation {
  int64_t start_ns = 0, end_ns = 0;
  int32_t step = 0;
  int32_t dp_rank = 0, stage = 0;
  int32_t chunk = -1;       // model chunk within the stage, of compute
  int32_t microbatch = -1;  // of compute
  int32_t seq = 0;          // number among the operations of its kind in this step on this worker
  PipelineOp op = PipelineOp::other;
};

// A timeline of all workers of a job over several steps. Times count from the beginning of the recording.
struct PipelineTrace {
  FileId file{};
  bool cut = false;
  int32_t dp_size = 0, stages = 0, tp_size = 1;
  std::vector<PipelineOperation> operations;  // sorted by (step, dp_rank, stage, start)
};

}  // namespace tacet
