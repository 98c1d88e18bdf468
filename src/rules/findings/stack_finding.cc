// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/stack_finding.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/process/odd_stack.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

Finding FindingOfStacks(const Case& facts, std::vector<Rank> ranks) {
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  finding.ranks = std::move(ranks);
  // An end that only tells of lost peers came when somebody ended the job.
  finding.status = facts.analyses.end.kind == JobEnding::hung || facts.analyses.end.kind == JobEnding::crashed
                       ? Status::hang
                       : Status::undetermined;
  return finding;
}

// Errors that only tell of others, or of the end of the job, may follow the stacks; an error of a rank's own may not.
bool EndedByItself(const Case& facts) {
  const JobEnd& end = facts.analyses.end;
  return end.kind == JobEnding::finished || facts.analyses.outcome.first_failure ||
         facts.analyses.outcome.somebody_finished || end.said;
}

// Of stacks in the output itself nothing but stacks, or what came of the end, follows.
bool AreLastWords(const std::vector<StackReading>& stacks) {
  size_t last = 0, apart = 0;
  for (const StackReading& one : stacks) {
    last += one.thread->last_words;
    apart += one.thread->looked_at;
  }
  return apart == stacks.size() || 2 * last > stacks.size();
}

// All but one stack are at one place, inside communication, and the one is in code of the program's own.
const StackReading* OddDump(const Case& facts, const std::vector<StackReading>& dumps, const StackReading*& usual) {
  const std::vector<StackGroup> groups = GroupStacks(facts.incident, dumps);
  if (groups.size() != 2 || groups[1].ranks.size() != 1) return nullptr;
  const StackReading& odd = dumps[groups[1].example];
  usual = &dumps[groups[0].example];
  const bool waits = usual->place == StackReading::Place::communication;
  return waits && odd.place == StackReading::Place::host && !odd.where.empty() ? &odd : nullptr;
}

// The one rank whose last line says that it waits for something of the host, or that is elsewhere by what it printed.
const OwnLine* LineApart(const Case& facts, Rank& rank) {
  const OwnLine* apart = nullptr;
  for (const auto& [one, lines] : facts.analyses.printed.last) {
    if (lines.empty() || (lines.back()->wait != LineWait::thing && lines.back()->wait != LineWait::person)) continue;
    if (apart) return nullptr;
    apart = lines.back();
    rank = one;
  }
  const OutputFront& front = facts.analyses.front;
  if (apart || !front || front.kind == OutputFront::Kind::leads) return apart;
  rank = front.rank;
  return front.own;
}

// Nothing of the program stands behind the first of the stacks: when its timer wrote them, nobody printed anything
// more.
bool NothingFollows(const Case& facts, const std::vector<StackReading>& dumps) {
  return std::all_of(facts.analyses.printed.last.begin(), facts.analyses.printed.last.end(), [&](const auto& of_rank) {
    return std::all_of(of_rank.second.begin(), of_rank.second.end(), [&](const OwnLine* line) {
      return std::all_of(dumps.begin(), dumps.end(), [&](const StackReading& dump) {
        return line->source.file != dump.thread->source.file || line->source.line < dump.thread->source.line;
      });
    });
  });
}

// All ranks write into one file, so that no stack has a name: there are as many as ranks that print, and one of them is
// elsewhere. Where what the ranks printed sets one of them apart as well, the two are the same.
std::optional<Finding> NamelessFinding(const Case& facts) {
  constexpr int64_t kFewestSeconds = 10;
  const std::vector<StackReading> dumps = ReadNamelessDumps(facts.incident);
  const auto& printed = facts.analyses.printed.last;
  if (dumps.size() < 3 || dumps.size() != printed.size() || !facts.analyses.stacks.empty() || EndedByItself(facts) ||
      !NothingFollows(facts, dumps))
    return std::nullopt;
  for (const StackReading& dump : dumps)
    if (!dump.whole || dump.thread->timer_s < kFewestSeconds) return std::nullopt;
  const StackReading* usual = nullptr;
  const StackReading* odd = OddDump(facts, dumps, usual);
  Rank rank;
  const OwnLine* line = odd ? LineApart(facts, rank) : nullptr;
  if (!line) return std::nullopt;
  const std::string who = RankWords({rank});
  Finding finding = FindingOfStacks(facts, {rank});
  for (const auto& [other, lines] : printed)
    if (other != rank) finding.affected_ranks.push_back(other);
  finding.headline = who + " is most likely in " + odd->where + ": its last line is " + QuotedLine(*line) +
                     ", and one of the " + std::to_string(dumps.size()) + " stacks is there, while all others are in " +
                     (usual->call.empty() ? usual->where : usual->call + ", called from " + usual->where) +
                     "; they wait for it";
  finding.evidence.push_back(
      CiteStack(facts.incident, *odd->thread, "the stack that differs, most likely that of " + who));
  finding.evidence.push_back({line->source, line->text, "the last line of " + who});
  finding.evidence.push_back(CiteStack(facts.incident, *usual->thread, "where the others are"));
  finding.fix = {"Look at " + odd->where +
                     ": what does it wait for there (a lock, a file, a server, a person)? A lock "
                     "file of an earlier run has to be deleted by hand.",
                 "Set a limit on this wait, and raise an error that names what is missing."};
  return finding;
}

}  // namespace

std::optional<Finding> FindingByStacks(const Case& facts) {
  if (auto nameless = NamelessFinding(facts)) return nameless;
  const std::vector<StackReading>& stacks = facts.analyses.stacks;
  if (stacks.size() < 2 || stacks.size() != facts.incident.AllRanks().size() || EndedByItself(facts) ||
      facts.analyses.life.outputs == 0 || !AreLastWords(stacks) ||
      !std::all_of(stacks.begin(), stacks.end(), [](const StackReading& one) { return one.whole; }))
    return std::nullopt;
  std::vector<Rank> all;
  for (const StackReading& one : stacks) all.push_back(one.rank);
  if (std::all_of(stacks.begin(), stacks.end(), [&](const StackReading& one) {
        return one.where == stacks.front().where && WaitsForALock(facts.incident, one);
      })) {
    Finding finding = FindingOfStacks(facts, all);
    finding.headline = "all ranks wait for a lock in " +
                       (stacks.front().call.empty() ? stacks.front().where : stacks.front().call) +
                       "; none of them holds it, so a process that is gone may have left it behind";
    finding.evidence.push_back(CiteStack(facts.incident, *stacks.front().thread, "where " + RankWords(all) + " are"));
    finding.fix = {
        "Look for a lock file of an earlier run in that place (ls -la; fuser or lslocks show who holds it); "
        "remove it if no process does.",
        "Let one rank do the work before the others begin, and let them wait in a barrier instead of a lock."};
    return finding;
  }
  if (stacks.size() < 3) return std::nullopt;
  const OddStack apart = FindOddStack(stacks);
  const StackReading *odd = apart.odd, *usual = apart.usual;
  if (!odd || odd->place != StackReading::Place::host || odd->where.empty()) return std::nullopt;
  std::vector<Rank> others = all;
  std::erase(others, odd->rank);
  const std::string who = RankWords({odd->rank});
  Finding finding = FindingOfStacks(facts, {odd->rank});
  finding.affected_ranks = others;
  finding.headline = who + " is in " + (odd->call.empty() ? odd->where : odd->call + ", called from " + odd->where) +
                     ", while " + RankWords(others) + " are at one line, " + usual->where +
                     ": if the job made no progress, they most likely waited for " + who;
  finding.evidence.push_back(CiteStack(facts.incident, *odd->thread, "where " + who + " is"));
  finding.evidence.push_back(CiteStack(facts.incident, *usual->thread, "where " + RankWords(others) + " are"));
  finding.fix = {"Look at " + odd->where + " on " + who +
                     ": what does it wait for (data, a server, a lock, a thread or a process of its own)?",
                 "Take the stacks twice, a few seconds apart: a process that is at the same place both times is stuck.",
                 "Set a timeout on every external wait (queues, HTTP, locks); DataLoader(timeout=...) turns a wait for "
                 "data into an error."};
  return finding;
}

}  // namespace tacet
