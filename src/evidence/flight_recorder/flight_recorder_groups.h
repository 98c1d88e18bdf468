// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "evidence/flight_recorder/flight_recorder_parse.h"
#include "model/fragment.h"

namespace tacet {

// The process groups of one dump: those that pg_config lists, those that only entries name, and which of them a row of
// pg_status means. Rows are keyed by pg_id, a counter of this rank alone, and pg_config by name; only entries have
// both.
class FlightGroupMap {
 public:
  FlightGroupMap(const FlightDump& dump, Fragment& out);

  GroupIndex GroupOf(const FlightEntry& entry);
  // To be called after GroupOf for all entries.
  std::vector<GroupProgress> MapProgress() const;

 private:
  struct Row {
    const FlightStatus* status;
    GroupIndex group = GroupIndex::none;
  };
  GroupIndex Find(StringId name, StringId description);
  GroupIndex Add(StringId name, StringId description);
  std::vector<bool> FindTaken(const std::vector<Row>& rows) const;
  void MatchDefaultGroup(std::vector<Row>& rows) const;
  void MatchByOrder(std::vector<Row>& rows) const;
  void MatchLastOne(std::vector<Row>& rows) const;

  const FlightDump& dump_;
  Fragment& out_;
  size_t configured_ = 0;                             // groups that come from pg_config; they stand first
  std::unordered_map<uint64_t, GroupIndex> by_name_;  // (name, description)
  std::unordered_map<uint32_t, GroupIndex> first_of_name_;
  std::unordered_map<int64_t, GroupIndex> by_pg_id_;
  // What GroupOf answered of late: a rank uses a few groups in turn.
  struct Recent {
    StringId name{}, description{};
    int64_t pg_id = -2;
    GroupIndex group = GroupIndex::none;
  };
  std::array<Recent, 64> recent_;
};

}  // namespace tacet
