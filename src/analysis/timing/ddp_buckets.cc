// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/ddp_buckets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/timing/gradient_order.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr double kCapsMb[] = {1, 2, 5, 10, 25, 50, 100, 250, 1000};
constexpr double kMegabyte = 1024 * 1024;  // as bucket_cap_mb counts
// Predictions this close to the present one are no reason to change anything.
constexpr double kWorthwhile = 0.02;
// A model that misses the recorded step by more says nothing of other buckets.
constexpr double kTrustedMiss = 0.1;

// One gradient of a step: how many bytes, and when it is ready, from the start of the step.
struct Gradient {
  double bytes = 0, ready_ns = 0;
  size_t bucket = 0;  // of the recording
};

struct StepRecord {
  std::vector<Gradient> gradients;
  std::vector<double> bucket_bytes;
  double last_end_ns = 0, length_ns = 0;
};

// When all GPU work that a rank had launched until a moment has ended.
class WorkDone {
 public:
  explicit WorkDone(const Timeline& timeline) {
    for (const GpuEvent& event : timeline.gpu)
      if (event.work != GpuWork::communication && event.launch != kNoIndex)
        ends_.emplace_back(timeline.launches[event.launch].start_ns, event.end_ns);
    std::sort(ends_.begin(), ends_.end());
    for (size_t i = 1; i < ends_.size(); ++i) ends_[i].second = std::max(ends_[i].second, ends_[i - 1].second);
  }
  int64_t At(int64_t ns) const {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), std::pair(ns, INT64_MAX));
    return after == ends_.begin() ? ns : std::max(ns, std::prev(after)->second);
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> ends_;
};

const TrainingStep* FindStep(const Timeline& timeline, int64_t number) {
  for (const TrainingStep& step : timeline.steps)
    if (step.number == number) return &step;
  return nullptr;
}

double BytesOf(const GradientReady& gradient) {
  return static_cast<double>(gradient.elements) * std::max(1, BytesOf(gradient.type));
}

double GradientBytes(const Timeline& timeline, const TrainingStep& step) {
  double bytes = 0;
  for (const GradientReady& gradient : GradientsOfStep(timeline, step)) bytes += BytesOf(gradient);
  return bytes;
}

using StepRounds = std::map<int64_t, std::vector<const CollectiveRound*>>;

class Analysis {
 public:
  Analysis(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines)
      : rounds_(rounds), timelines_(timelines) {}

  DdpReport Run() {
    if (!FindGroup()) return report_;
    report_.found = true;
    DescribeBuckets();
    report_.fit = FitLatencyBandwidth(rounds_, report_.group, OpKind::all_reduce);
    Gather();
    Predict();
    return report_;
  }

 private:
  // The group whose all-reduces carry the gradients.
  bool FindGroup() {
    std::map<GroupIndex, StepRounds> reduces;
    std::map<GroupIndex, size_t> others;
    for (const CollectiveRound& round : rounds_) {
      if (round.step < 0) continue;
      if (round.kind == OpKind::all_reduce && round.bytes > 0)
        reduces[round.group][round.step].push_back(&round);
      else if (!IsPointToPoint(round.kind))
        ++others[round.group];
    }
    std::optional<GroupIndex> best;
    double most = 0;
    for (auto& [group, steps] : reduces) {
      const double bytes = BytesPerStep(steps);
      const double wanted = WantedBytes();
      const bool matches = wanted > 0 ? std::fabs(bytes - wanted) <= 0.05 * wanted
                                      : bytes >= kMegabyte && others[group] == 0 && Computes();
      if (!matches || bytes <= most) continue;
      most = bytes;
      best = group;
    }
    if (!best) return false;
    report_.group = *best;
    steps_ = std::move(reduces[*best]);
    // A step that differs from the others (a loss that is averaged now and then) tells nothing.
    std::map<size_t, size_t> counts;
    for (const auto& [step, list] : steps_) ++counts[list.size()];
    const size_t usual = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                           return a.second < b.second;
                         })->first;
    std::erase_if(steps_, [&](const auto& entry) { return entry.second.size() != usual; });
    report_.gradient_bytes = std::llround(most);
    return true;
  }

  bool Computes() const {
    return std::any_of(timelines_.begin(), timelines_.end(), [](const Timeline& timeline) {
      return std::any_of(timeline.gpu.begin(), timeline.gpu.end(),
                         [](const GpuEvent& event) { return event.work == GpuWork::compute; });
    });
  }

  static double BytesPerStep(const StepRounds& steps) {
    std::vector<double> sums;
    for (const auto& [step, list] : steps) {
      double sum = 0;
      for (const CollectiveRound* round : list) sum += static_cast<double>(round->bytes);
      sums.push_back(sum);
    }
    return Median(std::move(sums));
  }

  double WantedBytes() const {
    std::vector<double> values;
    for (const Timeline& timeline : timelines_)
      for (const TrainingStep& step : timeline.steps)
        if (const double bytes = GradientBytes(timeline, step); bytes > 0) values.push_back(bytes);
    return Median(std::move(values));
  }

  void DescribeBuckets() {
    const size_t count = steps_.empty() ? 0 : steps_.begin()->second.size();
    for (size_t b = 0; b < count; ++b) {
      DdpBucket bucket;
      std::vector<double> ready, start, end, transfer;
      for (const auto& [number, list] : steps_) {
        const CollectiveRound& round = *list[b];
        bucket.bytes = round.bytes;
        transfer.push_back(static_cast<double>(TimeRound(round).transfer_ns));
        for (const RoundMember& m : round.members) {
          const TrainingStep* step = m.timeline == kNoIndex ? nullptr : FindStep(timelines_[m.timeline], number);
          if (!step || m.start_ns == kNoTime) continue;
          ready.push_back(static_cast<double>(m.enter_ns - step->start_ns));
          start.push_back(static_cast<double>(m.start_ns - step->start_ns));
          end.push_back(static_cast<double>(m.end_ns - step->start_ns));
        }
      }
      bucket.ready_ns = std::llround(Median(ready));
      bucket.start_ns = std::llround(Median(start));
      bucket.end_ns = std::llround(Median(end));
      bucket.transfer_ns = std::llround(Median(transfer));
      report_.buckets.push_back(bucket);
    }
  }

  // What happened on every rank in every step, and what a bucket's call costs the host.
  void Gather() {
    std::vector<double> call_costs, lengths;
    std::map<uint32_t, WorkDone> done;
    for (const auto& [number, list] : steps_) {
      for (const RoundMember& first : list.front()->members) {
        if (first.timeline == kNoIndex) continue;
        const Timeline& timeline = timelines_[first.timeline];
        const TrainingStep* step = FindStep(timeline, number);
        if (!step) continue;
        const WorkDone& work = done.try_emplace(first.timeline, timeline).first->second;
        StepRecord record;
        record.length_ns = static_cast<double>(step->end_ns - step->start_ns);
        lengths.push_back(record.length_ns);
        std::vector<std::pair<int64_t, double>> enters;  // of the buckets
        for (const CollectiveRound* round : list) {
          const auto own = std::find_if(round->members.begin(), round->members.end(),
                                        [&](const auto& m) { return m.timeline == first.timeline; });
          if (own == round->members.end()) continue;
          const TraceCollective& operation = timeline.collectives[own->collective];
          const GpuEvent* event = operation.gpu_event == kNoIndex ? nullptr : &timeline.gpu[operation.gpu_event];
          if (event)
            record.last_end_ns = std::max(record.last_end_ns, static_cast<double>(event->end_ns - step->start_ns));
          if (event && event->launch != kNoIndex) {
            const Launch& launch = timeline.launches[event->launch];
            call_costs.push_back(static_cast<double>(launch.start_ns + launch.duration_ns - operation.enter_ns));
          }
          enters.emplace_back(operation.enter_ns, static_cast<double>(round->bytes));
          record.bucket_bytes.push_back(static_cast<double>(round->bytes));
        }
        AddGradients(timeline, *step, work, enters, record);
        if (!record.gradients.empty()) records_.push_back(std::move(record));
      }
    }
    call_ns_ = Median(std::move(call_costs));
    report_.step_ns = Median(std::move(lengths));
  }

  static void AddGradients(const Timeline& timeline, const TrainingStep& step, const WorkDone& work,
                           const std::vector<std::pair<int64_t, double>>& enters, StepRecord& record) {
    const auto ready = [&](int64_t ns) { return static_cast<double>(work.At(ns) - step.start_ns); };
    const auto bucket_at = [&](int64_t ns) {
      return static_cast<size_t>(
          std::count_if(enters.begin(), enters.end(), [&](const auto& enter) { return enter.first < ns; }));
    };
    for (const GradientReady& gradient : GradientsOfStep(timeline, step))
      record.gradients.push_back({BytesOf(gradient), ready(gradient.ns), bucket_at(gradient.ns)});
    if (!record.gradients.empty()) return;
    // Without gradients in the trace each bucket stands for one: caps below its size cannot be told.
    for (size_t b = 0; b < enters.size(); ++b)
      record.gradients.push_back({enters[b].second, ready(enters[b].first), b});
  }

  // Step time with buckets closed at `cap` bytes; with cap 0 the buckets of the recording.
  double StepTime(const StepRecord& record, double cap, size_t* count) const {
    double end = 0, ready = 0, bytes = 0;
    size_t closed = 0;
    const auto close = [&] {
      if (bytes <= 0) return;
      end = std::max(end, ready) + report_.fit.Time(bytes);
      bytes = ready = 0;
      ++closed;
    };
    if (cap <= 0) {
      size_t at = 0;
      double filled = 0;
      for (const Gradient& gradient : record.gradients) {
        bytes += gradient.bytes;
        filled += gradient.bytes;
        ready = std::max(ready, gradient.ready_ns);
        if (at < record.bucket_bytes.size() && filled >= 0.999 * record.bucket_bytes[at]) {
          close();
          filled = 0;
          ++at;
        }
      }
    } else {
      for (const Gradient& gradient : record.gradients) {
        bytes += gradient.bytes;
        // Every call of the host that is more, or less, than in the recording moves what comes after it.
        const double moved = (static_cast<double>(closed) - static_cast<double>(gradient.bucket)) * call_ns_;
        ready = std::max(ready, gradient.ready_ns + moved);
        if (bytes >= cap) close();
      }
    }
    close();
    if (count) *count = closed;
    return end + std::max(0.0, record.length_ns - record.last_end_ns);
  }

  double MeanStepTime(double cap, size_t* count) const {
    double sum = 0;
    for (const StepRecord& record : records_) sum += StepTime(record, cap, count);
    return records_.empty() ? 0 : sum / static_cast<double>(records_.size());
  }

  void Predict() {
    if (records_.empty() || !report_.fit.valid) return;
    report_.predicted_ns = MeanStepTime(0, nullptr);
    double recorded = 0;
    for (const StepRecord& record : records_) recorded += record.length_ns / static_cast<double>(records_.size());
    report_.trusted = std::fabs(report_.predicted_ns - recorded) <= kTrustedMiss * recorded;
    if (!report_.trusted) return;
    double best = report_.predicted_ns * (1 - kWorthwhile);
    for (const double cap : kCapsMb) {
      DdpPrediction prediction;
      prediction.cap_mb = cap;
      prediction.step_ns = MeanStepTime(cap * kMegabyte, &prediction.buckets);
      report_.predictions.push_back(prediction);
      if (prediction.step_ns >= best) continue;
      best = prediction.step_ns;
      report_.recommended_cap_mb = cap;
    }
    if (report_.recommended_cap_mb > 0) report_.gain = 1 - best / report_.predicted_ns;
  }

  const std::vector<CollectiveRound>& rounds_;
  std::span<const Timeline> timelines_;
  DdpReport report_;
  StepRounds steps_;
  std::vector<StepRecord> records_;
  double call_ns_ = 0;
};

}  // namespace

DdpReport AnalyseDdp(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines) {
  return Analysis(rounds, timelines).Run();
}

}  // namespace tacet
