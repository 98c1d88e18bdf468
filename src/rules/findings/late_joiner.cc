// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/late_joiner.h"

#include <algorithm>
#include <string>

#include "model/network_address.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

std::vector<Rank> LateJoiners(const Case& facts, const Event& gave_up, const std::vector<Rank>& ranks) {
  const auto& told = gave_up.As<Rendezvous>();
  std::vector<Rank> late;
  for (const Rank rank : ranks) {
    bool tried = false, before = false;
    for (const Event& event : facts.incident.events) {
      if (event.rank != rank || !IsStoreUnreachable(event)) continue;
      tried = true;
      before |= !CameBefore(gave_up, event);
    }
    if (tried && !before) late.push_back(rank);
  }
  return static_cast<int64_t>(late.size()) == told.expected - told.joined ? late : std::vector<Rank>{};
}

std::optional<Finding> FindUnstartedStore(const Case& facts, const InitView& init) {
  if (!init.no_store || init.unreachable.size() < 2 || !init.started.empty()) return std::nullopt;
  // What lies between hosts (a firewall, another network) can keep a store that runs from answering.
  if (ScopeOf(TargetOf(*init.no_store)) != AddressScope::loopback && !init.no_store->Means(Meaning::refused))
    return std::nullopt;
  std::vector<Rank> here;
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.any()) here.push_back(rank);
  // Without rank 0, and without a gap; a file of its own each.
  if (here.size() != init.unreachable.size()) return std::nullopt;
  for (size_t i = 0; i < here.size(); ++i)
    if (here[i] != Rank{static_cast<int32_t>(i) + 1} || !init.unreachable.contains(here[i])) return std::nullopt;
  if (facts.incident.files.size() < here.size()) return std::nullopt;
  Finding finding = InitFinding("init-rank-missing", {Rank{0}});
  finding.status = Status::crash;
  finding.confidence = Confidence::possible;
  finding.affected_ranks = here;
  finding.headline = "there is no output of rank 0, which runs the store, and " + RankWords(here) +
                     " cannot connect to it: rank 0 most likely was not started";
  finding.evidence.push_back(CiteEvent(*init.no_store, "the store, which rank 0 runs, does not answer"));
  finding.evidence.push_back(CiteAbsence("no file is from rank 0"));
  finding.fix = {
      "Check whether the first node, and rank 0 on it, was started: the launcher's list of processes, ps on that host.",
      "If it runs: compare MASTER_ADDR and MASTER_PORT of all ranks, and check that it listens there (ss -ltn)."};
  return finding;
}

std::optional<Finding> FindLoneGroup(const Case& facts) {
  const Event* wait = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::store_wait_timeout || !event.rank.known()) continue;
    if (wait && wait->rank != event.rank) return std::nullopt;
    if (!wait) wait = &event;
  }
  const auto& tails = facts.analyses.printed.last;
  if (!wait || tails.size() < 3 || tails.size() != facts.analyses.printed.ranks.size()) return std::nullopt;
  const auto own = tails.find(wait->rank);
  if (own == tails.end() || own->second.size() < 2) return std::nullopt;
  const OwnLine* last = own->second.back();
  const auto has = [](const std::vector<const OwnLine*>& lines, uint64_t shape) {
    return std::any_of(lines.begin(), lines.end(), [&](const OwnLine* line) { return line->shape == shape; });
  };
  std::vector<Rank> others;
  const OwnLine* other = nullptr;
  for (const auto& [rank, lines] : tails) {
    if (rank == wait->rank) continue;
    // They stopped at a line that this rank has printed, too, and did not print what it printed then.
    if (lines.empty() || !has(own->second, lines.back()->shape) || has(lines, last->shape)) return std::nullopt;
    others.push_back(rank);
    other = lines.back();
  }
  const std::string who = RankWords({wait->rank});
  Finding finding = InitFinding("init-mismatch", {wait->rank});
  finding.status = Status::crash;
  finding.confidence = Confidence::likely;
  finding.affected_ranks = others;
  finding.headline = who + " alone made a call that all ranks must make, after its line " + QuotedLine(*last) +
                     ", and waited in the store for the others until it timed out; " + RankWords(others) +
                     " continued without it";
  finding.evidence.push_back(CiteEvent(*wait, who + " waited here"));
  finding.evidence.push_back({last->source, last->text, "printed by " + who + " alone"});
  finding.evidence.push_back({other->source, other->text, "the last line of the others"});
  finding.fix = {"Look at what " + who +
                     " calls after this line: new_group, init_device_mesh and the like must be called by all ranks in "
                     "the same order, including those that are not members.",
                 "Take the call out of the branch that only this rank enters."};
  return finding;
}

}  // namespace tacet
