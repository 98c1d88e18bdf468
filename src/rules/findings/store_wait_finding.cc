// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/store_wait_finding.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "rules/findings/init_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// It printed something, and no line tells that it failed by itself: the launcher may have ended it.
bool LivesOn(const Case& facts, Rank rank) {
  const RankLife* life = facts.analyses.life.Of(rank);
  return life && !life->exception && !life->timeout && !life->init_error && !life->gpu_error && !life->segfault &&
         !life->oom_killed && !life->cuda_oom && !life->host_memory && !life->finished &&
         !(life->exited && IsFirstHandEnd(*life->exited));
}

struct StoreWaits {
  const Event* first = nullptr;
  std::set<Rank> waiters;
};

// Those whose wait is of the kind asked for.
template <class Is>
StoreWaits CollectWaits(const Case& facts, Is is) {
  StoreWaits waits;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::store_wait_timeout || !event.rank.known() || !is(event.As<StoreWait>())) continue;
    if (!waits.first) waits.first = &event;
    waits.waiters.insert(event.rank);
  }
  return waits;
}

std::vector<Rank> OthersOf(const Case& facts, const std::set<Rank>& waiters) {
  std::vector<Rank> others;
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (!waiters.contains(rank)) others.push_back(rank);
  return others;
}

// Some of the others printed what this rank printed last, and some did not: those have not come so far, and it waits
// for them.
bool SomeAreBehind(const Case& facts, Rank rank, const std::vector<Rank>& others) {
  const auto& own = facts.analyses.printed.LastOf(rank);
  if (own.empty()) return false;
  const auto same = std::count_if(others.begin(), others.end(), [&](Rank other) {
    const auto& lines = facts.analyses.printed.LastOf(other);
    return std::any_of(lines.begin(), lines.end(),
                       [&](const OwnLine* line) { return line->shape == own.back()->shape; });
  });
  return same > 0 && static_cast<size_t>(same) < others.size();
}

bool IsAtWork(const PrintedLines::Lines& lines) {
  constexpr int64_t kManyLines = 3;
  int64_t count = 0;
  for (auto line = lines.rbegin(); line != lines.rend() && (*line)->shape == lines.back()->shape; ++line)
    count += (*line)->times;
  return count >= kManyLines;
}

std::string LimitWords(const Event& wait) {
  const int64_t limit_ms = wait.As<StoreWait>().timeout_ms;
  return limit_ms > 0 ? " for " + DurationWords(limit_ms * 1'000'000) : "";
}

}  // namespace

std::optional<Finding> AwaitedWriterFinding(const Case& facts) {
  if (!facts.analyses.sources.empty()) return std::nullopt;
  std::set<std::string> keys;
  const StoreWaits waits = CollectWaits(facts, [&](const StoreWait& wait) {
    if (!wait.own_key.empty()) keys.insert(wait.own_key);
    return !wait.own_key.empty();
  });
  const std::vector<Rank> others = OthersOf(facts, waits.waiters);
  if (keys.size() != 1 || others.size() != 1 || waits.waiters.size() < 2 || !LivesOn(facts, others[0]))
    return std::nullopt;
  const Rank writer = others[0];
  const std::vector<Rank> waiters(waits.waiters.begin(), waits.waiters.end());
  const std::string who = RankWords({writer});
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.status = facts.analyses.end.kind == JobEnding::hung ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {writer};
  finding.affected_ranks = waiters;
  const auto& printed = facts.analyses.printed.last;
  const auto lines = printed.find(writer);
  const OwnLine* last = lines == printed.end() || lines->second.empty() ? nullptr : lines->second.back();
  finding.headline = RankWords(waiters) + " waited" + LimitWords(*waits.first) + " for the key '" + *keys.begin() +
                     "' in the store, until they timed out; " + who +
                     ", the only rank that did not wait for it, most likely has to write it" +
                     (last ? ": its last line is " + QuotedLine(*last) : "");
  // Line after line of one kind: it works, and is not stuck.
  if (last && IsAtWork(lines->second)) finding.cause = "timeout-too-short";
  finding.evidence.push_back(CiteEvent(*waits.first, RankWords(waiters) + " gave up waiting"));
  if (last) finding.evidence.push_back({last->source, last->text, "the last line of " + who});
  finding.fix = {"See what " + who + " does before it writes '" + *keys.begin() +
                     "': work that one rank does alone (a download, a tokenizer, a cache, an index) makes all others "
                     "wait.",
                 "Do this work before the job starts, or split it over the ranks.",
                 "If it is only slow: raise the limit of this wait (the second argument of store.wait, or the timeout "
                 "of the store)."};
  return finding;
}

std::optional<Finding> LoneCreatorFinding(const Case& facts) {
  const StoreWaits waits = CollectWaits(facts, [](const StoreWait& wait) { return wait.of_group; });
  const std::vector<Rank> others = OthersOf(facts, waits.waiters);
  // Were it one of the others that is missing, the rest of them would wait, too.
  if (waits.waiters.size() != 1 || others.size() < 2 ||
      !std::all_of(others.begin(), others.end(), [&](Rank rank) { return LivesOn(facts, rank); }))
    return std::nullopt;
  const Rank rank = *waits.waiters.begin();
  if (SomeAreBehind(facts, rank, others)) return std::nullopt;
  const RankLife* life = facts.analyses.life.Of(rank);
  const std::string who = RankWords({rank});
  const Event* raised = life ? life->exception ? life->exception : life->consequence : nullptr;
  const std::string place = raised && raised->kind == EventKind::exception ? RaisedPlaceWords(*raised) : "";
  Finding finding = InitFinding("init-mismatch", {rank});
  finding.status = Status::crash;
  finding.confidence = Confidence::likely;
  finding.affected_ranks = others;
  finding.headline = who + " waited" + LimitWords(*waits.first) + " for the others to create a group with it" +
                     (place.empty() ? "" : ", in " + place) + ", and no other rank waits there: most likely only " +
                     who + " calls new_group";
  finding.evidence.push_back(CiteEvent(*waits.first, who + " waited here"));
  finding.fix = {
      "Call new_group, init_device_mesh and the like on all ranks in the same order, including those that "
      "are not members of the group.",
      "Find out why only " + who + " comes to the call" + (place.empty() ? std::string() : " in " + place) +
          ": a condition on the rank, in that function or in one that calls it."};
  return finding;
}

}  // namespace tacet
