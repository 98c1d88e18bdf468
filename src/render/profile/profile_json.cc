// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_json.h"

#include "base/json_writer.h"
#include "render/profile/profile_strategy_json.h"
#include "render/profile/profile_words.h"

namespace tacet {
namespace {

void WriteBudget(JsonWriter& json, const TimeBudget& budget) {
  json.BeginObject();
  json.Key("step_ns").Int(budget.total_ns());
  json.Key("compute_only_ns").Int(budget.compute_only_ns);
  json.Key("hidden_ns").Int(budget.hidden_ns);
  json.Key("exposed_ns").Int(budget.exposed_ns);
  json.Key("copies_ns").Int(budget.copies_ns);
  json.Key("idle_ns").Int(budget.idle_ns());
  json.Key("host_wait_ns").Int(budget.host_wait_ns);
  json.Key("launch_ns").Int(budget.launch_ns);
  json.Key("data_wait_ns").Int(budget.data_wait_ns);
  json.EndObject();
}

void WriteMemory(JsonWriter& json, const std::optional<MemoryUse>& memory) {
  if (!memory) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("peak_allocated_bytes").Int(memory->peak_allocated_bytes);
  json.Key("peak_reserved_bytes").Int(memory->peak_reserved_bytes);
  json.Key("lowest_allocated_bytes").Int(memory->lowest_allocated_bytes);
  json.Key("device_bytes").Int(memory->device_bytes);
  json.Key("peak_step").Int(memory->peak_step);
  json.Key("peak_phase").String(Name(memory->peak_phase));
  json.Key("split");
  if (memory->split) {
    json.BeginObject();
    json.Key("parameter_bytes").Int(memory->split->parameter_bytes);
    json.Key("staying_bytes").Int(memory->split->staying_bytes);
    json.Key("passing_bytes").Int(memory->split->passing_bytes);
    json.Key("gradient_bytes").Int(memory->split->gradient_bytes);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("fragmentation").Double(memory->fragmentation);
  json.Key("out_of_memory").Bool(memory->out_of_memory);
  json.Key("pressure").Bool(memory->pressure);
  json.EndObject();
}

void WriteRanks(JsonWriter& json, const ProfileReport& profile) {
  json.Key("ranks").BeginArray();
  for (const ProfileRank& rank : profile.budgets) {
    json.BeginObject();
    json.Key("rank").Int(rank.rank.value);
    json.Key("host").String(rank.host);
    json.Key("device").String(rank.device);
    json.Key("steps").Int(static_cast<int64_t>(rank.steps));
    json.Key("cut").Bool(rank.cut);
    json.Key("budget");
    WriteBudget(json, rank.mean);
    json.Key("hidden_fraction").Double(rank.overlap.ratio());
    json.Key("overlap_efficiency").Double(rank.overlap.efficiency());
    json.Key("memory");
    WriteMemory(json, rank.memory);
    json.EndObject();
  }
  json.EndArray();
}

void WriteTable(JsonWriter& json, const ProfileReport& profile) {
  json.Key("communication").BeginArray();
  for (const ProfileTableRow& line : profile.table) {
    const CommunicationRow& row = line.row;
    json.BeginObject();
    json.Key("group").String(line.group);
    json.Key("members").String(line.members);
    json.Key("group_size").Int(row.group_size);
    json.Key("several_hosts").Bool(line.several_hosts);
    json.Key("operation").String(Name(row.kind));
    json.Key("size_class").Int(row.size_class);
    json.Key("calls").Int(static_cast<int64_t>(row.calls));
    json.Key("bytes").Int(row.bytes);
    json.Key("wait_ns").Int(row.wait_ns);
    json.Key("transfer_ns").Int(row.transfer_ns);
    json.Key("wait_share");
    row.compared > 0 ? json.Double(line.wait_share) : json.Null();
    json.Key("algorithm_gbs").Double(row.algorithm_gbs);
    json.Key("bus_gbs").Double(row.bus_gbs);
    json.Key("best_bus_gbs").Double(row.best_bus_gbs);
    json.Key("peak_gbs");
    line.peak_gbs > 0 ? json.Double(line.peak_gbs) : json.Null();
    json.Key("share_of_peak");
    line.peak_gbs > 0 ? json.Double(line.share_of_peak) : json.Null();
    json.EndObject();
  }
  json.EndArray();
  json.Key("groups").BeginArray();
  for (const GroupShare& group : profile.groups) {
    json.BeginObject();
    json.Key("group").String(group.group);
    json.Key("groups").Int(static_cast<int64_t>(group.groups));
    json.Key("ranks").Int(group.size);
    json.Key("calls").Int(static_cast<int64_t>(group.calls));
    json.Key("share").Double(group.share);
    json.EndObject();
  }
  json.EndArray();
}

void WriteClocks(JsonWriter& json, const ClockAlignment& clocks) {
  json.Key("clocks").BeginObject();
  json.Key("reference").Int(clocks.reference.value);
  json.Key("worst_error_ns").Int(clocks.worst_error_ns);
  json.Key("ranks").BeginArray();
  for (const RankClock& clock : clocks.clocks) {
    json.BeginObject();
    json.Key("rank").Int(clock.rank.value);
    json.Key("offset_ns").Int(clock.offset_ns);
    json.Key("drift").Double(clock.drift);
    json.Key("error_ns").Int(clock.error_ns);
    json.Key("spread_ns").Int(clock.spread_ns);
    json.Key("operations").Int(static_cast<int64_t>(clock.rounds));
    json.Key("applied").Bool(clock.applied);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteStragglers(JsonWriter& json, const StragglerReport& report) {
  json.Key("stragglers").BeginObject();
  json.Key("cost_share").Double(report.cost_share);
  json.Key("lost_throughput").Double(report.lost_throughput());
  json.Key("smallest_cost").Double(StragglerLimits::kMinCost);
  json.Key("false_alarm_rate").Double(StragglerLimits::kFalseAlarms);
  json.Key("source").String(report.source);
  json.Key("operations").Int(static_cast<int64_t>(report.rounds));
  json.Key("found").BeginArray();
  for (const Straggler& one : report.stragglers) {
    json.BeginObject();
    json.Key("rank").Int(one.rank.value);
    json.Key("pattern").String(one.pattern == StragglerPattern::persistent ? "persistent" : "intermittent");
    json.Key("origin").String(Name(one.origin));
    json.Key("confidence").String(Name(one.trust));
    json.Key("share").Double(one.share);
    json.Key("cost").Double(one.cost);
    json.Key("cost_low").Double(one.low);
    json.Key("cost_high").Double(one.high);
    json.Key("z").Double(one.z);
    json.Key("late_ns").Int(one.late_ns);
    json.Key("late_steps").Int(static_cast<int64_t>(one.late_steps));
    json.Key("steps").Int(static_cast<int64_t>(one.steps));
    json.Key("explained").Double(one.explained);
    json.EndObject();
  }
  json.EndArray().Key("ranks").BeginArray();
  for (const RankLateness& one : report.ranks) {
    json.BeginObject();
    json.Key("rank").Int(one.rank.value);
    json.Key("operations").Int(static_cast<int64_t>(one.rounds));
    json.Key("last").Int(static_cast<int64_t>(one.last));
    json.Key("share").Double(one.share);
    json.Key("mean_ns").Int(one.mean_ns);
    json.Key("worst_ns").Int(one.worst_ns);
    json.Key("z").Double(one.z);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteVerdict(JsonWriter& json, const ProfileReport& profile) {
  json.Key("verdict").BeginObject();
  json.Key("kind").String(Name(profile.verdict));
  json.Key("headline").String(profile.headline);
  json.EndObject();
  json.Key("advice").BeginArray();
  for (const Advice& advice : profile.advice) {
    json.BeginObject();
    json.Key("what").String(advice.what);
    json.Key("why").String(advice.why);
    json.Key("gain").Double(advice.gain);
    json.Key("at_most").Bool(advice.at_most);
    json.Key("gain_low");
    advice.high > advice.low ? json.Double(advice.low) : json.Null();
    json.Key("gain_high");
    advice.high > advice.low ? json.Double(advice.high) : json.Null();
    json.EndObject();
  }
  json.EndArray();
}

void WriteJob(JsonWriter& json, const ProfileReport& profile) {
  json.BeginObject();
  json.Key("job").String(profile.job);
  json.Key("source").String(profile.source);
  json.Key("world_size").Int(profile.world_size);
  json.Key("ranks_seen").Ints(profile.ranks);
  json.Key("shared_gpus").BeginArray();
  for (const std::vector<Rank>& ranks : profile.shared_gpus) {
    json.BeginArray();
    for (const Rank rank : ranks) json.Int(rank.value);
    json.EndArray();
  }
  json.EndArray();
  json.Key("setup").String(profile.setup);
  json.Key("steps").Int(static_cast<int64_t>(profile.steps));
  json.Key("step_ns").Int(profile.step_ns);
  WriteVerdict(json, profile);
  json.Key("mean_budget");
  WriteBudget(json, profile.mean);
  json.Key("hidden_fraction").Double(profile.overlap_ratio);
  json.Key("overlap_efficiency").Double(profile.overlap_efficiency);
  json.Key("wait_share");
  profile.wait_known ? json.Double(profile.wait_share) : json.Null();
  json.Key("communication_efficiency");
  profile.communication_efficiency > 0 ? json.Double(profile.communication_efficiency) : json.Null();
  json.Key("communication_share");
  profile.communication_share > 0 ? json.Double(profile.communication_share) : json.Null();
  WriteRanks(json, profile);
  WriteTable(json, profile);
  WriteClocks(json, profile.clocks);
  WriteStragglers(json, profile.stragglers);
  WriteStrategies(json, profile);
  json.Key("remarks").BeginArray();
  for (const std::string& remark : profile.remarks) json.String(remark);
  json.EndArray().EndObject();
}

}  // namespace

std::string RenderProfileJson(const std::vector<ProfileReport>& profiles) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.profile.v1");
  json.Key("jobs").BeginArray();
  for (const ProfileReport& profile : profiles) WriteJob(json, profile);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace tacet
