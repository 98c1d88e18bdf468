// SPDX-License-Identifier: Apache-2.0
// Simulates training jobs for tests of rates: what each rank computes, when its operations begin and end, with noise as
// healthy recordings have it; then writes it down as each kind of record would.
//
// Noise, as a share of the step, by the healthy recordings (4 and 8 ranks, 2 to 38 steps each): a rank's lateness has a
// deviation of 2 to 5 %, however many operations a step has; neighbouring steps are unlike (-0.5 to 0.1), since an
// operation that ends late on a rank, by a twentieth of a step at a time, shortens its next wait; one step in a hundred
// and fifty has a hiccup of 15 to 60 %.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "analysis/timing/timeline_fixture.h"
#include "model/incident.h"

namespace tacet {

enum class SyntheticLayout : uint8_t { ddp, fsdp, mesh, pipeline };

struct SyntheticPlan {
  SyntheticLayout layout = SyntheticLayout::ddp;
  int32_t ranks = 4;
  int steps = 80;
  int32_t late = -1;     // who is slowed; -1: nobody
  int64_t delay_ns = 0;  // by so much in every step
  int32_t stages = 0;    // of a pipeline; 0: two, or four of many ranks
  std::vector<double> work;  // of its stages, over the usual; empty: all alike
  double noise = 0.025;  // of a rank's own work in a step; 0: everything is exact
  unsigned seed = 1;
};

class SyntheticJob {
 public:
  explicit SyntheticJob(const SyntheticPlan& plan) : plan_(plan), random_(plan.seed) {
    const auto n = static_cast<size_t>(plan.ranks);
    now_.assign(n, 0);
    busy_.assign(n, 0);
    inner_ = plan.stages > 0 ? plan.stages : plan.ranks % 4 == 0 && plan.ranks >= 16 ? 4 : 2;
    MakeGroups();
    sequence_.assign(groups_.size(), 0);
    operations_.resize(n);
    computed_.resize(n);
    marks_.resize(n);
    for (int step = 0; step < plan.steps; ++step) RunStep();
  }

  // Mean length of a step.
  double step_ns() const {
    return static_cast<double>(*std::max_element(now_.begin(), now_.end())) / static_cast<double>(plan_.steps);
  }

  // Host-noticed kernels, as NCCL Inspector and the black boxes have them.
  Incident AsMeasurements(const std::string& format) const {
    Incident incident = Begin(format);
    for (size_t r = 0; r < operations_.size(); ++r)
      for (const Operation& one : operations_[r]) {
        Measurement m;
        m.rank = Rank{static_cast<int32_t>(r)};
        m.comm = 100 + one.group;
        m.comm_size = static_cast<int32_t>(groups_[one.group].size());
        m.group_rank = {0};
        m.op = one.kind;
        m.peer = {one.peer};
        m.seq = one.seq;
        m.bytes = one.bytes;
        m.enter_wall_ns = kEpoch + one.enter;
        m.start_wall_ns = kEpoch + one.start;
        m.duration_ns = one.end - one.start;
        m.finish_wall_ns = kEpoch + one.end;
        incident.measurements.push_back(m);
      }
    return incident;
  }

  Incident AsFlightRecords() const {
    Incident incident = Begin("flight_recorder");
    for (size_t r = 0; r < operations_.size(); ++r) {
      CallStream& stream = incident.streams.emplace_back();
      stream.source = CallSource::flight_recorder;
      stream.rank = Rank{static_cast<int32_t>(r)};
      for (const Operation& one : operations_[r]) {
        Call& call = stream.calls.emplace_back();
        call.group = static_cast<GroupIndex>(one.group);
        call.kind = one.kind;
        call.seq = static_cast<uint32_t>(one.seq);
        call.type = DataType::float32;
        call.in_elements = call.out_elements = one.bytes / 4;
        call.enter_wall_ns = kEpoch + one.enter;
        call.duration_ms = static_cast<float>(static_cast<double>(one.end - one.start) / 1e6);
        if (!IsPointToPoint(one.kind)) continue;
        call.flags |= kPointToPoint;
        call.peer = {one.peer};
      }
    }
    return incident;
  }

  Incident AsTraces() const {
    Incident incident = Begin("torch_trace");
    for (size_t r = 0; r < operations_.size(); ++r) {
      Timeline& timeline = incident.timelines.emplace_back(MakeTimeline(static_cast<int32_t>(r)));
      timeline.steps = marks_[r];
      timeline.begin_ns = 0;
      struct Event {
        int64_t start, end;
        const Operation* operation;
      };
      std::vector<Event> events;
      for (const auto& [start, end] : computed_[r]) events.push_back({start, end, nullptr});
      for (const Operation& one : operations_[r]) events.push_back({one.start, one.end, &one});
      std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.start < b.start; });
      for (const Event& event : events) {
        if (!event.operation) {
          AddGpu(timeline, GpuWork::compute, event.start, event.end, event.start - 1000);
          continue;
        }
        const Operation& one = *event.operation;
        AddCollective(timeline, one.kind, one.enter, one.start, one.end, one.bytes / 4);
        timeline.collectives.back().group = static_cast<GroupIndex>(one.group);
        timeline.collectives.back().peer = {one.peer};
        timeline.collectives.back().group_size = static_cast<int32_t>(groups_[one.group].size());
      }
    }
    return incident;
  }

 private:
  static constexpr int64_t kEpoch = 1'700'000'000'000'000'000, kStep = 100'000'000, kMiB = 1 << 20;
  static constexpr int kMicrobatches = 4;

  struct Operation {
    uint32_t group = 0;
    OpKind kind = OpKind::all_reduce;
    int64_t seq = 0, bytes = 0, enter = 0, start = 0, end = 0;
    int32_t peer = -1;
  };

  Incident Begin(const std::string& format) const {
    Incident incident;
    incident.files.emplace_back();
    incident.files.back().format = format;
    for (size_t g = 0; g < groups_.size(); ++g) {
      Group& group = incident.groups.emplace_back();
      group.name = std::to_string(g);
      group.comm_id = 100 + g;
      for (const int32_t rank : groups_[g]) group.members.push_back({rank});
    }
    return incident;
  }

  void MakeGroups() {
    const int32_t n = plan_.ranks;
    std::vector<int32_t> world(static_cast<size_t>(n));
    for (int32_t r = 0; r < n; ++r) world[static_cast<size_t>(r)] = r;
    groups_.push_back(world);
    if (plan_.layout != SyntheticLayout::mesh && plan_.layout != SyntheticLayout::pipeline) return;
    // Inner groups: neighbours (tensor parallel, or the stages of one pipeline); outer: the same place in each.
    for (int32_t first = 0; first < n; first += inner_)
      groups_.emplace_back(world.begin() + first, world.begin() + first + inner_);
    for (int32_t place = 0; place < inner_; ++place) {
      groups_.emplace_back();
      for (int32_t r = place; r < n; r += inner_) groups_.back().push_back(r);
    }
  }

  unsigned OperationsPerStep() const {
    switch (plan_.layout) {
      case SyntheticLayout::ddp: return 4;
      case SyntheticLayout::fsdp: return 9;
      case SyntheticLayout::mesh: return 5;
      case SyntheticLayout::pipeline: return 1;
    }
    return 1;
  }

  int64_t Draw(double share) { return static_cast<int64_t>(share * static_cast<double>(kStep)); }

  // What a rank takes longer on its own in this step, whatever the reason.
  std::vector<int64_t> DrawExtra() {
    std::normal_distribution<double> usual(0, std::max(plan_.noise, 1e-9));
    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<int64_t> out;
    for (int32_t r = 0; r < plan_.ranks; ++r) {
      double extra = std::fabs(usual(random_));
      if (plan_.noise > 0 && chance(random_) < 1.0 / 150) extra += 0.15 + 0.45 * chance(random_);
      // A stage that begins late waits so much less for its first microbatch: there the delay is in every microbatch.
      const bool at_once = r == plan_.late && plan_.layout != SyntheticLayout::pipeline;
      out.push_back(Draw(extra) + (at_once ? plan_.delay_ns : 0));
    }
    return out;
  }

  void Compute(size_t r, int64_t ns) {
    computed_[r].emplace_back(now_[r], now_[r] + ns);
    now_[r] += ns;
  }

  // All members meet; each ends raggedly. An operation beside the compute does not hold that up.
  void Meet(uint32_t g, OpKind kind, int64_t bytes, int64_t transfer, bool beside) {
    int64_t last = 0;
    const int64_t seq = ++sequence_[g];
    for (const int32_t rank : groups_[g]) {
      const auto r = static_cast<size_t>(rank);
      last = std::max(last, std::max(now_[r], busy_[r]));
    }
    for (const int32_t rank : groups_[g]) {
      const auto r = static_cast<size_t>(rank);
      const int64_t start = std::max(now_[r], busy_[r]);
      const bool ragged = plan_.noise > 0 && random_() % 100 < 60u / OperationsPerStep();
      const int64_t late_end = ragged ? Draw(0.05) : Draw(0.002) * static_cast<int64_t>(random_() % 3);
      const int64_t end = last + transfer + late_end;
      // The host runs ahead of its compute, whatever its communication waits for, but not into the step before.
      operations_[r].push_back({g, kind, seq, bytes, std::max(now_[r] - 2'000'000, begin_[r]), start, end});
      busy_[r] = end;
      if (!beside) now_[r] = end;
    }
  }

  void RunStep() {
    const auto n = static_cast<size_t>(plan_.ranks);
    const std::vector<int64_t> extra = DrawExtra();
    begin_ = now_;
    for (size_t r = 0; r < n; ++r) now_[r] += extra[r];  // on the host: its GPU has nothing to do
    switch (plan_.layout) {
      case SyntheticLayout::ddp: RunDdp(); break;
      case SyntheticLayout::fsdp: RunFsdp(); break;
      case SyntheticLayout::mesh: RunMesh(); break;
      case SyntheticLayout::pipeline: RunPipeline(); break;
    }
    for (size_t r = 0; r < n; ++r) {
      now_[r] = std::max(now_[r], busy_[r]);
      Compute(r, Draw(0.05));
      marks_[r].push_back({static_cast<int64_t>(marks_[r].size()), begin_[r], now_[r]});
    }
  }

  void ComputeAll(double share) {
    for (size_t r = 0; r < now_.size(); ++r) Compute(r, Draw(share));
  }

  void RunDdp() {
    ComputeAll(0.3);
    for (int bucket = 0; bucket < 4; ++bucket) {
      ComputeAll(0.12);
      Meet(0, OpKind::all_reduce, (20 + bucket) * kMiB, Draw(0.04), true);
    }
  }

  void RunFsdp() {
    for (int layer = 0; layer < 3; ++layer) {
      Meet(0, OpKind::all_gather, 10 * kMiB, Draw(0.03), false);
      ComputeAll(0.08);
    }
    for (int layer = 0; layer < 3; ++layer) {
      Meet(0, OpKind::all_gather, 10 * kMiB, Draw(0.03), false);
      ComputeAll(0.14);
      Meet(0, OpKind::reduce_scatter, 10 * kMiB, Draw(0.03), false);
    }
  }

  void RunMesh() {
    const auto inner = static_cast<uint32_t>(plan_.ranks / inner_);
    for (int layer = 0; layer < 4; ++layer) {
      ComputeAll(0.17);
      for (uint32_t g = 1; g <= inner; ++g) Meet(g, OpKind::all_reduce, 4 * kMiB, Draw(0.02), false);
    }
    for (uint32_t g = inner + 1; g < groups_.size(); ++g) Meet(g, OpKind::all_reduce, 30 * kMiB, Draw(0.12), false);
  }

  // A receive lasts from when its rank is ready for it until the data have come.
  void Pass(int32_t from, int32_t to, uint32_t group) {
    const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
    const int64_t sent = now_[a] + Draw(0.002);
    const int64_t arrived = std::max(now_[b], sent) + Draw(0.003);
    const auto place = [&](int32_t rank) { return rank % inner_; };
    operations_[a].push_back({group, OpKind::send, 0, kMiB, now_[a] - 1000, now_[a], sent, place(to)});
    operations_[b].push_back({group, OpKind::recv, 0, kMiB, now_[b] - 1000, now_[b], arrived, place(from)});
    now_[a] = sent;
    now_[b] = arrived;
  }

  void RunPipeline() {
    const auto pipelines = static_cast<uint32_t>(plan_.ranks / inner_);
    for (const bool forward : {true, false})
      for (int micro = 0; micro < kMicrobatches; ++micro)
        for (uint32_t g = 1; g <= pipelines; ++g)
          for (int32_t stage = 0; stage < inner_; ++stage) {
            const std::vector<int32_t>& chain = groups_[g];
            const auto at = static_cast<size_t>(forward ? stage : inner_ - 1 - stage);
            if (stage > 0) Pass(chain[forward ? at - 1 : at + 1], chain[at], g);
            const int64_t more = chain[at] == plan_.late ? plan_.delay_ns / (2 * kMicrobatches) : 0;
            const double work = plan_.work.empty() ? 1 : plan_.work[at];
            Compute(static_cast<size_t>(chain[at]), Draw((forward ? 0.03 : 0.06) * work) + more);
          }
    for (uint32_t g = pipelines + 1; g < groups_.size() && pipelines > 1; ++g)
      Meet(g, OpKind::all_reduce, 30 * kMiB, Draw(0.1), false);
  }

  const SyntheticPlan plan_;
  std::mt19937 random_;
  int32_t inner_ = 2;
  std::vector<std::vector<int32_t>> groups_;  // the world first
  std::vector<int64_t> sequence_;
  std::vector<int64_t> begin_;       // of the step
  std::vector<int64_t> now_, busy_;  // when a rank's compute is so far, and its communication
  std::vector<std::vector<Operation>> operations_;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> computed_;
  std::vector<std::vector<TrainingStep>> marks_;
};

}  // namespace tacet
