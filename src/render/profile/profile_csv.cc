// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_csv.h"

#include <cmath>
#include <cstdio>

namespace tacet {
namespace {

// A cell that a spreadsheet would take for a formula gets an apostrophe before it.
std::string Cell(std::string_view text) {
  std::string out;
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) out += '\'';
  out += text;
  if (out.find_first_of(",\"\r\n") == std::string::npos) return out;
  std::string quoted = "\"";
  for (const char c : out) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Cell(int64_t value) { return std::to_string(value); }

std::string Cell(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

template <typename... Cells>
void AddRow(std::string& out, const Cells&... cells) {
  const size_t begin = out.size();
  ((out += (out.size() > begin ? "," : "") + Cell(cells)), ...);
  out += "\r\n";
}

// The slowdown that each part of a pipeline causes alone; only where a timeline was replayed.
void AddReplays(const std::vector<ProfileReport>& profiles, std::string& out) {
  bool headed = false;
  for (const ProfileReport& profile : profiles) {
    for (const WhatIfReport& replay : profile.what_if) {
      if (!replay.valid) continue;
      if (!headed) out += "\r\ntable,job,part,name,slowdown\r\n";
      headed = true;
      const auto add = [&](std::string_view part, std::string_view name, double slowdown) {
        if (std::isfinite(slowdown))
          AddRow(out, std::string_view("what_if"), std::string_view(profile.job), part, name, slowdown);
      };
      add("all", "all", replay.slowdown);
      for (const auto& [name, slowdown] : replay.by_operation) add("operation", name, slowdown);
      for (size_t i = 0; i < replay.by_dp_rank.size(); ++i)
        add("data_parallel_rank", std::to_string(i), replay.by_dp_rank[i]);
      for (size_t i = 0; i < replay.by_stage.size(); ++i) add("stage", std::to_string(i), replay.by_stage[i]);
    }
  }
}

}  // namespace

std::string RenderProfileCsv(const std::vector<ProfileReport>& profiles) {
  std::string out =
      "table,job,group,ranks_per_call,operation,size_class,calls,bytes,wait_ns,transfer_ns,algorithm_gbs,bus_gbs,peak_"
      "gbs,"
      "share_of_peak\r\n";
  for (const ProfileReport& profile : profiles)
    for (const ProfileTableRow& line : profile.table) {
      const CommunicationRow& row = line.row;
      AddRow(out, std::string_view("communication"), std::string_view(profile.job), std::string_view(line.group),
             int64_t{row.group_size}, Name(row.kind), row.size_class, static_cast<int64_t>(row.calls), row.bytes,
             row.wait_ns, row.transfer_ns, row.algorithm_gbs, row.bus_gbs, line.peak_gbs, line.share_of_peak);
    }
  out +=
      "\r\ntable,job,rank,steps,step_ns,compute_only_ns,hidden_ns,exposed_ns,copies_ns,host_wait_ns,launch_ns,"
      "data_wait_ns\r\n";
  for (const ProfileReport& profile : profiles)
    for (const ProfileRank& rank : profile.budgets) {
      const TimeBudget& mean = rank.mean;
      AddRow(out, std::string_view("budget"), std::string_view(profile.job), int64_t{rank.rank.value},
             static_cast<int64_t>(rank.steps), rank.step_ns, mean.compute_only_ns, mean.hidden_ns, mean.exposed_ns,
             mean.copies_ns, mean.host_wait_ns, mean.launch_ns, mean.data_wait_ns);
    }
  AddReplays(profiles, out);
  return out;
}

}  // namespace tacet
