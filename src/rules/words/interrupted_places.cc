// SPDX-License-Identifier: Apache-2.0
#include "rules/words/interrupted_places.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "analysis/timeouts/nameless_waits.h"
#include "rules/words/activity_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// True where one rank was elsewhere.
bool AddOddPlace(const Incident& incident, const Event& kill, Finding& finding) {
  std::set<Rank> waiting;
  int64_t number = -1;
  for (const Event& event : incident.events) {
    const auto& work = event.As<WorkCounters>();
    const bool failed = event.kind == EventKind::watchdog_status && event.seq >= 0;
    if ((!failed && event.kind != EventKind::dump_signal) || !event.rank.known() || work.last_completed < 0 ||
        work.last_enqueued <= work.last_completed)
      continue;
    if (number >= 0 && number != work.last_completed + 1) return false;
    number = work.last_completed + 1;
    waiting.insert(event.rank);
  }
  const Event* odd = nullptr;
  for (const Event& event : incident.events) {
    const auto& raised = event.As<Raised>();
    if (event.kind != EventKind::exception || !IsInterrupt(event) || !event.rank.known() ||
        waiting.contains(event.rank) || raised.in_collective || RaisedPlaceWords(event).empty() ||
        event.source.file != kill.source.file)
      continue;
    if (odd && odd->rank != event.rank) return false;
    odd = &event;
  }
  if (!odd || waiting.empty()) return false;
  const std::string who = RankWords({odd->rank}), place = RaisedPlaceWords(*odd);
  const std::vector<Rank> others(waiting.begin(), waiting.end());
  finding.headline += "; at that moment " + who + " was in " + place + ", while " + RankWords(others) + " had #" +
                      std::to_string(number) + " under way";
  finding.evidence.push_back(CiteEvent(*odd, "where " + who + " was when the job was interrupted"));
  finding.fix.insert(finding.fix.begin(), "If the job had stopped before Ctrl-C: look at " + place + " on " + who +
                                              " first, since the others waited for it. What does it wait for there?");
  return true;
}

// "main (train.py:50)", "train.py:88".
std::string PlaceWords(const Event& interrupt) {
  const std::string words = RaisedPlaceWords(interrupt);
  return words.starts_with('<') ? words.substr(words.find('(') + 1, words.size() - words.find('(') - 2) : words;
}

void AddPlaces(const Incident& incident, Finding& finding) {
  constexpr size_t kMostPlaces = 3;
  std::vector<std::string> places;
  size_t processes = 0;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::exception || !IsInterrupt(event) || RaisedPlaceWords(event).empty()) continue;
    ++processes;
    if (std::string place = PlaceWords(event); std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(std::move(place));
  }
  if (places.empty() || places.size() > kMostPlaces) return;
  finding.headline += processes == 1 ? "; at that moment it was in " : "; at that moment its processes were in ";
  for (size_t i = 0; i < places.size(); ++i)
    finding.headline += (i == 0 ? "" : i + 1 < places.size() ? ", " : " and in ") + places[i];
}

}  // namespace

std::optional<Finding> InterruptedFinding(const Case& facts) {
  const Event *odd = nullptr, *waits = nullptr;
  std::set<Rank> met;
  std::vector<Rank> waiters;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::exception || !IsInterrupt(event) || !event.rank.known()) continue;
    if (!met.insert(event.rank).second) continue;
    if (IsInterruptedMeeting(event)) {
      waiters.push_back(event.rank);
      if (!waits) waits = &event;
    } else {
      if (odd || event.As<Raised>().in_collective || RaisedPlaceWords(event).empty()) return std::nullopt;
      odd = &event;
    }
  }
  if (!odd || !waits || met.size() != facts.incident.AllRanks().size()) return std::nullopt;
  std::sort(waiters.begin(), waiters.end());
  const std::string who = RankWords({odd->rank}), place = PlaceWords(*odd);
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {odd->rank};
  finding.affected_ranks = waiters;
  finding.headline = who + " was in " + place + " when the job was interrupted (Ctrl-C), while " + RankWords(waiters) +
                     " waited " + (waits->op == OpKind::barrier ? "in a barrier" : "in the setup of the job") +
                     (waiters.size() == 1 ? ": it most likely waited for " : ": they most likely waited for ") + who;
  finding.evidence.push_back(CiteEvent(*odd, "where Ctrl-C met " + who));
  finding.evidence.push_back(CiteEvent(*waits, "where Ctrl-C met " + RankWords({waits->rank})));
  finding.fix = {"Look at " + place + " on " + who +
                     ": what does it wait for there (data, a download, a lock), or do the others not take this branch?",
                 "Keep work that only one rank does short, or give the barrier a timeout that is long enough for it."};
  return finding;
}

void AddWhereInterrupted(const Incident& incident, const Event& kill, Finding& finding) {
  if (!AddOddPlace(incident, kill, finding)) AddPlaces(incident, finding);
}

}  // namespace tacet
