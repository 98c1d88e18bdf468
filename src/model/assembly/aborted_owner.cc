// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/aborted_owner.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace tacet {
namespace {

constexpr int64_t kExceptionCode = 1, kSigabrtCode = -6;

// What one text tells of the ends of its ranks.
struct ListedEnds {
  std::set<Rank> raised, aborted;
  bool others = false;         // somebody ended in another way, or was ended by the launcher
  std::vector<Event*> losses;  // tracebacks without a name that tell of a lost peer
  std::vector<Event*> errors;  // what else is raised or reported without a name
  bool named = false;          // a traceback that has a name
};

bool IsOwnerlessError(const Event& event) {
  return event.kind == EventKind::exception || event.kind == EventKind::disk_full ||
         event.kind == EventKind::shared_memory_full;
}

void TakeEnd(const Event& event, ListedEnds& ends) {
  const int64_t code = event.As<ProcessEnd>().code;
  if (code == 0) return;
  if (event.rank.known() && code == kExceptionCode)
    ends.raised.insert(event.rank);
  else if (event.rank.known() && code == kSigabrtCode)
    ends.aborted.insert(event.rank);
  else
    ends.others = true;
}

}  // namespace

void GiveErrorsToTheAborted(Incident& incident) {
  std::map<FileId, ListedEnds> texts;
  for (Event& event : incident.events) {
    ListedEnds& ends = texts[event.source.file];
    if (event.kind == EventKind::process_exited) TakeEnd(event, ends);
    if (event.kind == EventKind::process_killed) ends.others = true;
    if (!IsOwnerlessError(event)) continue;
    if (event.rank.known())
      ends.named = true;
    else
      (event.Means(Meaning::gloo_loss) ? ends.losses : ends.errors).push_back(&event);
  }
  for (auto& [file, ends] : texts) {
    if (ends.others || ends.named || ends.aborted.size() != 1 || ends.raised.empty() ||
        ends.losses.size() != ends.raised.size())
      continue;
    for (Event* error : ends.errors) error->rank = *ends.aborted.begin();
    auto rank = ends.raised.begin();
    for (Event* loss : ends.losses) loss->rank = *rank++;
  }
}

}  // namespace tacet
