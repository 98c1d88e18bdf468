// SPDX-License-Identifier: Apache-2.0
#include "report/rank_table.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <set>

namespace tacet {
namespace {

std::string Clock(int64_t wall_ns) {
  if (wall_ns == kNoTime) return "";
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[16];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

std::string Describe(const Incident& incident, const Call& call, bool knows_state) {
  static constexpr const char* kStates[] = {"", ": enqueued", ": started", ": completed"};
  std::string text = std::string(Name(call.kind)) + " #" + std::to_string(call.seq);
  if (call.group != GroupIndex::none) text += " on " + incident.groups[static_cast<uint32_t>(call.group)].Label();
  if (knows_state) text += call.has(kEndedByAbort) ? ": ended by the abort" : kStates[static_cast<size_t>(call.state)];
  return text;
}

// The operation that matters most on a rank: the first unfinished one, else the last issued.
std::string LastOperation(const Incident& incident, const Analyses& analyses, Rank rank) {
  for (const SourceAnalysis& source : analyses.sources) {
    const CallStream* stream = incident.StreamOf(rank, source.source);
    if (!stream || stream->calls.empty()) continue;
    const auto blocked = source.waits.blocked_in.find(rank);
    const Call& call = blocked != source.waits.blocked_in.end() ? *blocked->second : stream->calls.back();
    return Describe(incident, call, stream->knows_finish);
  }
  return "";
}

}  // namespace

std::vector<ReportRank> RankTable(const Incident& incident, const Analyses& analyses, const StandstillView& standstill,
                                  const Diagnosis& diagnosis) {
  std::set<Rank> guilty(diagnosis.ranks.begin(), diagnosis.ranks.end()),
      waiting(standstill.waiters.begin(), standstill.waiters.end());
  if (!diagnosis.findings.empty())
    waiting.insert(diagnosis.findings[0].affected_ranks.begin(), diagnosis.findings[0].affected_ranks.end());
  std::map<Rank, const StackReading*> stacks;
  for (const StackReading& reading : analyses.stacks) stacks.emplace(reading.rank, &reading);
  std::vector<ReportRank> rows;
  for (const auto& [rank, life] : analyses.life.ranks) {
    ReportRank row;
    row.rank = rank.value;
    if (const auto process = incident.process_of.find(rank); process != incident.process_of.end()) {
      row.host = incident.processes[process->second].host;
      row.pid = incident.processes[process->second].pid;
      std::set<std::string> kinds;
      for (const FileId file : incident.processes[process->second].files)
        kinds.insert(incident.files[static_cast<uint32_t>(file)].format);
      row.evidence_kinds.assign(kinds.begin(), kinds.end());
    }
    row.role = guilty.contains(rank)                       ? "guilty"
               : waiting.contains(rank)                    ? "waits"
               : !life.any() && row.evidence_kinds.empty() ? "silent"
                                                           : "ok";
    if (guilty.contains(rank) && diagnosis.cause.empty()) row.role = "suspect";
    row.last_operation = LastOperation(incident, analyses, rank);
    if (const auto stack = stacks.find(rank); stack != stacks.end()) row.doing = stack->second->where;
    if (life.exception) row.doing = life.exception->subject;
    row.last_sign = Clock(life.last_wall_ns);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tacet
