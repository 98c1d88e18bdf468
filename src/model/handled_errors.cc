// SPDX-License-Identifier: Apache-2.0
#include "model/handled_errors.h"

#include <algorithm>

namespace tacet {
namespace {

bool TellsOfABadEnd(const Event& event) {
  switch (event.kind) {
    case EventKind::process_exited: return event.As<ProcessEnd>().code != 0;
    case EventKind::process_killed:
    case EventKind::abort_signal:
    case EventKind::watchdog_timeout:
    case EventKind::connection_lost: return true;
    default: return false;
  }
}

// The function that raised it printed it as well, and the process went on: lines of its program stand behind it in the
// same file, or in another output of the process that ends with a line of its own.
bool PrintedAndWentOn(const Incident& incident, const Event& event) {
  constexpr size_t kFewestLines = 3;
  if (!event.As<Raised>().caught_there || event.speaker >= incident.processes.size()) return false;
  // Lines without a mark are this process' own where no other one writes to the file.
  std::vector<FileId> files = incident.processes[event.speaker].files;
  for (size_t other = 0; other < incident.processes.size(); ++other)
    if (other != event.speaker)
      for (const FileId shared : incident.processes[other].files) std::erase(files, shared);
  size_t behind = 0;
  for (const LogOutline& outline : incident.outlines)
    for (const OwnLine& line : outline.own_lines) {
      const bool own = line.rank >= 0 ? Rank{line.rank} == event.rank
                                      : std::find(files.begin(), files.end(), line.source.file) != files.end();
      behind += own && (line.source.file != event.source.file || line.source.line > event.source.line);
    }
  return behind >= kFewestLines;
}

}  // namespace

void ForgiveHandledErrors(Incident& incident) {
  if (std::any_of(incident.events.begin(), incident.events.end(), TellsOfABadEnd)) return;
  std::erase_if(incident.events, [&](const Event& event) {
    if (event.kind != EventKind::exception || !PrintedAndWentOn(incident, event)) return false;
    incident.diagnostics.push_back(
        {DiagnosticSeverity::note, "exception-survived",
         event.As<Raised>().type + " was printed where it was raised, and the process continued", event.source, ""});
    return true;
  });
  if (incident.survived.empty()) return;
  std::erase_if(incident.events, [&](const Event& event) {
    if (event.kind != EventKind::exception) return false;
    const auto& raised = event.As<Raised>();
    const bool survived =
        std::any_of(incident.survived.begin(), incident.survived.end(), [&](const SurvivedError& one) {
          const Raised& other = one.raised;
          return other.type == raised.type && other.place == raised.place && !raised.place.file.empty();
        });
    if (survived)
      incident.diagnostics.push_back({DiagnosticSeverity::note, "exception-survived",
                                      raised.type + " was printed, and another rank continued after the same one",
                                      event.source, ""});
    return survived;
  });
}

}  // namespace tacet
