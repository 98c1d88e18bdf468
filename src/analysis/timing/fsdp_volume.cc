// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/fsdp_volume.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/timing/gpu_activity.h"
#include "analysis/timing/gradient_order.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

using StepRounds = std::map<int64_t, std::vector<const CollectiveRound*>>;

struct Traffic {
  StepRounds gathers, scatters;
};

double BytesPerStep(const StepRounds& steps) {
  std::vector<double> sums;
  for (const auto& [step, list] : steps) {
    double sum = 0;
    for (const CollectiveRound* round : list) sum += static_cast<double>(round->bytes);
    sums.push_back(sum);
  }
  return Median(std::move(sums));
}

// Kernel time of rounds, and how much of it compute ran beside.
class Overlapped {
 public:
  explicit Overlapped(std::span<const Timeline> timelines) : timelines_(timelines) {
    for (const Timeline& timeline : timelines) compute_.push_back(MeasureActivity(timeline).compute);
  }

  void Add(const CollectiveRound& round, double* total, double* hidden, std::vector<double>* durations) const {
    for (const RoundMember& m : round.members) {
      if (m.timeline == kNoIndex || m.start_ns == kNoTime) continue;
      // The trace's own times: alignment moved the round's.
      const Timeline& timeline = timelines_[m.timeline];
      const GpuEvent& event = timeline.gpu[timeline.collectives[m.collective].gpu_event];
      const Interval window{event.start_ns, event.end_ns};
      *total += static_cast<double>(window.length());
      *hidden += static_cast<double>(TotalLength(Clip(compute_[m.timeline], window)));
      if (durations) durations->push_back(static_cast<double>(window.length()));
    }
  }

  double Share(const StepRounds& steps) const {
    double total = 0, hidden = 0;
    for (const auto& [step, list] : steps)
      for (const CollectiveRound* round : list) Add(*round, &total, &hidden, nullptr);
    return total > 0 ? hidden / total : 0;
  }

 private:
  std::span<const Timeline> timelines_;
  std::vector<IntervalSet> compute_;
};

// Elements of all parameters, from the gradients of a step.
double ParameterElements(std::span<const Timeline> timelines) {
  std::vector<double> values;
  for (const Timeline& timeline : timelines)
    for (const TrainingStep& step : timeline.steps) {
      double sum = 0;
      for (const GradientReady& gradient : GradientsOfStep(timeline, step))
        sum += static_cast<double>(gradient.elements);
      if (sum > 0) values.push_back(sum);
    }
  return Median(std::move(values));
}

}  // namespace

FsdpReport AnalyseFsdp(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines) {
  std::map<GroupIndex, Traffic> groups;
  std::map<GroupIndex, int32_t> sizes;
  for (const CollectiveRound& round : rounds) {
    if (round.step < 0 || round.bytes <= 0) continue;
    if (round.kind == OpKind::all_gather) groups[round.group].gathers[round.step].push_back(&round);
    if (round.kind == OpKind::reduce_scatter) groups[round.group].scatters[round.step].push_back(&round);
    sizes[round.group] = round.group_size;
  }
  FsdpReport report;
  const Traffic* chosen = nullptr;
  for (const auto& [group, traffic] : groups) {
    const double gathered = BytesPerStep(traffic.gathers), scattered = BytesPerStep(traffic.scatters);
    if (gathered <= 0 || scattered <= 0 || gathered <= static_cast<double>(report.gather_bytes)) continue;
    chosen = &traffic;
    report.group = group;
    report.ranks = sizes[group];
    report.gather_bytes = std::llround(gathered);
    report.scatter_bytes = std::llround(scattered);
  }
  if (!chosen) return report;
  report.found = true;
  const Overlapped overlapped(timelines);
  report.hidden_gathers = overlapped.Share(chosen->gathers);
  report.hidden_scatters = overlapped.Share(chosen->scatters);

  // Units: the reduce-scatters of a usual step. Gathers are laid to them by size.
  const auto& [number, scatters] = *chosen->scatters.begin();
  std::map<int64_t, double> gathers_of_size, scatters_of_size;
  const auto steps = static_cast<double>(chosen->gathers.size());
  for (const auto& [step, list] : chosen->gathers)
    for (const CollectiveRound* round : list) gathers_of_size[round->bytes] += 1 / steps;
  for (const CollectiveRound* round : scatters) ++scatters_of_size[round->bytes];
  for (const CollectiveRound* round : scatters) {
    FsdpUnit unit;
    unit.bytes = round->bytes;
    unit.gathers = gathers_of_size[round->bytes] / scatters_of_size[round->bytes];
    double total = 0, hidden = 0;
    std::vector<double> durations;
    for (const auto& [step, list] : chosen->gathers)
      for (const CollectiveRound* gather : list)
        if (gather->bytes == unit.bytes) overlapped.Add(*gather, &total, &hidden, &durations);
    unit.gather_ns = std::llround(Median(std::move(durations)));
    unit.hidden = total > 0 ? hidden / total : 0;
    if (unit.gathers > 0 && unit.gathers < 1.5) report.kept_bytes += unit.bytes;
    report.units.push_back(unit);
  }
  const double elements = ParameterElements(timelines);
  const int type_bytes = std::max(1, BytesOf(scatters.front()->type));
  report.parameters_known = elements > 0;
  report.parameter_bytes = elements > 0 ? std::llround(elements * type_bytes) : report.scatter_bytes;
  report.expected_scatter_bytes = report.parameter_bytes;
  report.expected_gather_bytes = 2 * report.parameter_bytes - report.kept_bytes;
  const auto ratio = [](int64_t measured, int64_t expected) {
    return expected > 0 ? static_cast<double>(measured) / static_cast<double>(expected) : 0;
  };
  report.gather_ratio = ratio(report.gather_bytes, report.expected_gather_bytes);
  report.scatter_ratio = ratio(report.scatter_bytes, report.expected_scatter_bytes);
  return report;
}

}  // namespace tacet
