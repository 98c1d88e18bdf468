// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/whatif_replay.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "analysis/timing/replay_graph.h"
#include "analysis/timing/replay_selection.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// A transfer that seems to end this long before its last member came is an error of the record.
constexpr double kImpossibleNs = -10e6;
// The share of workers called the worst.
constexpr size_t kWorstPercent = 3;

// How sends and receives are summed up.
std::string_view KindName(PipelineOp op) {
  if (op == PipelineOp::forward_send || op == PipelineOp::forward_recv) return "forward-pp-comm";
  if (op == PipelineOp::backward_send || op == PipelineOp::backward_recv) return "backward-pp-comm";
  return Name(op);
}

// One value for each node and each place, a place being a data-parallel rank in a step.
using Table = std::vector<std::vector<double>>;

class Replay {
 public:
  explicit Replay(const PipelineTrace& trace) : trace_(trace) {}

  WhatIfReport Run() {
    if (!Prepare()) return std::move(report_);
    const Table ideal = Ideal();
    const std::vector<double> replayed = StepTimes(times_), perfect = StepTimes(ideal);
    report_.replayed_ns = Mean(replayed);
    report_.ideal_ns = Mean(perfect);
    if (report_.ideal_ns <= 0) {
      report_.problem = "the operations have no length";
      return std::move(report_);
    }
    report_.slowdown = report_.replayed_ns / report_.ideal_ns;
    for (size_t s = 0; s < steps_.size(); ++s)
      report_.by_step.push_back({steps_[s], recorded_[s], replayed[s], perfect[s]});
    report_.recorded_ns = Mean(recorded_);
    Decompose(ideal);
    Attribute(ideal);
    report_.valid = true;
    return std::move(report_);
  }

 private:
  size_t places() const { return steps_.size() * static_cast<size_t>(trace_.dp_size); }
  size_t Place(size_t step, int32_t dp) const {
    return step * static_cast<size_t>(trace_.dp_size) + static_cast<size_t>(dp);
  }

  using OperationKey = std::tuple<PipelineOp, int32_t, int32_t>;  // kind, stage, number
  using StepOperations =
      std::map<int32_t, std::vector<std::vector<PipelineOperation>>>;  // step -> by data-parallel rank

  static OperationKey KeyOf(const PipelineOperation& operation) {
    return {operation.op, operation.stage, operation.seq};
  }

  // What most steps have on most data-parallel ranks. What is rarer (a garbage collection now and then) has no place in
  // the graph that all of them share.
  StepOperations UsualOperations() {
    std::map<OperationKey, size_t> times;
    std::set<std::pair<int32_t, int32_t>> parts;
    std::set<int32_t> steps;
    for (const PipelineOperation& operation : trace_.operations) {
      if (operation.op == PipelineOp::other) continue;
      ++times[KeyOf(operation)];
      parts.emplace(operation.step, operation.dp_rank);
      steps.insert(operation.step);
    }
    StepOperations by_step;
    // A table of steps and ranks with more places than operations is not worth its memory: nearly all are empty.
    if (steps.size() * static_cast<size_t>(std::max(1, trace_.dp_size)) > trace_.operations.size()) return by_step;
    for (const PipelineOperation& operation : trace_.operations) {
      if (operation.op == PipelineOp::other) continue;
      auto& ranks = by_step[operation.step];
      ranks.resize(static_cast<size_t>(trace_.dp_size));
      if (times[KeyOf(operation)] * 2 >= parts.size())
        ranks[static_cast<size_t>(operation.dp_rank)].push_back(operation);
      else
        ++report_.rare_operations;
    }
    return by_step;
  }

  // The operations that the graph is built from: the first rank of the first step that has all of the usual ones. A
  // recording may begin in the middle of a step.
  static const std::vector<PipelineOperation>& Model(const StepOperations& by_step) {
    const std::vector<PipelineOperation>* best = &by_step.begin()->second.front();
    for (const auto& [step, ranks] : by_step)
      for (const auto& operations : ranks)
        if (operations.size() > best->size()) best = &operations;
    return *best;
  }

  // The graph of a whole step, and the recorded times of all steps with the same operations.
  bool Prepare() {
    const StepOperations by_step = UsualOperations();
    if (by_step.empty()) {
      report_.problem = "the timeline has no complete step: most workers recorded no operations";
      return false;
    }
    graph_ = BuildReplayGraph(Model(by_step), &report_.problem);
    if (graph_.order.empty()) return false;
    for (const auto& [step, ranks] : by_step) {
      const bool whole =
          std::all_of(ranks.begin(), ranks.end(), [&](const auto& operations) { return Fits(operations); });
      if (whole) steps_.push_back(step);
      report_.dropped_steps += !whole;
    }
    report_.steps = steps_.size();
    report_.dp_size = trace_.dp_size;
    report_.stages = graph_.stages;
    report_.chunks = graph_.chunks;
    if (steps_.empty()) {
      report_.problem = "no step has the same operations on all data-parallel ranks";
      return false;
    }
    Fill(by_step);
    return true;
  }

  bool Fits(const std::vector<PipelineOperation>& operations) const {
    if (operations.size() != graph_.nodes.size()) return false;
    return std::all_of(operations.begin(), operations.end(), [&](const PipelineOperation& operation) {
      return graph_.index.count({operation.op, operation.stage, operation.seq}) > 0;
    });
  }

  void Fill(const StepOperations& by_step) {
    Table start(graph_.nodes.size(), std::vector<double>(places(), 0)), end = start;
    for (size_t s = 0; s < steps_.size(); ++s) {
      const auto& ranks = by_step.at(steps_[s]);
      int64_t first = INT64_MAX, last = INT64_MIN;
      for (const auto& operations : ranks)
        for (const PipelineOperation& operation : operations) {
          first = std::min(first, operation.start_ns);
          last = std::max(last, operation.end_ns);
        }
      recorded_.push_back(static_cast<double>(last - first));
      for (int32_t dp = 0; dp < trace_.dp_size; ++dp)
        for (const PipelineOperation& operation : ranks[static_cast<size_t>(dp)]) {
          const uint32_t node = graph_.index.at({operation.op, operation.stage, operation.seq});
          start[node][Place(s, dp)] = static_cast<double>(operation.start_ns - first);
          end[node][Place(s, dp)] = static_cast<double>(operation.end_ns - first);
        }
    }
    times_ = end;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      const int32_t group = graph_.nodes[node].group;
      const std::vector<double> begin = group < 0 ? start[node] : LastStart(static_cast<size_t>(group), start);
      for (size_t place = 0; place < places(); ++place) {
        times_[node][place] = end[node][place] - begin[place];
        if (times_[node][place] <= kImpossibleNs) times_[node][place] = 0;
      }
    }
  }

  // When the last member of a group starts, at every place.
  std::vector<double> LastStart(size_t group, const Table& start) const {
    std::vector<double> last = start[graph_.groups[group][0]];
    for (const uint32_t member : graph_.groups[group])
      for (size_t place = 0; place < last.size(); ++place) last[place] = std::max(last[place], start[member][place]);
    if (!graph_.across_dp[group]) return last;
    for (size_t s = 0; s < steps_.size(); ++s) {
      double all = last[Place(s, 0)];
      for (int32_t dp = 1; dp < trace_.dp_size; ++dp) all = std::max(all, last[Place(s, dp)]);
      for (int32_t dp = 0; dp < trace_.dp_size; ++dp) last[Place(s, dp)] = all;
    }
    return last;
  }

  // Replays all steps at once with the given times; the length of each step.
  std::vector<double> StepTimes(const Table& times) const {
    Table start(graph_.nodes.size()), end(graph_.nodes.size());
    std::vector<double> length(steps_.size(), 0);
    const auto finish = [&](uint32_t node, const std::vector<double>& begin) {
      end[node].resize(places());
      for (size_t place = 0; place < places(); ++place) {
        end[node][place] = begin[place] + times[node][place];
        double& longest = length[place / static_cast<size_t>(trace_.dp_size)];
        longest = std::max(longest, end[node][place]);
      }
    };
    for (const uint32_t entry : graph_.order) {
      if (entry & ReplayGraph::kGroupEnds) {
        const size_t group = entry & ~ReplayGraph::kGroupEnds;
        const std::vector<double> begin = LastStart(group, start);
        for (const uint32_t member : graph_.groups[group]) finish(member, begin);
        continue;
      }
      start[entry].assign(places(), 0);
      for (const uint32_t other : graph_.nodes[entry].after)
        for (size_t place = 0; place < places(); ++place)
          start[entry][place] = std::max(start[entry][place], end[other][place]);
      if (graph_.nodes[entry].group < 0) finish(entry, start[entry]);
    }
    return length;
  }

  // Every time replaced by the mean of its kind, of communication by the median.
  Table Ideal() const {
    std::map<PipelineOp, std::vector<double>> all;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      auto& values = all[graph_.nodes[node].op];
      values.insert(values.end(), times_[node].begin(), times_[node].end());
    }
    std::map<PipelineOp, double> typical;
    for (auto& [op, values] : all) typical[op] = IsPipelineCommunication(op) ? Median(std::move(values)) : Mean(values);
    Table ideal(graph_.nodes.size());
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      ideal[node].assign(places(), typical[graph_.nodes[node].op]);
    return ideal;
  }

  // `base` with the times of `from` where chosen says so; the mean step time.
  double MeanWith(const Table& base, const Table& from,
                  const std::function<bool(const ReplayGraph::Node&, int32_t dp)>& chosen) const {
    Table mixed = base;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      for (int32_t dp = 0; dp < trace_.dp_size; ++dp) {
        if (!chosen(graph_.nodes[node], dp)) continue;
        for (size_t s = 0; s < steps_.size(); ++s) mixed[node][Place(s, dp)] = from[node][Place(s, dp)];
      }
    return Mean(StepTimes(mixed));
  }

  void Decompose(const Table& ideal) {
    const auto caused = [&](auto chosen) { return MeanWith(ideal, times_, chosen) / report_.ideal_ns; };
    std::vector<std::string_view> kinds;
    for (const auto& node : graph_.nodes)
      if (std::find(kinds.begin(), kinds.end(), KindName(node.op)) == kinds.end()) kinds.push_back(KindName(node.op));
    for (const std::string_view kind : kinds)
      report_.by_operation.emplace_back(kind,
                                        caused([&](const auto& node, int32_t) { return KindName(node.op) == kind; }));
    std::sort(report_.by_operation.begin(), report_.by_operation.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    for (int32_t dp = 0; dp < trace_.dp_size; ++dp)
      report_.by_dp_rank.push_back(caused([&](const auto&, int32_t rank) { return rank == dp; }));
    for (int32_t stage = 0; stage < graph_.stages; ++stage)
      report_.by_stage.push_back(caused([&](const auto& node, int32_t) { return node.stage == stage; }));
    const auto most = [](const std::vector<double>& values) {
      return static_cast<int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
    };
    report_.worst_dp_rank = most(report_.by_dp_rank);
    report_.worst_stage = most(report_.by_stage);
  }

  void Attribute(const Table& ideal) {
    for (int32_t stage = 0; stage < graph_.stages; ++stage)
      for (int32_t dp = 0; dp < trace_.dp_size; ++dp)
        report_.workers.push_back(
            {dp, stage,
             std::min(report_.by_dp_rank[static_cast<size_t>(dp)], report_.by_stage[static_cast<size_t>(stage)])});
    std::stable_sort(report_.workers.begin(), report_.workers.end(),
                     [](const auto& a, const auto& b) { return a.slowdown > b.slowdown; });
    report_.worst_workers = (report_.workers.size() * kWorstPercent + 99) / 100;
    const double lost = report_.replayed_ns - report_.ideal_ns;
    if (lost == 0) return;
    const auto explained = [&](auto chosen) { return (report_.replayed_ns - MeanWith(times_, ideal, chosen)) / lost; };
    report_.worst_workers_share = explained([&](const auto& node, int32_t dp) {
      return std::any_of(report_.workers.begin(),
                         report_.workers.begin() + static_cast<ptrdiff_t>(report_.worst_workers),
                         [&](const auto& worker) { return worker.dp_rank == dp && worker.stage == node.stage; });
    });
    report_.last_stage_share = explained([&](const auto& node, int32_t) { return node.stage == graph_.stages - 1; });
  }

  const PipelineTrace& trace_;
  WhatIfReport report_;
  ReplayGraph graph_;
  std::vector<int32_t> steps_;
  std::vector<double> recorded_;
  Table times_;  // duration of compute, transfer time of communication
};

}  // namespace

// The replay numbers the ranks it has; the report speaks of them as the recording does.
WhatIfReport ReplayWhatIf(const PipelineTrace& trace) {
  ReplaySelection selection = SelectForReplay(trace);
  WhatIfReport report = Replay(selection.trace).Run();
  report.missing = std::move(selection.missing);
  if (!report.valid) return report;
  std::vector<double> by_dp_rank(static_cast<size_t>(selection.recorded_dp_size),
                                 std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < report.by_dp_rank.size(); ++i)
    by_dp_rank[static_cast<size_t>(selection.dp_ranks[i])] = report.by_dp_rank[i];
  report.by_dp_rank = std::move(by_dp_rank);
  report.worst_dp_rank = selection.dp_ranks[static_cast<size_t>(report.worst_dp_rank)];
  for (WhatIfReport::Worker& worker : report.workers)
    worker.dp_rank = selection.dp_ranks[static_cast<size_t>(worker.dp_rank)];
  return report;
}

}  // namespace tacet
