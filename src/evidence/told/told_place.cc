// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_place.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kLongestPlace = 120;

struct PlaceWord {
  size_t begin = 0;
  std::string low;      // without marks at its ends
  bool closed = false;  // a mark behind it ends its part of the sentence
};

std::vector<PlaceWord> PlaceWords(std::string_view line) {
  std::vector<PlaceWord> words;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    std::string_view text = line.substr(at, end - at);
    PlaceWord word{at, "", std::string_view(".,;:!?)").find(text.back()) != std::string_view::npos};
    while (!text.empty() && std::string_view(".,;:!?()*\"'").find(text.back()) != std::string_view::npos)
      text.remove_suffix(1);
    while (!text.empty() && std::string_view("(*\"'").find(text.front()) != std::string_view::npos)
      text.remove_prefix(1);
    for (const char c : text) word.low += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    words.push_back(std::move(word));
    at = end;
  }
  return words;
}

template <size_t N>
bool IsAmong(std::string_view word, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

constexpr std::string_view kStandsStill[] = {"hangs",   "hang",    "hung",   "hanging",  "stuck",    "stucks",
                                             "stucked", "freezes", "freeze", "frozen",   "stalls",   "stalled",
                                             "stops",   "stop",    "stays",  "deadlock", "deadlocks"};
constexpr std::string_view kDoubts[] = {"not",    "never",   "no",    "longer", "if",   "can",
                                        "could",  "may",     "might", "would",  "why",  "how",
                                        "should", "doesn't", "don't", "didn't", "won't"};
constexpr std::string_view kAdverbs[] = {"right", "always", "just", "forever", "there",  "here", "still",
                                         "only",  "again",  "even", "exactly", "mostly", "now"};
constexpr std::string_view kPrepositions[] = {"at",     "in",     "on",   "after", "during",
                                              "before", "inside", "when", "while", "without"};
constexpr std::string_view kWriter[] = {"i", "i'm", "my", "we", "our", "me", "you", "your", "us"};

// Up to the end of its part of the sentence; marks inside of quotes and code end nothing.
std::string_view PlacePart(std::string_view rest) {
  bool code = false, quoted = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == '`') code = !code;
    if (c == '"' && !code) quoted = !quoted;
    if (code || quoted) continue;
    const bool last = i + 1 == rest.size() || rest[i + 1] == ' ';
    if ((c == '.' || c == ',' || c == ';' || c == ':' || c == '!' || c == '?') && last) return rest.substr(0, i);
    if (c == ' ' && i + 1 < rest.size() && (rest[i + 1] == '(' || rest.substr(i).starts_with(" - ")))
      return rest.substr(0, i);
  }
  return rest;
}

bool SpeaksOfWriter(std::string_view place) {
  const std::vector<PlaceWord> words = PlaceWords(place);
  return std::any_of(words.begin(), words.end(), [](const PlaceWord& word) { return IsAmong(word.low, kWriter); });
}

}  // namespace

std::string PlaceOfStop(std::string_view line) {
  line = Trim(line.substr(0, std::min<size_t>(line.size(), 2000)));
  const std::vector<PlaceWord> words = PlaceWords(line);
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (!IsAmong(words[i].low, kStandsStill) || words[i].closed) continue;
    const size_t before = i < 3 ? 0 : i - 3;
    if (std::any_of(words.begin() + static_cast<std::ptrdiff_t>(before), words.begin() + static_cast<std::ptrdiff_t>(i),
                    [](const PlaceWord& word) { return IsAmong(word.low, kDoubts); }))
      continue;
    size_t at = i + 1;
    while (at < words.size() && at < i + 4 && IsAmong(words[at].low, kAdverbs) && !words[at].closed) ++at;
    if (at >= words.size() || !IsAmong(words[at].low, kPrepositions) || words[at].closed) continue;
    if (words[at - 1].low == "right" || words[at - 1].low == "exactly") --at;
    std::string_view place = Trim(PlacePart(line.substr(words[at].begin)));
    // "stays at 0 %" is a load, and no place.
    if (place.find(' ') == std::string_view::npos || place.ends_with('%') || SpeaksOfWriter(place)) continue;
    if (place.size() <= kLongestPlace) return std::string(place);
    const size_t blank = place.rfind(' ', kLongestPlace);
    if (blank != std::string_view::npos && blank > kLongestPlace / 2)
      return std::string(place.substr(0, blank)) + " ...";
  }
  return "";
}

bool StopsInLoader(std::string_view line) {
  const std::vector<PlaceWord> words = PlaceWords(line.substr(0, std::min<size_t>(line.size(), 2000)));
  const bool stands =
      std::any_of(words.begin(), words.end(), [](const PlaceWord& word) { return IsAmong(word.low, kStandsStill); });
  return stands && ContainsAny(line, {"dataloader", "DataLoader", "Dataloader", "data loader", "data_loader",
                                      "the loader", "num_workers", "worker processes"});
}

// Server is waiting for connections on [10.3.1.7:30050]...
std::string PlaceOfDgl(std::string_view text) {
  constexpr size_t kMostServers = 4, kLongestAddress = 80;
  constexpr std::string_view kWaits = "Server is waiting for connections on [";
  std::string servers;
  size_t count = 0;
  for (auto rest = After(text, kWaits); rest; rest = After(*rest, kWaits)) {
    const std::string_view address = rest->substr(0, rest->find_first_of("]\n"));
    if (address.size() > kLongestAddress || ++count > kMostServers) continue;
    servers.append(servers.empty() ? "" : ", ").append(address);
  }
  if (count == 0) return "";
  return "while DGL's clients connect to its servers (" + servers + (count > kMostServers ? ", ...)" : ")");
}

}  // namespace tacet
