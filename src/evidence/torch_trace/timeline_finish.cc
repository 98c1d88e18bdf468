// SPDX-License-Identifier: Apache-2.0
// The second half of TimelineBuilder: what the members around the events say, and what happens when the last event is
// read.
#include <algorithm>
#include <unordered_set>

#include "base/json_reader.h"
#include "timeline_builder.h"

namespace tacet {
namespace {

std::vector<Rank> ToRanks(const std::vector<int32_t>& numbers) {
  std::vector<Rank> ranks;
  ranks.reserve(numbers.size());
  for (const int32_t number : numbers) ranks.push_back({number});
  return ranks;
}

int32_t ToInt32(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX)); }

// A list, or in on-demand traces a string "[0, 1]".
std::vector<Rank> RanksOf(const JsonValue& value) {
  if (!value.is_array()) return ToRanks(ParseGroupRanks(value.Text()));
  std::vector<Rank> ranks;
  for (const JsonValue& item : value.items) ranks.push_back({ToInt32(item.Int(-1))});
  return ranks;
}

}  // namespace

Reading TimelineBuilder::OnMember(std::string_view key, std::string_view value) {
  if (key == "baseTimeNanoseconds") {
    JsonReader reader(value);
    if (reader.Next() != JsonReader::Token::number) return Reading::not_understood;
    base_ns_ = std::clamp<int64_t>(reader.Int(), 0, int64_t{1} << 61);
    return Reading::understood;
  }
  if (key == "distributedInfo") {
    TakeDistributedInfo(value);
    return Reading::understood;
  }
  if (key == "deviceProperties") {
    TakeDeviceProperties(value);
    return Reading::understood;
  }
  return Reading::ignored;
}

// "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 4, "pg_count": 1, "pg_config": [{"pg_name": "0",
//  "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 4, "ranks": [0, 1, 2, 3]}], "nccl_version":
//  "2.28.9"}
void TimelineBuilder::TakeDistributedInfo(std::string_view value) {
  JsonValue info;
  bool truncated = false;
  if (!ParseJson(value, &info, &truncated) || !info.is_object()) return;
  if (const JsonValue* rank = info.Find("rank"); rank && rank->Int(-1) >= 0) {
    speaker_.rank = {ToInt32(rank->Int(-1))};
    speaker_.rank_certainty = Certainty::stated;
  }
  if (const JsonValue* size = info.Find("world_size")) speaker_.world_size = size->Int(-1);
  if (const JsonValue* version = info.Find("nccl_version")) timeline_.nccl_version = version->Text();
  const JsonValue* config = info.Find("pg_config");
  if (!config || !config->is_array()) return;
  for (const JsonValue& item : config->items) {
    Group group;
    if (const JsonValue* name = item.Find("pg_name")) group.name = name->Text();
    if (const JsonValue* description = item.Find("pg_desc")) group.description = description->Text();
    if (const JsonValue* size = item.Find("pg_size")) group.size = ToInt32(size->Int(-1));
    if (const JsonValue* ranks = item.Find("ranks")) group.members = RanksOf(*ranks);
    const auto [found, added] = groups_.try_emplace(group.name, static_cast<GroupIndex>(fragment_.groups.size()));
    if (added) {
      fragment_.groups.push_back(std::move(group));
    } else if (Group& known = fragment_.groups[static_cast<uint32_t>(found->second)]; known.members.empty()) {
      known = std::move(group);  // the events named it first
    }
  }
}

// "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "numSms":
// 132}]
void TimelineBuilder::TakeDeviceProperties(std::string_view value) {
  JsonValue list;
  bool truncated = false;
  if (!ParseJson(value, &list, &truncated) || !list.is_array()) return;
  for (const JsonValue& item : list.items) {
    const auto number = [&](std::string_view key) {
      const JsonValue* found = item.Find(key);
      return found ? found->Int(-1) : -1;
    };
    DeviceProperties device;
    device.id = ToInt32(number("id"));
    if (const JsonValue* name = item.Find("name")) device.name = name->Text();
    device.memory_bytes = number("totalGlobalMem");
    device.compute_major = ToInt32(number("computeMajor"));
    device.compute_minor = ToInt32(number("computeMinor"));
    device.multiprocessors = ToInt32(number("numSms"));
    timeline_.devices.push_back(std::move(device));
  }
}

GroupIndex TimelineBuilder::FindGroup(const CollectiveArguments& arguments) {
  const std::string key(arguments.group_name.empty() ? arguments.group_ranks : arguments.group_name);
  if (key.empty() || key == "[]") return GroupIndex::none;
  const auto [found, added] = groups_.try_emplace(key, static_cast<GroupIndex>(fragment_.groups.size()));
  if (added) {
    Group group;
    group.name = arguments.group_name;
    group.description = arguments.group_description;
    group.members = ToRanks(ParseGroupRanks(arguments.group_ranks));
    group.size = ToInt32(arguments.group_size);
    fragment_.groups.push_back(std::move(group));
  }
  return found->second;
}

// Versions before 2.3 name no group. A job of one group is by far the most common, so such operations are taken to be
// of the group of all ranks; operations of a known smaller size are not.
void TimelineBuilder::SettleGroups() {
  GroupIndex world = GroupIndex::none;
  // A world size is one number of the file: what its list costs stays in proportion to the events that are there.
  const int64_t most = 1024 + 16 * static_cast<int64_t>(std::min<uint64_t>(events_, 1 << 16));
  for (TraceCollective& operation : timeline_.collectives) {
    if (operation.group != GroupIndex::none || speaker_.world_size <= 0 || speaker_.world_size > most) continue;
    if (operation.group_size >= 0 && operation.group_size != speaker_.world_size) continue;
    if (world == GroupIndex::none) {
      for (uint32_t i = 0; i < fragment_.groups.size() && world == GroupIndex::none; ++i)
        if (static_cast<int64_t>(fragment_.groups[i].members.size()) == speaker_.world_size)
          world = static_cast<GroupIndex>(i);
    }
    if (world == GroupIndex::none) {
      Group group;
      group.description = "default_pg";
      for (int32_t r = 0; r < speaker_.world_size; ++r) group.members.push_back({r});
      group.size = static_cast<int32_t>(speaker_.world_size);
      world = static_cast<GroupIndex>(fragment_.groups.size());
      fragment_.groups.push_back(std::move(group));
    }
    operation.group = world;
    if (operation.group_size < 0) operation.group_size = static_cast<int32_t>(speaker_.world_size);
  }
}

void TimelineBuilder::SortAll() {
  const auto by_start = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
  std::stable_sort(timeline_.ranges.begin(), timeline_.ranges.end(), by_start);
  std::stable_sort(timeline_.steps.begin(), timeline_.steps.end(), by_start);
  std::stable_sort(timeline_.matrix_work.begin(), timeline_.matrix_work.end(), by_start);
  std::stable_sort(timeline_.gradients.begin(), timeline_.gradients.end(),
                   [](const auto& a, const auto& b) { return a.ns < b.ns; });
  std::stable_sort(timeline_.memory.begin(), timeline_.memory.end(),
                   [](const auto& a, const auto& b) { return a.ns < b.ns; });
  // One step may be marked by several threads.
  std::unordered_set<int64_t> seen;
  std::erase_if(timeline_.steps, [&](const TrainingStep& step) { return !seen.insert(step.number).second; });
}

void TimelineBuilder::ShiftToWallClock() {
  if (base_ns_ == 0) return;
  const auto shift = [&](int64_t& ns) {
    if (ns != kNoTime) ns += base_ns_;
  };
  shift(timeline_.begin_ns);
  shift(timeline_.end_ns);
  shift(timeline_.out_of_memory_ns);
  for (auto& event : timeline_.gpu) shift(event.start_ns), shift(event.end_ns);
  for (auto& launch : timeline_.launches) shift(launch.start_ns);
  for (auto& range : timeline_.ranges) shift(range.start_ns), shift(range.end_ns);
  for (auto& step : timeline_.steps) shift(step.start_ns), shift(step.end_ns);
  for (auto& operation : timeline_.collectives) shift(operation.enter_ns);
  for (auto& work : timeline_.matrix_work) shift(work.start_ns);
  for (auto& gradient : timeline_.gradients) shift(gradient.ns);
  for (auto& sample : timeline_.memory) shift(sample.ns);
}

void TimelineBuilder::Finish(bool cut, Rank assumed) {
  std::sort(timeline_.gpu.begin(), timeline_.gpu.end(), [](const GpuEvent& a, const GpuEvent& b) {
    return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
  });
  JoinLaunches(std::move(launches_), timeline_);
  for (const Launch& launch : timeline_.launches) Extend(launch.start_ns, launch.start_ns + launch.duration_ns);
  SortAll();
  LinkCollectives(std::move(calls_), kernels_, timeline_);
  SettleGroups();
  ShiftToWallClock();
  timeline_.cut = cut;
  timeline_.framework = "PyTorch";
  speaker_.pid = pid_;
  speaker_.device = timeline_.gpu.empty() ? -1 : timeline_.MainDevice();
  if (!speaker_.rank.known() && assumed.known()) {
    speaker_.rank = assumed;
    speaker_.rank_certainty = Certainty::assumed;
  }
  if (dropped_ > 0)
    fragment_.Note(DiagnosticSeverity::warning, "too-many-events",
                   std::to_string(dropped_) + " GPU events beyond " + std::to_string(kMaxGpuEvents) + " were not kept");
  timeline_.speaker = static_cast<uint32_t>(fragment_.speakers.size());
  fragment_.speakers.push_back(std::move(speaker_));
  fragment_.timelines.push_back(std::move(timeline_));
}

}  // namespace tacet
