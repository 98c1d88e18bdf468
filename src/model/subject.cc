// SPDX-License-Identifier: Apache-2.0
#include "model/subject.h"

#include <algorithm>

namespace tacet {
namespace {

Subject SubjectOfProcess(const Process& process) {
  return {process.rank, process.host, process.pid, process.device, -1};
}

}  // namespace

Subject SubjectOf(const Incident& incident, Rank rank) {
  if (const auto found = incident.process_of.find(rank); found != incident.process_of.end())
    return SubjectOfProcess(incident.processes[found->second]);
  return {rank, "", -1, -1, -1};
}

std::string ToldHostOf(const Incident& incident, Rank rank) {
  if (std::string host = SubjectOf(incident, rank).host; !host.empty()) return host;
  for (const Event& event : incident.events)
    if (const auto& end = event.As<ProcessEnd>();
        event.kind == EventKind::process_exited && event.rank == rank && !end.of_pod && !end.host.empty())
      return end.host;
  return "";
}

Subject SubjectOf(const Incident& incident, const Event& event) {
  Subject subject;
  if (event.rank.known())
    subject = SubjectOf(incident, event.rank);
  else if (event.speaker < incident.processes.size())
    subject = SubjectOfProcess(incident.processes[event.speaker]);
  // A kernel or launcher speaks of another process than itself.
  if (event.pid >= 0 && event.pid != subject.pid && !subject.rank.known()) subject.pid = event.pid;
  if (event.kind == EventKind::process_exited && !subject.rank.known()) {
    subject.local_rank = event.As<ProcessEnd>().local_rank;
    if (const std::string& host = event.As<ProcessEnd>().host; !host.empty()) subject.host = host;
  }
  return subject;
}

std::vector<Subject> SubjectsOf(const Incident& incident, const std::vector<const Event*>& events) {
  std::vector<Subject> subjects;
  for (const Event* event : events) {
    Subject subject = SubjectOf(incident, *event);
    if (subject.known() && std::find(subjects.begin(), subjects.end(), subject) == subjects.end())
      subjects.push_back(std::move(subject));
  }
  return subjects;
}

std::string SubjectWords(const Subject& subject) {
  if (subject.rank.known()) return "rank " + std::to_string(subject.rank.value);
  const std::string place = subject.host.empty() ? "" : " on " + subject.host;
  const std::string process = subject.pid >= 0 ? "process " + std::to_string(subject.pid) : "";
  if (subject.local_rank >= 0)
    return "local rank " + std::to_string(subject.local_rank) + (process.empty() ? "" : " (" + process + ")") + place;
  if (!process.empty()) return process + place;
  return "a process" + place;
}

std::string SubjectWords(const std::vector<Subject>& subjects) {
  if (subjects.empty()) return "a process";
  if (subjects.size() == 1) return SubjectWords(subjects.front());
  if (subjects.size() == 2) return SubjectWords(subjects[0]) + " and " + SubjectWords(subjects[1]);
  return SubjectWords(subjects.front()) + " and " + std::to_string(subjects.size() - 1) + " others";
}

}  // namespace tacet
