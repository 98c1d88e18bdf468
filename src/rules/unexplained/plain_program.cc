// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/plain_program.h"

#include <algorithm>

namespace tacet {

bool IsPlainProgram(const Case& facts, const Event& raised) {
  const auto of_a_job = [](const Event& event) {
    switch (event.kind) {
      case EventKind::exception:
        return event.As<Raised>().of_job || event.Means(Meaning::of_communication) ||
               event.Means(Meaning::setup_failed) || event.Means(Meaning::nccl_failed) ||
               event.Means(Meaning::consequence) || event.library != Library::not_told;
      case EventKind::progress:
      case EventKind::process_finished:
      case EventKind::unread_error: return false;
      default: return true;
    }
  };
  const auto& events = facts.incident.events;
  return facts.analyses.life.ranks.empty() && raised.pid <= 0 && raised.As<Raised>().refusal.empty() &&
         std::none_of(events.begin(), events.end(), of_a_job) &&
         std::all_of(facts.incident.outlines.begin(), facts.incident.outlines.end(),
                     [](const LogOutline& one) { return one.ranks.empty() && one.world <= 1; });
}

}  // namespace tacet
