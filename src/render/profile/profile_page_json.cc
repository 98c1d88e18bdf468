// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_page_json.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json_writer.h"
#include "render/profile/profile_strategy_json.h"
#include "render/profile/profile_words.h"
#include "report/profile/profile_series.h"

namespace tacet {
namespace {

// Four digits are more than a picture shows.
double Rounded(double share) { return std::round(share * 1e4) / 1e4; }

int64_t Whole(double ns) { return std::isfinite(ns) && std::fabs(ns) < 9e18 ? std::llround(ns) : 0; }

void WriteParts(JsonWriter& json, const TimeBudget& budget) {
  json.BeginArray();
  for (const BudgetPart& part : BudgetParts()) json.Int(budget.*part.value);
  json.EndArray();
}

// Hosts and devices are few, ranks many: a rank names them by index.
class NameList {
 public:
  int64_t Index(const std::string& name) {
    const auto [at, added] = index_.try_emplace(name, static_cast<int64_t>(names_.size()));
    if (added) names_.push_back(name);
    return at->second;
  }
  void Write(JsonWriter& json) const {
    json.BeginArray();
    for (const std::string& name : names_) json.String(name);
    json.EndArray();
  }

 private:
  std::map<std::string, int64_t> index_;
  std::vector<std::string> names_;
};

// [rank, host, device, steps, hidden fraction, overlap efficiency, parts...]
void WritePageRanks(JsonWriter& json, const ProfileReport& profile) {
  NameList hosts, devices;
  json.Key("ranks").BeginArray();
  for (const ProfileRank& rank : profile.budgets) {
    json.BeginArray().Int(rank.rank.value).Int(hosts.Index(rank.host)).Int(devices.Index(rank.device));
    json.Int(static_cast<int64_t>(rank.steps));
    json.Double(Rounded(rank.overlap.ratio())).Double(Rounded(rank.overlap.efficiency()));
    for (const BudgetPart& part : BudgetParts()) json.Int(rank.mean.*part.value);
    json.EndArray();
  }
  json.EndArray().Key("hosts");
  hosts.Write(json);
  json.Key("devices");
  devices.Write(json);
}

// The mean of values[begin, end), and the least and the most.
void WriteSummary(JsonWriter& json, const std::vector<double>& values, size_t begin, size_t end, bool extremes) {
  double sum = 0, least = values[begin], most = values[begin];
  for (size_t i = begin; i < end; ++i) {
    sum += values[i];
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  json.Int(Whole(sum / static_cast<double>(end - begin)));
  if (extremes) json.Int(Whole(least)).Int(Whole(most));
}

// [first step from 1, how many, mean time, least, most, parts...] for each column; parts only where there are budgets.
void WriteSteps(JsonWriter& json, const ProfileReport& profile) {
  const std::span<const BudgetPart> parts = BudgetParts();
  const std::vector<ProfileSeries>& series = profile.series;
  json.Key("steps_drawn").BeginArray();
  if (!series.empty() && series[0].name == "step time" && !series[0].values.empty()) {
    const size_t steps = series[0].values.size();
    bool divided = series.size() > parts.size();
    for (size_t i = 0; divided && i < parts.size(); ++i)
      divided = series[i + 1].name == parts[i].name && series[i + 1].values.size() == steps;
    const size_t columns = std::min(steps, kMostStepColumns);
    for (size_t column = 0; column < columns; ++column) {
      const size_t begin = steps * column / columns, end = steps * (column + 1) / columns;
      json.BeginArray().Int(static_cast<int64_t>(begin) + 1).Int(static_cast<int64_t>(end - begin));
      WriteSummary(json, series[0].values, begin, end, true);
      for (size_t i = 0; divided && i < parts.size(); ++i) WriteSummary(json, series[i + 1].values, begin, end, false);
      json.EndArray();
    }
  }
  json.EndArray();
}

void WritePageTable(JsonWriter& json, const ProfileReport& profile) {
  const std::vector<ProfileTableRow>& table = profile.table_by_role;
  json.Key("table_left_out").Int(static_cast<int64_t>(table.size() - std::min(table.size(), kMostPageLines)));
  json.Key("table").BeginArray();
  for (size_t i = 0; i < table.size() && i < kMostPageLines; ++i) {
    const ProfileTableRow& line = table[i];
    const CommunicationRow& row = line.row;
    const bool namesakes = std::any_of(table.begin(), table.end(), [&](const ProfileTableRow& other) {
      return other.group == line.group && other.members != line.members;
    });
    json.BeginObject().Key("group").String(namesakes && line.groups == 1 ? line.group + ", " + line.members
                                                                         : line.group);
    json.Key("groups").Int(static_cast<int64_t>(line.groups));
    json.Key("ranks").Int(row.group_size);
    json.Key("operation").String(Name(row.kind));
    json.Key("size_class").String(row.size_class > 0 ? DescribeSizeClass(row.size_class) : "");
    json.Key("size").Int(row.size_class);
    json.Key("calls").Int(static_cast<int64_t>(row.calls));
    json.Key("bytes").Int(row.bytes);
    json.Key("wait_ns").Int(row.compared > 0 && row.plausible ? row.mean_wait_ns
                                                              : -1);  // of the mean member; -1: unknown
    json.Key("transfer_ns").Int(row.plausible ? row.transfer_ns : -1);
    json.Key("wait_share").Double(Rounded(line.wait_share));
    json.Key("algorithm_gbs").Double(row.algorithm_gbs);
    json.Key("bus_gbs").Double(row.bus_gbs);
    json.Key("best_bus_gbs").Double(row.best_bus_gbs);
    json.Key("peak_gbs").Double(line.peak_gbs);
    json.Key("several_hosts").Bool(line.several_hosts);
    json.EndObject();
  }
  json.EndArray().Key("groups").BeginArray();
  for (size_t i = 0; i < profile.groups.size() && i < kMostPageLines; ++i) {
    const GroupShare& group = profile.groups[i];
    json.BeginObject().Key("group").String(group.group).Key("groups").Int(static_cast<int64_t>(group.groups));
    json.Key("ranks").Int(group.size).Key("calls").Int(static_cast<int64_t>(group.calls));
    json.Key("share").Double(Rounded(group.share)).EndObject();
  }
  json.EndArray();
}

void WritePageStragglers(JsonWriter& json, const StragglerReport& report) {
  json.Key("cost_share").Double(Rounded(report.cost_share));
  json.Key("operations").Int(static_cast<int64_t>(report.rounds));
  json.Key("stragglers").BeginArray();
  for (const Straggler& one : report.stragglers) {
    json.BeginObject().Key("rank").Int(one.rank.value);
    json.Key("pattern").String(Name(one.pattern)).Key("origin").String(Name(one.origin));
    json.Key("confidence").String(Name(one.trust));
    json.Key("share").Double(Rounded(one.share)).Key("late_ns").Int(one.late_ns);
    json.Key("cost")
        .Double(Rounded(one.cost))
        .Key("low")
        .Double(Rounded(one.low))
        .Key("high")
        .Double(Rounded(one.high));
    json.Key("z").Double(Rounded(one.z));
    json.Key("late_steps").Int(static_cast<int64_t>(one.late_steps));
    json.Key("steps").Int(static_cast<int64_t>(one.steps));
    json.Key("dp_rank").Int(one.dp_rank).Key("stage").Int(one.stage).EndObject();
  }
  // [rank, operations, last in, late steps, steps, mean ns a step, worst ns, share]
  json.EndArray().Key("lateness").BeginArray();
  for (const RankLateness& one : report.ranks) {
    json.BeginArray().Int(one.rank.value).Int(static_cast<int64_t>(one.rounds)).Int(static_cast<int64_t>(one.last));
    json.Int(static_cast<int64_t>(one.late_steps)).Int(static_cast<int64_t>(one.steps));
    json.Int(one.mean_ns).Int(one.worst_ns).Double(Rounded(one.share)).EndArray();
  }
  json.EndArray();
}

// [rank, allocated, reserved, device, stays, passing, parameters or null, fragmentation, out of memory, pressure]
void WriteMemory(JsonWriter& json, const ProfileReport& profile) {
  json.Key("memory").BeginArray();
  for (const ProfileRank& rank : profile.budgets) {
    if (!rank.memory) continue;
    const MemoryUse& use = *rank.memory;
    json.BeginArray().Int(rank.rank.value).Int(use.peak_allocated_bytes).Int(use.peak_reserved_bytes);
    json.Int(use.device_bytes).Int(use.split ? use.split->staying_bytes : use.lowest_allocated_bytes);
    json.Int(use.peak_allocated_bytes - use.lowest_allocated_bytes);
    use.split ? json.Int(use.split->parameter_bytes) : json.Null();
    json.Double(Rounded(use.fragmentation)).Bool(use.out_of_memory).Bool(use.pressure).EndArray();
  }
  json.EndArray();
}

void WriteHead(JsonWriter& json, const ProfileReport& profile) {
  json.Key("job").String(profile.job).Key("source").String(profile.source);
  json.Key("world_size").Int(profile.world_size).Key("ranks_seen").Int(static_cast<int64_t>(profile.ranks.size()));
  json.Key("steps").Int(static_cast<int64_t>(profile.steps)).Key("step_ns").Int(profile.step_ns);
  json.Key("verdict").String(Name(profile.verdict)).Key("heading").String(HeadingWord(profile));
  json.Key("headline").String(profile.headline).Key("setup").String(profile.setup);
  json.Key("not_judged").String(profile.stragglers.stragglers.empty() ? WhyNotJudged(profile) : std::string());
  json.Key("advice").BeginArray();
  for (const Advice& one : profile.advice) {
    json.BeginObject().Key("what").String(one.what).Key("why").String(one.why);
    json.Key("gain").Double(Rounded(one.gain)).Key("at_most").Bool(one.at_most);
    json.Key("gain_low");
    one.high > one.low ? json.Double(Rounded(one.low)) : json.Null();
    json.Key("gain_high");
    one.high > one.low ? json.Double(Rounded(one.high)) : json.Null();
    json.EndObject();
  }
  json.EndArray();
  json.Key("hidden_fraction").Double(Rounded(profile.overlap_ratio));
  json.Key("overlap_efficiency").Double(Rounded(profile.overlap_efficiency));
  json.Key("wait_share");
  profile.wait_known ? json.Double(Rounded(profile.wait_share)) : json.Null();
  json.Key("communication_efficiency").Double(Rounded(profile.communication_efficiency));
  json.Key("communication_share").Double(Rounded(profile.communication_share));
  json.Key("mean");
  WriteParts(json, profile.mean);
}

void WritePageClocks(JsonWriter& json, const ClockAlignment& clocks) {
  size_t compared = 0, corrected = 0;
  int64_t largest = 0;
  for (const RankClock& clock : clocks.clocks) {
    compared += clock.rounds > 0;
    corrected += clock.applied;
    if (clock.applied) largest = std::max(largest, std::abs(clock.offset_ns));
  }
  json.Key("clocks").BeginObject().Key("compared").Int(static_cast<int64_t>(compared));
  json.Key("corrected").Int(static_cast<int64_t>(corrected)).Key("largest_ns").Int(largest);
  json.Key("worst_error_ns").Int(clocks.worst_error_ns).EndObject();
}

}  // namespace

std::string RenderProfilePageJson(const std::vector<ProfileReport>& profiles) {
  JsonWriter json;
  json.BeginObject().Key("parts").BeginArray();
  for (const BudgetPart& part : BudgetParts()) json.String(part.name);
  json.EndArray().Key("jobs").BeginArray();
  for (const ProfileReport& profile : profiles) {
    json.BeginObject();
    WriteHead(json, profile);
    WritePageRanks(json, profile);
    WriteSteps(json, profile);
    WritePageTable(json, profile);
    WritePageStragglers(json, profile.stragglers);
    WriteMemory(json, profile);
    WriteStrategies(json, profile);
    WritePageClocks(json, profile.clocks);
    json.Key("remarks").BeginArray();
    for (const std::string& remark : profile.remarks) json.String(remark);
    json.EndArray().EndObject();
  }
  json.EndArray().Key("definitions").BeginArray();
  for (const Definition& one : ProfileDefinitions())
    json.BeginArray().String(one.name).String(one.definition).EndArray();
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace tacet
