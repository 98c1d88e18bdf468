// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_groups.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tacet {
namespace {

// Group names and descriptions are copied per group; a dump may repeat one huge string by reference.
constexpr size_t kMaxNameText = 512;
// Members over all groups of one file: a hundred thousand ranks in fifty groups fit three times over.
constexpr size_t kMaxMembers = size_t{1} << 24;

size_t At(GroupIndex index) { return static_cast<size_t>(index); }

// Names that new_group counts ("0", "42"); hashed names have no number.
std::optional<uint64_t> NumberOfName(std::string_view name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

FlightGroupMap::FlightGroupMap(const FlightDump& dump, Fragment& out) : dump_(dump), out_(out) {
  size_t members = 0;
  for (const FlightGroup& group : dump.groups) {
    if (first_of_name_.contains(static_cast<uint32_t>(group.name))) continue;
    Group& added = out_.groups[At(Add(group.name, group.description))];
    if (group.ranks == FlightGroup::kNoRanks) continue;
    const std::vector<int32_t>& ranks = dump.rank_lists[group.ranks];
    added.size = static_cast<int32_t>(std::min<size_t>(ranks.size(), INT32_MAX));
    members += ranks.size();
    if (members > kMaxMembers) continue;
    added.members.reserve(ranks.size());
    for (const int32_t rank : ranks) added.members.push_back(Rank{rank});
  }
  configured_ = out_.groups.size();
  if (members > kMaxMembers)
    out_.Note(DiagnosticSeverity::warning, "too-many-members",
              "the groups of this dump claim more members than any job has; some member lists were ignored");
}

GroupIndex FlightGroupMap::Add(StringId name, StringId description) {
  const auto index = GroupIndex{static_cast<uint32_t>(out_.groups.size())};
  Group group;
  group.name = out_.strings.Get(name).substr(0, kMaxNameText);
  group.description = out_.strings.Get(description).substr(0, kMaxNameText);
  out_.groups.push_back(std::move(group));
  first_of_name_.emplace(static_cast<uint32_t>(name), index);
  by_name_.emplace(uint64_t(name) << 32 | uint64_t(description), index);
  return index;
}

// Two groups may share a name and differ in their description only. pg_config keeps one of them, often without its
// description, which only entries tell.
GroupIndex FlightGroupMap::Find(StringId name, StringId description) {
  const auto first = first_of_name_.find(static_cast<uint32_t>(name));
  if (first == first_of_name_.end()) return Add(name, description);
  Group& known = out_.groups[At(first->second)];
  if (description == StringId{}) return first->second;
  if (known.description.empty()) {
    known.description = out_.strings.Get(description).substr(0, kMaxNameText);
    by_name_.emplace(uint64_t(name) << 32 | uint64_t(description), first->second);
  }
  const auto exact = by_name_.find(uint64_t(name) << 32 | uint64_t(description));
  return exact != by_name_.end() ? exact->second : Add(name, description);
}

GroupIndex FlightGroupMap::GroupOf(const FlightEntry& entry) {
  Recent& recent =
      recent_[(static_cast<uint32_t>(entry.group_name) ^ static_cast<uint64_t>(entry.pg_id)) % recent_.size()];
  if (recent.name == entry.group_name && recent.description == entry.group_description && recent.pg_id == entry.pg_id)
    return recent.group;
  // Before version 1.5 a group has no name but its number.
  StringId name = entry.group_name;
  if (name == StringId{} && entry.pg_id >= 0) name = out_.strings.Intern(std::to_string(entry.pg_id));
  const bool nameless = name == StringId{} && entry.group_description == StringId{};
  const GroupIndex group = nameless ? GroupIndex::none : Find(name, entry.group_description);
  if (entry.pg_id >= 0 && !nameless) by_pg_id_[entry.pg_id] = group;
  recent = {entry.group_name, entry.group_description, entry.pg_id, group};
  return group;
}

std::vector<GroupProgress> FlightGroupMap::MapProgress() const {
  std::vector<Row> rows;
  rows.reserve(dump_.statuses.size());
  for (const FlightStatus& status : dump_.statuses) {
    const auto known = by_pg_id_.find(status.pg_id);
    rows.push_back({&status, known != by_pg_id_.end() ? known->second : GroupIndex::none});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.status->pg_id < b.status->pg_id; });
  MatchDefaultGroup(rows);
  MatchByOrder(rows);
  MatchLastOne(rows);
  std::vector<GroupProgress> progress;
  progress.reserve(rows.size());
  for (const Row& row : rows)
    progress.push_back({row.group, row.status->last_enqueued, row.status->last_started, row.status->last_completed});
  return progress;
}

// Which groups no open row can mean: those that have a row, and the default group. pg_id 0 is the first group that a
// process makes, the default group, so rows of another number are not its. (Not so after destroy_process_group, when
// that counter goes on and the names start again; then there may be more rows than groups.)
std::vector<bool> FlightGroupMap::FindTaken(const std::vector<Row>& rows) const {
  std::vector<bool> taken(out_.groups.size(), false);
  for (const Row& row : rows)
    if (row.group != GroupIndex::none) taken[At(row.group)] = true;
  for (size_t group = 0; group < configured_ && rows.size() <= configured_; ++group)
    if (out_.groups[group].description == "default_pg") taken[group] = true;
  return taken;
}

void FlightGroupMap::MatchDefaultGroup(std::vector<Row>& rows) const {
  if (rows.empty() || rows.size() > configured_ || rows[0].status->pg_id != 0 || rows[0].group != GroupIndex::none)
    return;
  for (size_t group = 0; group < configured_; ++group) {
    if (out_.groups[group].description != "default_pg") continue;
    rows[0].group = GroupIndex{static_cast<uint32_t>(group)};
    return;
  }
}

// Both counters grow as groups are made: names "0", "7", "34", "42" of this rank belong to pg_id 0, 1, 4, 5. Between
// two pairs that are known, as many rows as groups pair up in order.
void FlightGroupMap::MatchByOrder(std::vector<Row>& rows) const {
  const std::vector<bool> taken = FindTaken(rows);
  std::vector<std::pair<uint64_t, size_t>> numbered;  // number in the name, group
  for (size_t group = 0; group < configured_; ++group) {
    const auto number = NumberOfName(out_.groups[group].name);
    if (number) numbered.emplace_back(*number, group);
    if (!number && !taken[group]) return;  // any open row may be that one's
  }
  std::sort(numbered.begin(), numbered.end());
  constexpr size_t kNowhere = SIZE_MAX;
  std::vector<size_t> position_of(out_.groups.size(), kNowhere);
  for (size_t i = 0; i < numbered.size(); ++i) position_of[numbered[i].second] = i;

  std::vector<std::pair<Row*, size_t>> pairs;
  std::vector<Row*> open_rows;
  size_t next = 0;  // behind the last known pair
  const auto pair_up_to = [&](size_t end) {
    std::vector<size_t> open_groups;
    for (; next < end; ++next)
      if (!taken[numbered[next].second]) open_groups.push_back(numbered[next].second);
    if (open_groups.size() == open_rows.size())
      for (size_t i = 0; i < open_rows.size(); ++i) pairs.emplace_back(open_rows[i], open_groups[i]);
    open_rows.clear();
    ++next;
  };
  for (Row& row : rows) {
    const size_t position = row.group == GroupIndex::none ? kNowhere : position_of[At(row.group)];
    if (row.group == GroupIndex::none) open_rows.push_back(&row);
    if (position == kNowhere) continue;
    if (position < next) return;  // the counters do not agree after all
    pair_up_to(position);
  }
  pair_up_to(numbered.size());
  for (const auto& [row, group] : pairs) row->group = GroupIndex{static_cast<uint32_t>(group)};
}

void FlightGroupMap::MatchLastOne(std::vector<Row>& rows) const {
  const auto is_open = [](const Row& row) { return row.group == GroupIndex::none; };
  const std::vector<bool> taken = FindTaken(rows);
  const auto open_groups = std::count(taken.begin(), taken.begin() + static_cast<ptrdiff_t>(configured_), false);
  if (open_groups != 1 || std::count_if(rows.begin(), rows.end(), is_open) != 1) return;
  const auto group = std::find(taken.begin(), taken.end(), false) - taken.begin();
  std::find_if(rows.begin(), rows.end(), is_open)->group = GroupIndex{static_cast<uint32_t>(group)};
}

}  // namespace tacet
