// SPDX-License-Identifier: Apache-2.0
#include "rules/words/caller_places.h"

#include <algorithm>
#include <utility>

#include "rules/words/words.h"

namespace tacet {
namespace {

// "rank 0 issued it in log_loss (train.py:44), rank 1 in save_checkpoint (ckpt.py:90)"
std::string PlaceList(const CallerPlaces& places) {
  constexpr size_t kMostPlaces = 3;
  std::string list;
  size_t told = 0;
  for (const auto& [place, ranks] : places) {
    if (told == kMostPlaces) {
      list += ", others elsewhere";
      break;
    }
    list += told == 0 ? "" : ", ";
    list += RankWords(ranks);
    list += told == 0 ? " issued it in " : " in ";
    list += place;
    ++told;
  }
  return list;
}

}  // namespace

CallerPlaces FindCallerPlaces(const Incident& incident, const TimedOutCall& call) {
  CallerPlaces places;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::watchdog_timeout || event.seq != call.seq || event.op != call.op ||
        !std::binary_search(call.ranks.begin(), call.ranks.end(), event.rank))
      continue;
    const CodePlace& place = event.As<WatchdogTimeout>().place;
    if (place.function.empty()) continue;
    std::string words = place.function;
    words += " (";
    words += place.file.substr(place.file.rfind('/') + 1);
    words += ':';
    words += std::to_string(place.line);
    words += ')';
    places[std::move(words)].push_back(event.rank);
  }
  for (auto& [place, ranks] : places) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  return places;
}

std::string CallerPlaceWords(const CallerPlaces& places) {
  if (places.empty()) return "";
  if (places.size() == 1) return ", issued in " + places.begin()->first;
  return " (" + PlaceList(places) + ": the ranks run different code)";
}

std::string CallerPlaceStep(const CallerPlaces& places) {
  if (places.size() < 2) return "";
  return "Find the branch that sends the ranks to different places: " + PlaceList(places) +
         ". Decide such branches on values that are equal on all ranks (broadcast the condition first).";
}

}  // namespace tacet
