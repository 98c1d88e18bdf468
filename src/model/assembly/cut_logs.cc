// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/cut_logs.h"

#include <algorithm>
#include <set>

namespace tacet {
namespace {

// The last call before an abort may stand in the record and not reach NCCL.
constexpr size_t kLostBeforeNccl = 1;

// Every recorded call gives at least one line of NCCL; only the entry that closes a batch gives none.
bool RecordGoesOn(const CallStream& record, const CallStream& log) {
  const auto calls = std::count_if(record.calls.begin(), record.calls.end(),
                                   [](const Call& call) { return !call.has(kCoalescedEnd); });
  return static_cast<size_t>(calls) > log.calls.size() + kLostBeforeNccl;
}

struct FinishesTold {
  std::set<Rank> by_logs;   // their communicators were destroyed in order
  std::set<Rank> by_words;  // their output says so
};

FinishesTold CollectFinishes(const Incident& incident) {
  std::set<std::pair<Rank, FileId>> logs;
  for (const CallStream& stream : incident.streams)
    if (stream.source == CallSource::nccl_log) logs.emplace(stream.rank, stream.file);
  FinishesTold told;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::process_finished && event.rank.known())
      (logs.contains({event.rank, event.source.file}) ? told.by_logs : told.by_words).insert(event.rank);
  return told;
}

}  // namespace

void MarkCutLogs(Incident& incident) {
  const FinishesTold told = CollectFinishes(incident);
  for (CallStream& log : incident.streams) {
    if (log.source != CallSource::nccl_log || log.stub || log.cut || !log.rank.known()) continue;
    const CallStream* record = incident.StreamOf(log.rank, CallSource::flight_recorder);
    const bool goes_on = record && !record->stub && log.from_start && RecordGoesOn(*record, log);
    // Jobs that destroy their communicators do so on all ranks.
    const bool ends_early =
        !told.by_logs.empty() && !told.by_logs.contains(log.rank) && told.by_words.contains(log.rank);
    log.cut = goes_on || ends_early;
  }
}

}  // namespace tacet
