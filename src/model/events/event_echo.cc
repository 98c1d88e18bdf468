// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_echo.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/events/event_words.h"

namespace tacet {
namespace {

using EventWords = std::tuple<EventKind, std::string_view, std::string_view>;

EventWords WordsOf(const Event& event) { return {event.kind, WordOf(event), MessageOf(event)}; }

// MemoryError comes without a message.
bool HasWords(const Event& event) {
  return !MessageOf(event).empty() || (event.kind == EventKind::exception && !event.As<Raised>().type.empty());
}

}  // namespace

void DropEchoes(Incident& incident) {
  std::map<EventWords, std::vector<FileId>> told;  // one entry for each time that a rank told it
  for (const Event& event : incident.events)
    if (event.rank.known() && HasWords(event)) told[WordsOf(event)].push_back(event.source.file);
  if (told.empty()) return;
  std::vector<bool> drop(incident.events.size());
  for (size_t i = 0; i < incident.events.size(); ++i) {
    const Event& event = incident.events[i];
    if (event.rank.known() || !HasWords(event)) continue;
    const auto found = told.find(WordsOf(event));
    if (found == told.end()) continue;
    std::vector<FileId>& files = found->second;
    const auto other = std::find_if(files.begin(), files.end(), [&](FileId file) { return file != event.source.file; });
    if (other == files.end()) continue;
    files.erase(other);  // it was one of these; a further copy needs a further teller
    drop[i] = true;
  }
  size_t at = 0;
  std::erase_if(incident.events, [&](const Event&) { return drop[at++]; });
}

}  // namespace tacet
