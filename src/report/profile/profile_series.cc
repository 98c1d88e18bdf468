// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_series.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr BudgetPart kParts[] = {
    {kComputeWithoutCommunication, &TimeBudget::compute_only_ns},
    {kHiddenCommunication, &TimeBudget::hidden_ns},
    {kExposedCommunication, &TimeBudget::exposed_ns},
    {"copies", &TimeBudget::copies_ns},
    {"idle: host wait", &TimeBudget::host_wait_ns},
    {"idle: launch", &TimeBudget::launch_ns},
    {"idle: waiting data", &TimeBudget::data_wait_ns},
};

void AddBudgets(const std::vector<RankBudget>& budgets, std::vector<ProfileSeries>& out) {
  std::map<int64_t, std::vector<const StepBudget*>> by_step;
  for (const RankBudget& rank : budgets)
    for (const StepBudget& step : rank.steps) by_step[step.step.number].push_back(&step);
  ProfileSeries times{"step time", {}};
  for (const auto& [number, steps] : by_step) {
    double sum = 0;  // the parts below are means of the ranks, and add up to this
    for (const StepBudget* step : steps) sum += static_cast<double>(step->budget.total_ns());
    times.values.push_back(sum / static_cast<double>(steps.size()));
  }
  if (times.values.empty()) return;
  out.push_back(std::move(times));
  for (const BudgetPart& part : kParts) {
    ProfileSeries series{std::string(part.name), {}};
    for (const auto& [number, steps] : by_step) {
      double sum = 0;
      for (const StepBudget* step : steps) sum += static_cast<double>(step->budget.*part.value);
      series.values.push_back(sum / static_cast<double>(steps.size()));
    }
    out.push_back(std::move(series));
  }
}

int64_t ClassOf(int64_t bytes) {
  return bytes <= 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(bytes, int64_t{1} << 61))));
}

struct LineSamples {
  std::map<int64_t, std::pair<double, double>> by_step;  // wait of the mean member, transfer
  int64_t next = -1;                                     // key of the next operation without a step
  std::vector<double> per_mib;                           // ns of transfer per MiB, by call
  std::map<int64_t, double> bytes;                       // by step
};

void AddRound(const CollectiveRound& round, const RoundTiming& timing, LineSamples& line) {
  const int64_t step = round.step >= 0 ? round.step : line.next--;
  auto& [wait, transfer] = line.by_step[step];
  line.bytes[step] += static_cast<double>(std::max<int64_t>(0, round.bytes));
  wait += static_cast<double>(timing.total_wait_ns) / static_cast<double>(round.members.size());
  transfer += static_cast<double>(timing.transfer_ns);
  if (round.bytes > 0)
    line.per_mib.push_back(static_cast<double>(timing.transfer_ns) / (static_cast<double>(round.bytes) / (1 << 20)));
}

void AddLine(const std::string& name, const LineSamples& line, std::vector<ProfileSeries>& out) {
  std::vector<double> bytes;
  for (const auto& [step, sum] : line.bytes) bytes.push_back(sum);
  const double usual = Median(std::move(bytes));
  ProfileSeries wait{name + ": wait", {}, usual}, transfer{name + ": transfer", {}, usual};
  for (const auto& [step, sample] : line.by_step) {
    wait.values.push_back(sample.first);
    transfer.values.push_back(sample.second);
  }
  const std::string each = transfer.name + std::string(kPerMiB);
  out.push_back(std::move(wait));
  out.push_back(std::move(transfer));
  if (!line.per_mib.empty()) out.push_back({each, line.per_mib, 0});
}

// Of every kind of operation in a pipeline timeline the time of the mean worker, by step.
void AddPipelineKinds(const PipelineTrace& trace, std::vector<ProfileSeries>& out) {
  std::map<PipelineOp, std::map<int32_t, double>> sums;
  for (const PipelineOperation& operation : trace.operations)
    if (operation.op != PipelineOp::other)
      sums[operation.op][operation.step] += static_cast<double>(operation.end_ns - operation.start_ns);
  const auto workers = static_cast<double>(std::max(1, trace.dp_size)) * std::max(1, trace.stages);
  for (const auto& [op, steps] : sums) {
    ProfileSeries series{std::string(Name(op)) + ", mean of all workers", {}};
    for (const auto& [step, ns] : steps) series.values.push_back(ns / workers);
    out.push_back(std::move(series));
  }
}

}  // namespace

std::span<const BudgetPart> BudgetParts() { return kParts; }

std::string DescribeSizeClass(int64_t size_class) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (size_class < 1024) break;
    size_class /= 1024;
    unit = larger;
  }
  return std::to_string(size_class) + " " + unit;
}

std::string DescribeTableLine(OpKind kind, std::string_view group, int64_t size_class) {
  std::string out = std::string(Name(kind)) + " on " + std::string(group);
  return size_class > 0 ? out + ", up to " + DescribeSizeClass(size_class) : out;
}

std::vector<ProfileSeries> CollectSeries(const Incident& incident, const GroupNames& names,
                                         const std::vector<RankBudget>& budgets,
                                         const std::vector<CollectiveRound>& rounds) {
  std::vector<ProfileSeries> out;
  AddBudgets(budgets, out);
  std::map<std::pair<std::string, OpKind>, std::map<int64_t, LineSamples>> lines;
  for (const CollectiveRound& round : rounds) {
    const RoundTiming timing = TimeRound(round);
    if (timing.transfer_ns < 0 || round.members.empty()) continue;
    auto& sizes = lines[{names.Role(round.group), round.kind}];
    AddRound(round, timing, sizes[ClassOf(round.bytes)]);
    AddRound(round, timing, sizes[-1]);
  }
  for (const auto& [key, sizes] : lines)
    for (const auto& [size_class, line] : sizes) {
      // One size class only: the line of all sizes is the same.
      if (size_class == -1 && sizes.size() == 2) continue;
      const std::string name = DescribeTableLine(key.second, key.first, size_class);
      AddLine(size_class == -1 ? name + ", all sizes" : name, line, out);
    }
  for (const PipelineTrace& trace : incident.pipeline_traces) {
    std::map<int32_t, std::pair<int64_t, int64_t>> windows;
    for (const PipelineOperation& operation : trace.operations) {
      auto& window = windows.try_emplace(operation.step, operation.start_ns, operation.end_ns).first->second;
      window.first = std::min(window.first, operation.start_ns);
      window.second = std::max(window.second, operation.end_ns);
    }
    ProfileSeries times{"step time", {}};
    for (const auto& [step, window] : windows)
      times.values.push_back(static_cast<double>(window.second - window.first));
    if (!out.empty() || times.values.empty()) continue;
    out.push_back(std::move(times));
    AddPipelineKinds(trace, out);
  }
  return out;
}

}  // namespace tacet
