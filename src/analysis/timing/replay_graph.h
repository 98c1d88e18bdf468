// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/pipeline_trace.h"

namespace tacet {

// The dependencies of one training step of one pipeline, taken from one recorded step of one data-parallel rank; all
// others have the same. A node is the n-th operation of a kind on a stage.
struct ReplayGraph {
  struct Node {
    PipelineOp op = PipelineOp::other;
    int32_t stage = 0, seq = 0;
    int32_t group = -1;           // of operations that end together, -1 for compute
    std::vector<uint32_t> after;  // nodes that must have ended before it starts
  };
  std::vector<Node> nodes;
  std::vector<std::vector<uint32_t>> groups;
  std::vector<bool> across_dp;  // by group: all data-parallel ranks take part

  // Order of evaluation: a node starts, or (bit 31 set) a group ends.
  static constexpr uint32_t kGroupEnds = 0x80000000u;
  std::vector<uint32_t> order;
  int32_t stages = 0, chunks = 1;

  std::map<std::tuple<PipelineOp, int32_t, int32_t>, uint32_t> index;  // (op, stage, seq) -> node
};

// From the operations of one step and one data-parallel rank. An empty order and a text in *problem when they cannot be
// put into an order: something is missing from the recording.
ReplayGraph BuildReplayGraph(const std::vector<PipelineOperation>& operations, std::string* problem);

}  // namespace tacet
