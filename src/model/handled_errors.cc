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

}  // namespace

void ForgiveHandledErrors(Incident& incident) {
  if (incident.survived.empty()) return;
  if (std::any_of(incident.events.begin(), incident.events.end(), TellsOfABadEnd)) return;
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
