// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/whatif_replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <tuple>

#include "analysis/timing/recorded_timelines.h"
#include "base/decompress.h"
#include "evidence/pipeline_trace/pipeline_trace_import.h"

namespace tacet {
namespace {

struct Slot {
  bool forward;
  int32_t chunk, microbatch;
};

// One forward, one backward: p - 1 - stage forwards ahead, then alternately.
std::vector<Slot> Alternating(int32_t stages, int32_t stage, int32_t microbatches) {
  std::vector<Slot> out;
  int32_t f = 0, b = 0;
  for (; f < std::min(microbatches, stages - 1 - stage); ++f) out.push_back({true, 0, f});
  while (b < microbatches) {
    if (f < microbatches) out.push_back({true, 0, f++});
    out.push_back({false, 0, b++});
  }
  return out;
}

// Two chunks per stage: all forwards chunk by chunk, then all backwards from the last chunk.
std::vector<Slot> TwoChunks(int32_t microbatches) {
  std::vector<Slot> out;
  for (int32_t c = 0; c < 2; ++c)
    for (int32_t m = 0; m < microbatches; ++m) out.push_back({true, c, m});
  for (int32_t c = 1; c >= 0; --c)
    for (int32_t m = 0; m < microbatches; ++m) out.push_back({false, c, m});
  return out;
}

struct Plan {
  int32_t dp = 2, stages = 3, chunks = 1, microbatches = 5, steps = 2;
  bool overlap = false;     // gradients are reduced during the backward pass
  bool unlaunched = false;  // transfers are recorded also where the model begins or ends
  std::function<std::vector<Slot>(int32_t stage)> order;
  // Length of an operation in ns.
  std::function<int64_t(PipelineOp, int32_t step, int32_t dp, int32_t stage, int32_t seq)> length;
};

// Runs the plan by relaxation: all starts at zero, then every rule is applied again and again until no time changes.
// Slow and without a graph, so independent of the code under test.
class Relaxation {
 public:
  explicit Relaxation(const Plan& plan) : plan_(plan) {}

  PipelineTrace Run() {
    PipelineTrace trace;
    trace.dp_size = plan_.dp;
    trace.stages = plan_.stages;
    for (int32_t step = 0; step < plan_.steps; ++step) {
      ops_.clear();
      ready_.clear();
      step_ = step;
      for (changed_ = true; changed_;) {
        changed_ = false;
        for (int32_t dp = 0; dp < plan_.dp; ++dp) Apply(dp);
      }
      for (const auto& [key, op] : ops_) trace.operations.push_back(op);
    }
    return trace;
  }

 private:
  using Key = std::tuple<int32_t, int32_t, PipelineOp, int32_t>;  // dp, stage, op, seq

  PipelineOperation& At(int32_t dp, int32_t stage, PipelineOp op, int32_t seq) {
    PipelineOperation& out = ops_[Key{dp, stage, op, seq}];
    out.op = op;
    out.step = step_;
    out.dp_rank = dp;
    out.stage = stage;
    out.seq = seq;
    return out;
  }

  // Compute: starts at `ready`, or later if it already does.
  int64_t Compute(int32_t dp, int32_t stage, PipelineOp op, int32_t seq, int64_t ready) {
    PipelineOperation& out = At(dp, stage, op, seq);
    return Settle(out, ready, ready + plan_.length(op, step_, dp, stage, seq));
  }

  int64_t Settle(PipelineOperation& out, int64_t start, int64_t end) {
    changed_ |= out.start_ns != start || out.end_ns != end;
    out.start_ns = start;
    out.end_ns = end;
    return end;
  }

  int64_t EndOf(int32_t dp, int32_t stage, PipelineOp op, int32_t seq) {
    const auto found = ops_.find({dp, stage, op, seq});
    return found == ops_.end() ? 0 : found->second.end_ns;
  }
  int64_t StartOf(int32_t dp, int32_t stage, PipelineOp op, int32_t seq) {
    const auto found = ops_.find({dp, stage, op, seq});
    return found == ops_.end() ? 0 : found->second.start_ns;
  }

  void Collective(PipelineOp op, int32_t dp, int32_t stage, int64_t ready, bool across_dp, bool across_stages) {
    ready_[Key{dp, stage, op, 0}] = ready;
    int64_t begin = ready;
    for (const auto& [key, at] : ready_) {
      if (std::get<2>(key) != op || (!across_dp && std::get<0>(key) != dp) ||
          (!across_stages && std::get<1>(key) != stage))
        continue;
      begin = std::max(begin, at);
    }
    Settle(At(dp, stage, op, 0), ready, begin + plan_.length(op, step_, dp, stage, 0));
  }

  void Apply(int32_t dp) {
    for (int32_t stage = 0; stage < plan_.stages; ++stage) {
      Collective(PipelineOp::params_all_gather, dp, stage, 0, true, false);
      At(dp, stage, PipelineOp::params_all_gather, 0).chunk = plan_.chunks > 1 ? -1 : 0;
      const int64_t computed = ApplyComputes(dp, stage);
      ApplyEnd(dp, stage, computed);
    }
  }

  int64_t ApplyComputes(int32_t dp, int32_t stage) {
    const std::vector<Slot> order = plan_.order(stage);
    int64_t t = EndOf(dp, stage, PipelineOp::params_all_gather, 0);
    int32_t count[2] = {0, 0}, sent[2] = {0, 0}, received[2] = {0, 0};
    int64_t last_end[2] = {0, 0}, previous[2] = {0, 0};
    for (const Slot& slot : order) {
      const int side = slot.forward ? 0 : 1;
      const PipelineOp compute = slot.forward ? PipelineOp::forward_compute : PipelineOp::backward_compute;
      const PipelineOp recv = slot.forward ? PipelineOp::forward_recv : PipelineOp::backward_recv;
      const PipelineOp send = slot.forward ? PipelineOp::forward_send : PipelineOp::backward_send;
      int64_t ready = t;
      if (Launched(slot, stage, recv) || plan_.unlaunched) {
        const int32_t n = received[side]++;
        int64_t posted = std::max(last_end[side], EndOf(dp, stage, recv, n - 1));
        if (!slot.forward && n == 0) posted = std::max(posted, HoldEnd(dp, stage, order));
        const int64_t begin = std::max(posted, PartnerStart(dp, stage, slot, recv));
        ready =
            std::max(ready, Settle(At(dp, stage, recv, n), posted, begin + plan_.length(recv, step_, dp, stage, n)));
      }
      const int32_t n = count[side]++;
      t = Compute(dp, stage, compute, n, ready);
      At(dp, stage, compute, n).chunk = slot.chunk;
      last_end[side] = t;
      if (Launched(slot, stage, send) || plan_.unlaunched) {
        const int32_t k = sent[side]++;
        int64_t posted = std::max(t, previous[side]);
        if (!slot.forward && k == 0) posted = std::max(posted, HoldEnd(dp, stage, order));
        const int64_t begin = std::max(posted, PartnerStart(dp, stage, slot, send));
        previous[side] = Settle(At(dp, stage, send, k), posted, begin + plan_.length(send, step_, dp, stage, k));
      }
    }
    return t;
  }

  // The place in the whole model that a compute's transfer goes to or comes from.
  int32_t PartnerPlace(const Slot& slot, int32_t stage, PipelineOp op) const {
    const int32_t place = slot.chunk * plan_.stages + stage;
    return place + (op == PipelineOp::forward_send || op == PipelineOp::backward_recv ? 1 : -1);
  }
  bool Launched(const Slot& slot, int32_t stage, PipelineOp op) const {
    const int32_t partner = PartnerPlace(slot, stage, op);
    return partner >= 0 && partner < plan_.stages * plan_.chunks;
  }

  // When the other side of a transfer is posted: its operation of the same microbatch, found by counting through its
  // order.
  int64_t PartnerStart(int32_t dp, int32_t stage, const Slot& slot, PipelineOp op) {
    if (!Launched(slot, stage, op)) return 0;
    const int32_t partner = PartnerPlace(slot, stage, op) % plan_.stages,
                  chunk = PartnerPlace(slot, stage, op) / plan_.stages;
    const PipelineOp other = op == PipelineOp::forward_send    ? PipelineOp::forward_recv
                             : op == PipelineOp::forward_recv  ? PipelineOp::forward_send
                             : op == PipelineOp::backward_send ? PipelineOp::backward_recv
                                                               : PipelineOp::backward_send;
    int32_t seq = 0;
    for (const Slot& candidate : plan_.order(partner)) {
      if (candidate.forward != slot.forward) continue;
      if (candidate.chunk == chunk && candidate.microbatch == slot.microbatch) return StartOf(dp, partner, other, seq);
      seq += Launched(candidate, partner, other) || plan_.unlaunched;
    }
    return 0;
  }

  // The first backward transfer is posted two computes before the first backward compute.
  int64_t HoldEnd(int32_t dp, int32_t stage, const std::vector<Slot>& order) {
    int32_t forwards = 0;
    while (forwards < static_cast<int32_t>(order.size()) && order[static_cast<size_t>(forwards)].forward) ++forwards;
    return forwards < 2 ? 0 : EndOf(dp, stage, PipelineOp::forward_compute, forwards - 2);
  }

  void ApplyEnd(int32_t dp, int32_t stage, int64_t t) {
    t = Compute(dp, stage, PipelineOp::garbage_collection, 0, t);
    if (plan_.overlap) {
      const int64_t backward = EndOf(dp, stage, PipelineOp::backward_compute, plan_.microbatches * plan_.chunks - 1);
      Collective(PipelineOp::grads_reduce_scatter, dp, stage,
                 std::max(backward, EndOf(dp, stage, PipelineOp::params_all_gather, 0)), true, false);
      t = std::max(t, EndOf(dp, stage, PipelineOp::grads_reduce_scatter, 0));
    }
    t = Compute(dp, stage, PipelineOp::layernorm_grads_all_reduce, 0, t);
    if (stage == 0 || stage == plan_.stages - 1) {
      Collective(PipelineOp::embedding_grads_all_reduce, dp, stage, t, false, true);
      t = EndOf(dp, stage, PipelineOp::embedding_grads_all_reduce, 0);
    }
    const PipelineOp gradients =
        plan_.overlap ? PipelineOp::separate_grads_all_reduce : PipelineOp::grads_reduce_scatter;
    Collective(gradients, dp, stage, t, true, false);
    Collective(PipelineOp::clip_main_grad, dp, stage, EndOf(dp, stage, gradients, 0), true, true);
    Compute(dp, stage, PipelineOp::optimizer, 0, EndOf(dp, stage, PipelineOp::clip_main_grad, 0));
  }

  const Plan& plan_;
  int32_t step_ = 0;
  bool changed_ = false;
  std::map<Key, PipelineOperation> ops_;
  std::map<Key, int64_t> ready_;
};

// Lengths around a base by kind, the same for the same arguments; the optimizer is long, so that it ends the step.
int64_t RandomLength(unsigned seed, PipelineOp op, int32_t step, int32_t dp, int32_t stage, int32_t seq) {
  uint64_t mix = seed;
  for (const int32_t part : {static_cast<int32_t>(op), step, dp, stage, seq}) {
    mix = (mix + static_cast<uint64_t>(part) + 1) * 0x9e3779b97f4a7c15u;
    mix ^= mix >> 29;
  }
  const int64_t base = op == PipelineOp::forward_compute    ? 100'000'000
                       : op == PipelineOp::backward_compute ? 200'000'000
                                                            : 9'000'000;
  return base + static_cast<int64_t>(mix % static_cast<uint64_t>(base));
}

std::vector<Plan> RandomPlans() {
  std::vector<Plan> plans;
  for (unsigned seed = 0; seed < 8; ++seed) {
    Plan plan;
    plan.stages = 2 + static_cast<int32_t>(seed % 3);
    plan.microbatches = 4 + static_cast<int32_t>(seed % 4);
    plan.dp = 1 + static_cast<int32_t>(seed % 3);
    plan.overlap = seed % 2 == 1;
    plan.chunks = seed % 4 == 3 ? 2 : 1;
    plan.unlaunched = seed % 8 == 7;
    const auto [stages, microbatches, chunks] = std::tuple(plan.stages, plan.microbatches, plan.chunks);
    plan.order = [=](int32_t stage) {
      return chunks == 2 ? TwoChunks(microbatches) : Alternating(stages, stage, microbatches);
    };
    plan.length = [seed](PipelineOp op, int32_t step, int32_t dp, int32_t stage, int32_t seq) {
      return RandomLength(seed, op, step, dp, stage, seq);
    };
    plans.push_back(plan);
  }
  return plans;
}

TEST(WhatIfReplay, RepeatsATimelineWithoutDelaysExactly) {
  for (const Plan& plan : RandomPlans()) {
    const WhatIfReport report = ReplayWhatIf(Relaxation(plan).Run());
    ASSERT_TRUE(report.valid) << report.problem;
    EXPECT_EQ(report.steps, 2u);
    EXPECT_EQ(report.chunks, plan.chunks);
    for (const auto& step : report.by_step)
      EXPECT_NEAR(step.replayed_ns, step.recorded_ns, 1) << plan.stages << " " << plan.chunks;
  }
}

TEST(WhatIfReplay, IdealIsTheTimelineOfTypicalTimes) {
  for (const Plan& plan : RandomPlans()) {
    const PipelineTrace trace = Relaxation(plan).Run();
    // Typical times, by the definition, from the plan's own lengths.
    std::map<PipelineOp, std::vector<int64_t>> all;
    for (const PipelineOperation& op : trace.operations)
      all[op.op].push_back(plan.length(op.op, op.step, op.dp_rank, op.stage, op.seq));
    std::map<PipelineOp, int64_t> typical;
    for (auto& [op, values] : all) {
      std::sort(values.begin(), values.end());
      int64_t sum = 0;
      for (const int64_t value : values) sum += value;
      const size_t n = values.size();
      typical[op] =
          IsPipelineCommunication(op) ? (values[(n - 1) / 2] + values[n / 2]) / 2 : sum / static_cast<int64_t>(n);
    }
    Plan even = plan;
    even.length = [&](PipelineOp op, int32_t, int32_t, int32_t, int32_t) { return typical[op]; };
    const PipelineTrace ideal = Relaxation(even).Run();
    int64_t last = 0;
    for (const PipelineOperation& op : ideal.operations) last = std::max(last, op.end_ns);
    const WhatIfReport report = ReplayWhatIf(trace);
    ASSERT_TRUE(report.valid);
    EXPECT_NEAR(report.ideal_ns, static_cast<double>(last), 100) << plan.stages << " " << plan.chunks;
  }
}

TEST(WhatIfReplay, LaysTheSlowdownToTheSlowWorker) {
  Plan plan;
  plan.dp = 4;
  plan.stages = 4;
  plan.microbatches = 8;
  plan.order = [](int32_t stage) { return Alternating(4, stage, 8); };
  plan.length = [](PipelineOp op, int32_t, int32_t dp, int32_t stage, int32_t) -> int64_t {
    const int64_t base = op == PipelineOp::forward_compute    ? 100'000'000
                         : op == PipelineOp::backward_compute ? 200'000'000
                                                              : 1'000'000;
    return dp == 2 && stage == 1 && base > 1'000'000 ? 2 * base : base;
  };
  const WhatIfReport report = ReplayWhatIf(Relaxation(plan).Run());
  ASSERT_TRUE(report.valid);
  EXPECT_GT(report.slowdown, 1.4);
  EXPECT_EQ(report.worst_dp_rank, 2);
  EXPECT_EQ(report.worst_stage, 1);
  EXPECT_EQ(report.workers[0].dp_rank, 2);
  EXPECT_EQ(report.workers[0].stage, 1);
  EXPECT_EQ(report.worst_workers, 1u);
  EXPECT_NEAR(report.worst_workers_share, 1, 0.1);
  EXPECT_NEAR(report.last_stage_share, 0, 0.05);
}

// Four stages, four data-parallel ranks; `factor` says how much longer a worker computes in a step.
Plan PipelineOf(std::function<double(int32_t step, int32_t dp, int32_t stage)> factor, int32_t steps = 2) {
  Plan plan;
  plan.dp = 4;
  plan.stages = 4;
  plan.microbatches = 8;
  plan.steps = steps;
  plan.order = [](int32_t stage) { return Alternating(4, stage, 8); };
  plan.length = [factor](PipelineOp op, int32_t step, int32_t dp, int32_t stage, int32_t seq) -> int64_t {
    const int64_t base = op == PipelineOp::forward_compute    ? 100'000'000
                         : op == PipelineOp::backward_compute ? 200'000'000
                                                              : 1'000'000;
    const double spread = 1 + 0.01 * ((seq * 7 + dp * 3 + stage * 5 + step) % 5 - 2);  // no two are alike
    const bool compute = op == PipelineOp::forward_compute || op == PipelineOp::backward_compute;
    return static_cast<int64_t>(static_cast<double>(base) * spread * (compute ? factor(step, dp, stage) : 1));
  };
  return plan;
}

StragglerReport StragglersOf(const Plan& plan) { return FindStragglersInReplay(ReplayWhatIf(Relaxation(plan).Run())); }

TEST(ReplayStragglers, NamesTheWorkerThatComputesLonger) {
  const auto report =
      StragglersOf(PipelineOf([](int32_t, int32_t dp, int32_t stage) { return dp == 2 && stage == 1 ? 2 : 1; }));
  ASSERT_EQ(report.stragglers.size(), 1u);
  const Straggler& late = report.stragglers[0];
  EXPECT_EQ(late.dp_rank, 2);
  EXPECT_EQ(late.stage, 1);
  EXPECT_EQ(late.rank.value, 6);
  EXPECT_EQ(late.origin, StragglerOrigin::gpu_work);
  EXPECT_EQ(late.pattern, StragglerPattern::persistent);
  EXPECT_GT(late.share, 0.3);
}

TEST(ReplayStragglers, NamesAStageThatIsSlowOnAllDataParallelRanks) {
  const auto report = StragglersOf(PipelineOf([](int32_t, int32_t, int32_t stage) { return stage == 2 ? 1.6 : 1; }));
  ASSERT_EQ(report.stragglers.size(), 4u);
  for (const Straggler& late : report.stragglers) {
    EXPECT_EQ(late.stage, 2);
    EXPECT_EQ(late.origin, StragglerOrigin::stage);
  }
}

TEST(ReplayStragglers, TellsNowAndThenFromAlways) {
  const auto report = StragglersOf(PipelineOf(
      [](int32_t step, int32_t dp, int32_t stage) { return step == 3 && dp == 0 && stage == 3 ? 5 : 1; }, 8));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
  EXPECT_EQ(report.stragglers[0].late_steps, 1u);
}

TEST(ReplayStragglers, NamesNobodyInABalancedPipeline) {
  EXPECT_TRUE(StragglersOf(PipelineOf([](int32_t, int32_t, int32_t) { return 1; })).stragglers.empty());
  // The output layer makes the last stage a little heavier everywhere.
  EXPECT_TRUE(StragglersOf(PipelineOf([](int32_t, int32_t, int32_t stage) {
                return stage == 3 ? 1.08 : 1;
              })).stragglers.empty());
  // Slow together is not late.
  EXPECT_TRUE(
      StragglersOf(PipelineOf([](int32_t step, int32_t, int32_t) { return step == 1 ? 1.3 : 1; })).stragglers.empty());
  EXPECT_TRUE(FindStragglersInReplay({}).stragglers.empty());
}

TEST(WhatIfReplay, TellsWhatIsThereWhereWorkersAreMissing) {
  const Plan plan = PipelineOf([](int32_t, int32_t dp, int32_t stage) { return dp == 3 && stage == 1 ? 2 : 1; });
  const PipelineTrace whole = Relaxation(plan).Run();
  PipelineTrace without_rank = whole, without_worker = whole;
  std::erase_if(without_rank.operations, [](const auto& op) { return op.dp_rank == 1; });
  std::erase_if(without_worker.operations, [](const auto& op) { return op.dp_rank == 1 && op.stage == 2; });
  for (const PipelineTrace& trace : {without_rank, without_worker}) {
    const WhatIfReport report = ReplayWhatIf(trace);
    ASSERT_TRUE(report.valid) << report.problem;
    EXPECT_EQ(report.dp_size, 3);
    ASSERT_EQ(report.missing.size(), 1u);
    ASSERT_EQ(report.by_dp_rank.size(), 4u);
    EXPECT_TRUE(std::isnan(report.by_dp_rank[1]));
    EXPECT_EQ(report.worst_dp_rank, 3);
    EXPECT_EQ(report.workers[0].dp_rank, 3);
    EXPECT_EQ(report.workers[0].stage, 1);
    EXPECT_EQ(FindStragglersInReplay(report).stragglers.at(0).dp_rank, 3);
  }
  EXPECT_EQ(ReplayWhatIf(without_rank).missing[0], "data-parallel rank 1");
  EXPECT_EQ(ReplayWhatIf(without_worker).missing[0], "stage 2 of data-parallel rank 1");
  EXPECT_TRUE(ReplayWhatIf(whole).missing.empty());
}

TEST(WhatIfReplay, TellsWhatIsThereWhereAStageIsMissing) {
  PipelineTrace trace = Relaxation(PipelineOf([](int32_t, int32_t, int32_t) { return 1; })).Run();
  std::erase_if(trace.operations, [](const auto& op) { return op.stage == 1; });
  const WhatIfReport report = ReplayWhatIf(trace);
  ASSERT_TRUE(report.valid) << report.problem;
  EXPECT_EQ(report.missing, std::vector<std::string>{"stage 1"});
}

TEST(WhatIfReplay, DropsStepsThatLackOperations) {
  Plan plan = RandomPlans()[0];
  plan.steps = 3;
  PipelineTrace trace = Relaxation(plan).Run();
  const auto at = std::find_if(trace.operations.begin(), trace.operations.end(),
                               [](const auto& op) { return op.step == 1 && op.op == PipelineOp::forward_compute; });
  trace.operations.erase(at);
  const WhatIfReport report = ReplayWhatIf(trace);
  ASSERT_TRUE(report.valid);
  EXPECT_EQ(report.steps, 2u);
  EXPECT_EQ(report.dropped_steps, 1u);
}

TEST(WhatIfReplay, StandsAFirstStepThatBeganBeforeTheRecording) {
  Plan plan = RandomPlans()[0];
  plan.steps = 4;
  PipelineTrace trace = Relaxation(plan).Run();
  const double whole = ReplayWhatIf(trace).slowdown;
  const int32_t first = trace.operations.front().step;
  trace.operations.erase(trace.operations.begin(), trace.operations.begin() + 5);
  ASSERT_EQ(trace.operations.front().step, first);
  const WhatIfReport report = ReplayWhatIf(trace);
  ASSERT_TRUE(report.valid) << report.problem;
  EXPECT_EQ(report.steps, 3u);
  EXPECT_EQ(report.dropped_steps, 1u);
  EXPECT_NEAR(report.slowdown, whole, 0.25 * whole);
}

TEST(WhatIfReplay, LeavesOutWhatHappensNowAndThen) {
  Plan plan = RandomPlans()[0];
  plan.steps = 5;
  PipelineTrace trace = Relaxation(plan).Run();
  const WhatIfReport without = ReplayWhatIf(trace);
  PipelineOperation rare = trace.operations[2];
  rare.op = PipelineOp::garbage_collection;
  rare.seq = 7;  // a second one in this step only
  trace.operations.insert(trace.operations.begin() + 3, rare);
  const WhatIfReport report = ReplayWhatIf(trace);
  ASSERT_TRUE(report.valid) << report.problem;
  EXPECT_EQ(report.steps, 5u);
  EXPECT_EQ(report.rare_operations, 1u);
  EXPECT_DOUBLE_EQ(report.slowdown, without.slowdown);
}

TEST(WhatIfReplay, SaysWhyItCannot) {
  EXPECT_FALSE(ReplayWhatIf({}).valid);
  EXPECT_FALSE(ReplayWhatIf({}).problem.empty());
}

struct Published {
  const char* name;
  double slowdown, worst_workers, last_stage;
  int32_t dp_rank, stage;
};

TEST(WhatIfReplay, ReachesThePublishedFigures) {
  const Published figures[] = {{"AR", 1.9730450967262543, 1.0017012777290497, -0.00121196404622606, 0, 0},
                               {"ST", 1.1787021836556841, 0.031404269124045224, 1.2193563788811714, 1, 3}};
  for (const Published& figure : figures) {
    const auto path = SharedFolder() / "public" / "straggler" / (std::string("timeline-") + figure.name + ".json.gz");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "the public timelines are not here";
    auto mapped = MappedFile::Open(path.string());
    ASSERT_TRUE(mapped);
    std::string text;
    DecompressAll(mapped->bytes(), Compression::gzip, uint64_t{1} << 30, &text);
    Fragment fragment;
    ReadPipelineTrace({"timeline.json", text, false}, fragment);
    ASSERT_EQ(fragment.pipeline_traces.size(), 1u);
    const WhatIfReport report = ReplayWhatIf(fragment.pipeline_traces[0]);
    ASSERT_TRUE(report.valid) << report.problem;
    EXPECT_NEAR(report.slowdown, figure.slowdown, 1e-4) << figure.name;
    EXPECT_NEAR(report.worst_workers_share, figure.worst_workers, 1e-3);
    EXPECT_NEAR(report.last_stage_share, figure.last_stage, 1e-3);
    EXPECT_EQ(report.worst_dp_rank, figure.dp_rank);
    EXPECT_EQ(report.worst_stage, figure.stage);
  }
}

}  // namespace
}  // namespace tacet
