// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/nameless_waits.h"

#include "analysis/process/signs_of_life.h"

namespace tacet {

bool IsInterrupt(const Event& event) {
  // With words behind it a program raises it itself: "KeyboardInterrupt: terminated" of a server that got SIGTERM.
  if (event.kind == EventKind::exception)
    return event.As<Raised>().type == "KeyboardInterrupt" && (event.text.empty() || event.text[0] == '\n');
  return event.kind == EventKind::scheduler_kill && event.As<OutsideEnd>().why == SchedulerKill::signal &&
         event.As<OutsideEnd>().by == "SIGINT";
}

bool IsInterruptedMeeting(const Event& event) {
  if (event.kind != EventKind::exception || !IsInterrupt(event)) return false;
  const auto& raised = event.As<Raised>();
  return event.op == OpKind::barrier || (raised.in_collective && raised.during == Activity::setup);
}

NamelessWaits ReadNamelessWaits(const Incident& incident) {
  NamelessWaits found;
  for (const Event& event : incident.events) {
    found.interrupted = found.interrupted || IsInterrupt(event);
    if (event.rank.known() || event.kind != EventKind::exception) continue;
    if (event.Means(Meaning::gloo_timeout))
      found.timeouts.push_back(&event);
    else if (event.Means(Meaning::gloo_loss))
      found.losses.push_back(&event);
    else if (event.As<Raised>().in_thread)
      found.of_threads.push_back(&event);
    else
      found.error = found.error || !IsConsequence(event);
  }
  return found;
}

}  // namespace tacet
