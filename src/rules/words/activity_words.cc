// SPDX-License-Identifier: Apache-2.0
#include "rules/words/activity_words.h"

#include <algorithm>

namespace tacet {

std::string DuringWords(Activity during) {
  switch (during) {
    case Activity::setup: return " while setting up the process group";
    case Activity::loading: return " while loading a checkpoint or a model";
    case Activity::saving: return " while saving a checkpoint";
    case Activity::shutdown: return " while shutting down the process group";
    case Activity::data: return " while loading data";
    case Activity::forward:
    case Activity::backward:
    case Activity::not_told: break;
  }
  return "";
}

std::string CodePlaceWords(const CodePlace& place) {
  return place.function + " (" + place.file.substr(place.file.find_last_of("/\\") + 1) + ":" +
         std::to_string(place.line) + ")";
}

std::string RaisedPlaceWords(const Event& raised) {
  const CodePlace& place = raised.As<Raised>().place;
  return place.function.empty() ? "" : CodePlaceWords(place);
}

const Event* ExceptionAround(const Incident& incident, const Event& error) {
  constexpr uint32_t kLinesOfAMessage = 12;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::exception && event.rank == error.rank && event.source.file == error.source.file &&
        event.source.line <= error.source.line && error.source.line <= event.source.line + kLinesOfAMessage)
      return &event;
  return nullptr;
}

bool IsServer(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(),
                     [](const Event& event) { return event.library == Library::server; });
}

}  // namespace tacet
