// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/replay_graph.h"

#include <algorithm>
#include <deque>

namespace tacet {
namespace {

// Clocks of different workers agree to about this.
constexpr int64_t kClockNs = 50'000;

constexpr PipelineOp kComputes[] = {PipelineOp::forward_compute, PipelineOp::backward_compute};

class Builder {
 public:
  explicit Builder(const std::vector<PipelineOperation>& operations) {
    for (const PipelineOperation& operation : operations) {
      if (operation.op == PipelineOp::other) continue;
      const std::tuple key{operation.op, operation.stage, operation.seq};
      const auto [found, added] = graph_.index.try_emplace(key, static_cast<uint32_t>(graph_.nodes.size()));
      if (!added) continue;
      graph_.nodes.push_back({operation.op, operation.stage, operation.seq, -1, {}});
      recorded_.push_back(operation);
      graph_.stages = std::max(graph_.stages, operation.stage + 1);
      graph_.chunks = std::max(graph_.chunks, operation.chunk + 1);
    }
    by_stage_.resize(static_cast<size_t>(graph_.stages));
    for (uint32_t i = 0; i < recorded_.size(); ++i) by_stage_[static_cast<size_t>(recorded_[i].stage)].push_back(i);
    for (auto& list : by_stage_)
      std::sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) { return Key(a) < Key(b); });
    overlaps_dp_ = Any(PipelineOp::separate_grads_all_reduce);
    uses_dp_ = Any(PipelineOp::params_all_gather) || Any(PipelineOp::grads_reduce_scatter) || overlaps_dp_;
  }

  ReplayGraph Run(std::string* problem) {
    for (int32_t stage = 0; stage < graph_.stages; ++stage) {
      ChainStreams(stage);
      MatchTransfers(stage);
      HoldFirstBackwardTransfers(stage);
      TieParameterGathers(stage);
      if (overlaps_dp_) TieGradientReductions(stage);
      ChainEndOfStep(stage);
    }
    GroupTransfers();
    GroupCollectives();
    Sort(problem);
    return std::move(graph_);
  }

 private:
  using SortKey = std::tuple<int64_t, int32_t, PipelineOp>;
  SortKey Key(uint32_t node) const { return {recorded_[node].start_ns, recorded_[node].seq, recorded_[node].op}; }

  bool Any(PipelineOp op) const {
    return std::any_of(recorded_.begin(), recorded_.end(), [&](const auto& operation) { return operation.op == op; });
  }

  // Nodes of one kind on a stage in order of start.
  std::vector<uint32_t> Of(int32_t stage, std::initializer_list<PipelineOp> ops) const {
    std::vector<uint32_t> out;
    for (const uint32_t node : by_stage_[static_cast<size_t>(stage)])
      if (std::find(ops.begin(), ops.end(), recorded_[node].op) != ops.end()) out.push_back(node);
    return out;
  }

  std::vector<uint32_t> Computes(int32_t stage) const {
    return Of(stage, {PipelineOp::forward_compute, PipelineOp::backward_compute});
  }

  void Wait(uint32_t node, uint32_t until) { graph_.nodes[node].after.push_back(until); }

  void Chain(const std::vector<uint32_t>& nodes) {
    for (size_t i = 1; i < nodes.size(); ++i) Wait(nodes[i], nodes[i - 1]);
  }

  void ChainStreams(int32_t stage) {
    Chain(Computes(stage));
    for (const PipelineOp op :
         {PipelineOp::forward_send, PipelineOp::forward_recv, PipelineOp::backward_send, PipelineOp::backward_recv})
      Chain(Of(stage, {op}));
    if (uses_dp_) Chain(Of(stage, {PipelineOp::params_all_gather, PipelineOp::grads_reduce_scatter}));
  }

  // Does a transfer for this compute leave the model? Then the framework recorded one that was never launched.
  bool LeavesModel(const PipelineOperation& compute, bool forward, bool send) const {
    const int32_t place = std::max(0, compute.chunk) * graph_.stages + compute.stage;
    const int32_t partner = place + (forward == send ? 1 : -1);
    return partner < 0 || partner >= graph_.chunks * graph_.stages;
  }

  // The n-th send follows the n-th compute of its direction, the n-th receive comes before it. Sends recorded before
  // the first compute ended, and receives after the last one began, belong to no compute.
  void MatchTransfers(int32_t stage) {
    for (const PipelineOp compute_op : kComputes) {
      const bool forward = compute_op == PipelineOp::forward_compute;
      const std::vector<uint32_t> computes = Of(stage, {compute_op});
      if (computes.empty()) continue;
      int64_t last_start = INT64_MIN, first_end = INT64_MAX;
      for (const uint32_t node : computes) {
        last_start = std::max(last_start, recorded_[node].start_ns);
        first_end = std::min(first_end, recorded_[node].end_ns);
      }
      for (const bool send : {true, false}) {
        const PipelineOp op = forward ? (send ? PipelineOp::forward_send : PipelineOp::forward_recv)
                                      : (send ? PipelineOp::backward_send : PipelineOp::backward_recv);
        std::vector<uint32_t> transfers;
        for (const uint32_t node : Of(stage, {op})) {
          const bool in_time =
              send ? recorded_[node].end_ns >= first_end - kClockNs : recorded_[node].start_ns <= last_start + kClockNs;
          if (in_time) transfers.push_back(node);
        }
        TieTransfers(transfers, computes, forward, send);
      }
    }
  }

  // Some frameworks record a transfer for every compute, also where the model begins or ends and none is launched;
  // others record launched ones only. Sometimes just the very first receive is left out.
  void TieTransfers(const std::vector<uint32_t>& transfers, const std::vector<uint32_t>& computes, bool forward,
                    bool send) {
    std::vector<size_t> needing;
    for (size_t i = 0; i < computes.size(); ++i)
      if (!LeavesModel(recorded_[computes[i]], forward, send)) needing.push_back(i);
    const bool launched_only = transfers.size() == needing.size();
    const size_t skipped = !launched_only && !send && transfers.size() + 1 == computes.size() ? 1 : 0;
    for (size_t i = 0; i < transfers.size(); ++i) {
      const size_t at = launched_only ? needing[i] : i + skipped;
      if (at >= computes.size()) return;
      TieToCompute(transfers[i], computes, at, send);
      if (!LeavesModel(recorded_[computes[at]], forward, send)) launched_.push_back(transfers[i]);
    }
  }

  void TieToCompute(uint32_t transfer, const std::vector<uint32_t>& computes, size_t at, bool send) {
    if (send) {
      Wait(transfer, computes[at]);
      return;
    }
    Wait(computes[at], transfer);
    if (at > 0) Wait(transfer, computes[at - 1]);  // a receive is posted after the compute before
  }

  // The first transfer of the backward pass is posted two computes before the first backward compute.
  void HoldFirstBackwardTransfers(int32_t stage) {
    const std::vector<uint32_t> computes = Computes(stage);
    const auto first = std::find_if(computes.begin(), computes.end(),
                                    [&](uint32_t node) { return recorded_[node].op == PipelineOp::backward_compute; });
    if (first == computes.end() || first - computes.begin() < 2) return;
    for (const PipelineOp op : {PipelineOp::backward_send, PipelineOp::backward_recv})
      if (const auto found = graph_.index.find({op, stage, 0}); found != graph_.index.end())
        Wait(found->second, *(first - 2));
  }

  // The first forward pass of a chunk needs its parameters.
  void TieParameterGathers(int32_t stage) {
    std::vector<int32_t> done;
    const std::vector<uint32_t> gathers = Of(stage, {PipelineOp::params_all_gather});
    for (auto at = gathers.rbegin(); at != gathers.rend(); ++at) {
      const int32_t chunk = recorded_[*at].chunk;
      if (std::find(done.begin(), done.end(), chunk) != done.end()) continue;
      done.push_back(chunk);
      for (const uint32_t node : Of(stage, {PipelineOp::forward_compute})) {
        if (chunk >= 0 && recorded_[node].chunk != chunk) continue;  // not every record tells the chunk
        Wait(node, *at);
        break;
      }
    }
  }

  // Where gradients are reduced during the backward pass, a chunk's reduction follows its last backward compute.
  void TieGradientReductions(int32_t stage) {
    std::vector<int32_t> done;
    for (const uint32_t node : Of(stage, {PipelineOp::grads_reduce_scatter})) {
      const int32_t chunk = recorded_[node].chunk;
      if (std::find(done.begin(), done.end(), chunk) != done.end()) continue;
      done.push_back(chunk);
      uint32_t last = UINT32_MAX;
      for (const uint32_t compute : Of(stage, {PipelineOp::backward_compute}))
        if ((chunk < 0 || recorded_[compute].chunk == chunk) &&
            (last == UINT32_MAX || recorded_[compute].end_ns > recorded_[last].end_ns))
          last = compute;
      if (last != UINT32_MAX) Wait(node, last);
    }
  }

  // After the last compute: garbage collection, reductions of what is shared, gradients, clipping, optimizer.
  void ChainEndOfStep(int32_t stage) {
    const std::vector<uint32_t> computes = Computes(stage);
    uint32_t last = UINT32_MAX;
    for (const uint32_t node : computes)
      if (last == UINT32_MAX || recorded_[node].end_ns > recorded_[last].end_ns) last = node;
    std::vector<uint32_t> before;
    if (last != UINT32_MAX) before.push_back(last);
    const auto follow = [&](const std::vector<uint32_t>& nodes) {
      for (const uint32_t node : nodes) {
        for (const uint32_t other : before) Wait(node, other);
        before = {node};
      }
    };
    follow(Of(stage, {PipelineOp::garbage_collection}));
    const std::vector<uint32_t> reductions = Of(stage, {PipelineOp::grads_reduce_scatter});
    if (overlaps_dp_ && !reductions.empty()) before.push_back(reductions.back());
    follow(Of(stage, {PipelineOp::layernorm_grads_all_reduce}));
    follow(Of(stage, {PipelineOp::embedding_grads_all_reduce}));
    if (overlaps_dp_) {
      follow(Of(stage, {PipelineOp::separate_grads_all_reduce}));
    } else {
      follow(reductions);
    }
    follow(Of(stage, {PipelineOp::clip_main_grad}));
    follow(Of(stage, {PipelineOp::optimizer}));
  }

  void AddGroup(std::vector<uint32_t> members, bool across_dp) {
    for (const uint32_t node : members) graph_.nodes[node].group = static_cast<int32_t>(graph_.groups.size());
    graph_.groups.push_back(std::move(members));
    graph_.across_dp.push_back(across_dp);
  }

  // The n-th launched send of a stage meets the n-th launched receive of the next one, in either direction; the
  // pipeline wraps around from the last stage to the first. What was never launched stands alone.
  void GroupTransfers() {
    std::map<std::pair<PipelineOp, int32_t>, std::vector<uint32_t>> launched;
    for (const uint32_t node : launched_) launched[{recorded_[node].op, recorded_[node].stage}].push_back(node);
    for (auto& [key, nodes] : launched)
      std::sort(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return Key(a) < Key(b); });
    for (const bool forward : {true, false}) {
      const PipelineOp send = forward ? PipelineOp::forward_send : PipelineOp::backward_send;
      const PipelineOp recv = forward ? PipelineOp::forward_recv : PipelineOp::backward_recv;
      for (int32_t stage = 0; stage < graph_.stages; ++stage) {
        const int32_t partner = (stage + (forward ? 1 : graph_.stages - 1)) % graph_.stages;
        const auto& sends = launched[{send, stage}];
        const auto& recvs = launched[{recv, partner}];
        for (size_t i = 0; i < std::min(sends.size(), recvs.size()); ++i) AddGroup({sends[i], recvs[i]}, false);
      }
    }
    for (uint32_t node = 0; node < recorded_.size(); ++node)
      if (IsPipelineTransfer(recorded_[node].op) && graph_.nodes[node].group < 0) AddGroup({node}, false);
  }

  void GroupCollectives() {
    std::vector<uint32_t> clip, embedding;
    for (uint32_t node = 0; node < recorded_.size(); ++node) {
      switch (recorded_[node].op) {
        case PipelineOp::params_all_gather:
        case PipelineOp::grads_reduce_scatter:
        case PipelineOp::separate_grads_all_reduce:
          if (uses_dp_) AddGroup({node}, true);
          break;
        case PipelineOp::embedding_grads_all_reduce: embedding.push_back(node); break;
        case PipelineOp::clip_main_grad: clip.push_back(node); break;
        default: break;
      }
    }
    // The first and the last stage share the embedding; all stages agree on the norm.
    if (!embedding.empty()) AddGroup(std::move(embedding), false);
    if (!clip.empty()) AddGroup(std::move(clip), true);
  }

  void Sort(std::string* problem) {
    std::vector<uint32_t> waits(graph_.nodes.size(), 0), started(graph_.groups.size(), 0);
    std::vector<std::vector<uint32_t>> next(graph_.nodes.size());
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
      for (const uint32_t other : graph_.nodes[node].after) {
        next[other].push_back(node);
        ++waits[node];
      }
    std::deque<uint32_t> ready;
    for (uint32_t node = 0; node < waits.size(); ++node)
      if (waits[node] == 0) ready.push_back(node);
    size_t ended = 0;
    const auto end = [&](uint32_t node) {
      ++ended;
      for (const uint32_t other : next[node])
        if (--waits[other] == 0) ready.push_back(other);
    };
    while (!ready.empty()) {
      const uint32_t node = ready.front();
      ready.pop_front();
      graph_.order.push_back(node);
      const int32_t group = graph_.nodes[node].group;
      if (group < 0) {
        end(node);
      } else if (++started[static_cast<size_t>(group)] == graph_.groups[static_cast<size_t>(group)].size()) {
        graph_.order.push_back(ReplayGraph::kGroupEnds | static_cast<uint32_t>(group));
        for (const uint32_t member : graph_.groups[static_cast<size_t>(group)]) end(member);
      }
    }
    if (ended == graph_.nodes.size()) return;
    *problem =
        "the operations of a step wait for each other in a cycle: sends or receives are missing from the recording";
    graph_.order.clear();
  }

  ReplayGraph graph_;
  std::vector<PipelineOperation> recorded_;  // by node
  std::vector<std::vector<uint32_t>> by_stage_;
  std::vector<uint32_t> launched_;  // transfers that have a partner
  bool uses_dp_ = false, overlaps_dp_ = false;
};

}  // namespace

ReplayGraph BuildReplayGraph(const std::vector<PipelineOperation>& operations, std::string* problem) {
  return Builder(operations).Run(problem);
}

}  // namespace tacet
