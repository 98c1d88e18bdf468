// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/said_end.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "analysis/process/job_end.h"
#include "model/events/event_words.h"

namespace tacet {
namespace {

// What one output says of its end.
struct EndOfOutput {
  const Event *first = nullptr, *last = nullptr, *first_of_job = nullptr, *last_of_job = nullptr;
  uint32_t last_step = 0, last_error = 0;
  int64_t errors = 0;
  const Event* first_error = nullptr;
};

void NoteSaid(const Event& event, EndOfOutput& end) {
  const auto note = [&](const Event*& first, const Event*& last) {
    if (!first || event.source.line < first->source.line) first = &event;
    if (!last || last->source.line < event.source.line) last = &event;
  };
  note(end.first, end.last);
  if (event.As<ProcessFinish>().of_job) note(end.first_of_job, end.last_of_job);
}

bool IsError(const Event& event) {
  return event.kind == EventKind::unread_error || IsSignOfCrash(event) || IsSignOfHang(event);
}

std::map<FileId, EndOfOutput> ReadEnds(const Incident& incident) {
  std::map<FileId, EndOfOutput> ends;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::process_finished && event.As<ProcessFinish>().said)
      NoteSaid(event, ends[event.source.file]);
  const auto raise = [](uint32_t& line, const SourceRef& source) { line = std::max(line, source.line); };
  for (const Event& event : incident.events) {
    const auto file = static_cast<size_t>(event.source.file);
    // What the kernel and other tools report is weighed with how the job ended.
    if (file >= incident.files.size() || !IsReadAs(incident.files[file], "torch_log")) continue;
    EndOfOutput& end = ends[event.source.file];
    if (event.kind == EventKind::progress) raise(end.last_step, event.source);
    if (IsFarewell(event) && end.first && end.first->source.line < event.source.line) continue;
    if (!IsError(event)) continue;
    raise(end.last_error, event.source);
    ++end.errors;
    if (!end.first_error) end.first_error = &event;
  }
  for (const LogOutline& outline : incident.outlines)
    if (outline.errors > 0) raise(ends[outline.last_error.file].last_error, outline.last_error);
  return ends;
}

// Whoever pasted the log says that something is wrong.
bool TellsOfTrouble(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::told_hang || event.kind == EventKind::told_stop ||
           event.kind == EventKind::told_slow || event.kind == EventKind::told_wrong ||
           event.kind == EventKind::told_not_finite;
  });
}

// Every output says that the job as a whole came to its end, and no line reports an error after that.
SaidEnd EndOfJob(const Incident& incident, const std::map<FileId, EndOfOutput>& ends) {
  SaidEnd said;
  for (const auto& [file, end] : ends) {
    if (end.last_error > 0 && (!end.last_of_job || end.last_of_job->source.line < end.last_error)) return {};
    if (said || !end.first_of_job) continue;
    said.first = end.first_of_job;
    said.last = end.last_of_job;
  }
  const bool of_run = HasRecordedFinish(incident);  // which speaks for all its files
  for (size_t i = 0; !of_run && i < incident.files.size(); ++i) {
    const auto end = ends.find(FileId{static_cast<uint32_t>(i)});
    if (IsReadAs(incident.files[i], "torch_log") && incident.files[i].bytes.understood > 0 &&
        (end == ends.end() || !end->second.first_of_job))
      return {};
  }
  said.of_job = static_cast<bool>(said);
  return said;
}

// Records, stacks and other tools' files say more than an output.
bool IsOutput(const InputFile& file) {
  return file.format == "torch_log" || file.format == "torch_log+host_table" || file.bytes.understood == 0;
}

// One error may be a line that is marked as one, and an exception that is read.
void CountErrors(const Incident& incident, const std::map<FileId, EndOfOutput>& ends, SaidEnd& said) {
  int64_t marked = 0;
  said.errors = static_cast<int64_t>(incident.survived.size());
  for (const SurvivedError& one : incident.survived)
    if (said.first_error.empty()) said.first_error = one.words;
  for (const auto& [file, end] : ends) {
    said.errors += end.errors;
    if (end.first_error && said.first_error.empty()) said.first_error = MessageOf(*end.first_error);
  }
  for (const LogOutline& outline : incident.outlines) {
    marked += outline.errors;
    if (said.first_error.empty()) said.first_error = outline.first_error;
  }
  said.errors = std::max(said.errors, marked);
}

bool HasSeveralRanks(const Incident& incident) {
  return std::count_if(incident.processes.begin(), incident.processes.end(),
                       [](const Process& process) { return process.rank.known(); }) > 1;
}

// Each rank of the job says in this one output that it is done.
bool IsSaidByAll(const Incident& incident, FileId file) {
  std::set<Rank> said;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::process_finished && event.source.file == file && event.As<ProcessFinish>().said &&
        event.rank.known())
      said.insert(event.rank);
  const std::vector<Rank> all = incident.AllRanks();
  return said.size() > 1 && std::all_of(all.begin(), all.end(), [&](Rank rank) { return said.contains(rank); }) &&
         std::all_of(incident.processes.begin(), incident.processes.end(),
                     [&](const Process& one) { return !one.rank.known() || said.contains(one.rank); });
}

// The output that tells the steps ends with the program's words that it is done; errors that steps follow were
// survived, others may be what was lost: a checkpoint that could not be written, before "done".
SaidEnd EndOfOneOutput(const Incident& incident, const std::map<FileId, EndOfOutput>& ends) {
  if (!std::all_of(incident.files.begin(), incident.files.end(), IsOutput)) return {};
  const bool several = HasSeveralRanks(incident);
  if (several && std::count_if(incident.files.begin(), incident.files.end(),
                               [](const InputFile& file) { return file.bytes.understood > 0; }) != 1)
    return {};
  SaidEnd said;
  for (const auto& [file, end] : ends) {
    if (end.last_error > end.last_step || (end.last_error > 0 && end.last_step == 0)) return {};
    if (end.last_step == 0) continue;
    if (!end.last || end.last->source.line < end.last_step) return {};
    if (several && end.last->rank.known() && !IsSaidByAll(incident, file)) return {};  // of one rank among others
    said.first = end.first;
    said.last = end.last;
  }
  return said;
}

}  // namespace

bool IsFarewell(const Event& event) {
  return event.kind == EventKind::store_lost || event.kind == EventKind::connection_lost || IsStepEnd(event);
}

bool IsStepEnd(const Event& event) {
  if (event.kind == EventKind::process_killed) return event.As<ProcessEnd>().with_step;
  const auto& end = event.As<OutsideEnd>();
  return event.kind == EventKind::scheduler_kill && end.why == SchedulerKill::cancelled && end.by == "step";
}

bool HasRecordedFinish(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::process_finished && event.As<ProcessFinish>().of_job &&
           static_cast<size_t>(event.source.file) < incident.files.size() &&
           IsReadAs(incident.files[static_cast<size_t>(event.source.file)], "run_record");
  });
}

SaidEnd FindSaidEnd(const Incident& incident) {
  if (TellsOfTrouble(incident) || !incident.threads.empty()) return {};
  const std::map<FileId, EndOfOutput> ends = ReadEnds(incident);
  SaidEnd said = EndOfJob(incident, ends);
  if (!said) said = EndOfOneOutput(incident, ends);
  if (said) CountErrors(incident, ends, said);
  return said;
}

}  // namespace tacet
