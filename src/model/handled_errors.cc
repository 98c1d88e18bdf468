// SPDX-License-Identifier: Apache-2.0
#include "model/handled_errors.h"

#include <algorithm>
#include <map>

#include "model/event_time.h"

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

bool IsOfAnother(const Event& event, const Event& error) {
  return event.rank.known() && error.rank.known() ? event.rank != error.rank : event.speaker != error.speaker;
}

}  // namespace

void ForgiveHandledErrors(Incident& incident) {
  std::vector<Event>& events = incident.events;
  if (std::any_of(events.begin(), events.end(), TellsOfABadEnd)) return;
  std::map<uint32_t, const Event*> steps;  // by speaker, the last one
  std::vector<const Event*> ends;
  for (const Event& event : events) {
    if (event.kind == EventKind::progress) steps[event.speaker] = &event;
    if (event.kind == EventKind::process_finished) ends.push_back(&event);
  }
  const auto is_handled = [&](const Event& error) {
    return error.kind == EventKind::exception && std::any_of(ends.begin(), ends.end(), [&](const Event* end) {
             const auto step = steps.find(end->speaker);
             return step != steps.end() && IsOfAnother(*end, error) && OrderOf(*end, error) == TimeOrder::after &&
                    OrderOf(*step->second, error) == TimeOrder::after;
           });
  };
  std::vector<char> handled(events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    handled[i] = is_handled(events[i]) ? 1 : 0;
    if (!handled[i]) continue;
    incident.diagnostics.push_back({DiagnosticSeverity::note, "exception-survived",
                                    events[i].As<Raised>().type + " was printed, and the job continued",
                                    events[i].source});
  }
  size_t at = 0;
  std::erase_if(events, [&](const Event&) { return handled[at++] != 0; });
}

}  // namespace tacet
