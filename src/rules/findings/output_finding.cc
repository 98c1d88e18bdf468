// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/output_finding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/process/odd_stack.h"
#include "rules/findings/awaited_finding.h"
#include "rules/findings/late_finding.h"
#include "rules/findings/stack_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/interrupted_places.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

bool CitesStack(const Incident& incident, const Finding& finding) {
  return std::any_of(incident.threads.begin(), incident.threads.end(), [&](const ThreadStack& thread) {
    const SourceRef cited = CiteStack(incident, thread, "").source;
    return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
      return item.source.file == cited.file && item.source.line == cited.line;
    });
  });
}

// One stack shows where a rank was at a moment, and not that it stayed there.
CannotTell StackQuestion(const Case& facts, const Finding& finding) {
  const std::vector<Rank>& ranks = finding.ranks;
  const bool one = ranks.size() == 1;
  const bool named = std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) { return facts.analyses.StackOf(rank); });
  if (named || CitesStack(facts.incident, finding))
    return {(one ? "Does " : "Do ") + RankWords(ranks) + " stay there?",
            std::string(one ? "another stack of it" : "other stacks of them") +
                (named ? "" : ", in a file that names the rank") +
                ", taken a few seconds after the first (py-spy dump, or faulthandler.dump_traceback_later(..., "
                "repeat=True) in the job)"};
  return {(one ? "What is " : "What are ") + RankWords(ranks) + " doing on the host?",
          NamePlaces(facts.incident, ranks,
                     std::string(one ? "its stack" : "their stacks") +
                         ", taken while the job hangs (py-spy), or by faulthandler.dump_traceback_later() in the job")};
}

Finding HostFinding(std::vector<Rank> ranks, std::vector<Rank> waiters) {
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = std::move(ranks);
  finding.affected_ranks = std::move(waiters);
  return finding;
}

// The output stopped long before something ended the job, and one rank is a line behind all others.
std::optional<Finding> LaggingFinding(const Case& facts) {
  const OutputFront& front = facts.analyses.front;
  const JobEnd& end = facts.analyses.end;
  if (front.kind != OutputFront::Kind::lags || end.kind != JobEnding::hung || end.quiet_ns <= 0) return std::nullopt;
  const std::string who = RankWords({front.rank});
  Finding finding = HostFinding({front.rank}, front.others);
  finding.headline = OutputWords(front) + "; then nothing was printed for " + DurationWords(end.quiet_ns) +
                     ", until the job was ended. The others most likely wait for " + who;
  CiteOutputFront(facts, finding);
  if (end.told) finding.evidence.push_back(CiteEvent(*end.told, "how the job was ended"));
  finding.fix = {"Look at what " + who +
                     " does between these two lines: does it load data, read or write a file, wait " +
                     "for a server or a lock?",
                 "Set a timeout on every external wait (queues, HTTP, locks): DataLoader(timeout=...) turns a wait for "
                 "data into an error."};
  return finding;
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Each of these ranks prints again and again that it waits for a file, and a rank wrote one of that name into another
// folder: what they wait for is never written.
std::optional<Finding> MissingFileFinding(const Case& facts) {
  constexpr int64_t kOften = 3;
  std::vector<std::pair<Rank, const OwnLine*>> waits;
  const OwnLine* written = nullptr;
  Rank writer;
  for (const Rank rank : facts.incident.AllRanks()) {
    const auto& lines = facts.analyses.printed.LastOf(rank);
    if (!lines.empty() && !lines.back()->awaited.empty() && lines.back()->times >= kOften)
      waits.emplace_back(rank, lines.back());
  }
  for (const Rank rank : facts.incident.AllRanks())
    for (const OwnLine* line : facts.analyses.printed.LastOf(rank)) {
      if (line->written.empty()) continue;
      for (const auto& [waiter, wait] : waits) {
        if (wait->awaited == line->written) return std::nullopt;  // it is there
        if (NameOf(wait->awaited) == NameOf(line->written) && waiter != rank) written = line, writer = rank;
      }
    }
  if (!written) return std::nullopt;
  std::vector<Rank> ranks, others;
  for (const auto& [rank, wait] : waits)
    if (NameOf(wait->awaited) == NameOf(written->written)) ranks.push_back(rank);
  for (const Rank rank : facts.incident.AllRanks())
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) others.push_back(rank);
  const bool one = ranks.size() == 1;
  const OwnLine& wait = *waits.front().second;
  Finding finding = HostFinding(ranks, others);
  finding.headline = RankWords(ranks) + (one ? " waits for " : " wait for ") + wait.awaited +
                     (one ? "" : " and similar files") + ", which no rank writes: " + RankWords({writer}) + " wrote " +
                     written->written;
  finding.evidence = {{wait.source, wait.text,
                       "printed " + std::to_string(wait.times) + " times by " + RankWords({waits.front().first})},
                      {written->source, written->text, "what " + RankWords({writer}) + " wrote"}};
  finding.fix = {
      "Let one rank choose the path, and send it to the others (broadcast_object_list): a name made from the "
      "time, the pid or a random number is different on each rank.",
      "Set a limit on the wait for a file, and raise an error with its path."};
  return finding;
}

// Nobody's calls are recorded, but each rank's own timer (faulthandler) wrote its stack, or somebody asked all for it,
// and nothing was printed after that; what a rank tells later of the end of the job may follow. All but one are at one
// line, and the one is elsewhere, by its stack and, where a timer of the job alone took them, by what it printed.
std::optional<Finding> TimerFinding(const Case& facts) {
  constexpr int64_t kFewestSeconds = 10;
  const std::vector<StackReading>& stacks = facts.analyses.stacks;
  const OutputFront& front = facts.analyses.front;
  // In a running job, too, ranks are in different places at any moment: the output must differ as well.
  if (stacks.size() < 3 || stacks.size() != facts.incident.AllRanks().size()) return std::nullopt;
  const OddStack apart = FindOddStack(stacks);
  const StackReading *odd = apart.odd, *usual = apart.usual;
  if (!odd || odd->place != StackReading::Place::host) return std::nullopt;
  const bool by_output = front && front.kind != OutputFront::Kind::leads && front.rank == odd->rank;
  const bool asked = std::all_of(stacks.begin(), stacks.end(), [](const StackReading& one) {
    return one.thread->timer_s < 0 && one.thread->last_words;
  });
  const bool goes_on = facts.analyses.end.said || facts.analyses.end.kind == JobEnding::finished;
  if (!by_output && (!asked || front || goes_on)) return std::nullopt;
  size_t last_words = 0;
  std::vector<Rank> others;
  for (const StackReading& one : stacks) {
    if ((!asked && one.thread->timer_s < kFewestSeconds) || !one.whole) return std::nullopt;
    last_words += one.thread->last_words;
    if (&one != odd) others.push_back(one.rank);
  }
  if (!odd->thread->last_words || 2 * last_words <= stacks.size()) return std::nullopt;
  const std::string who = RankWords({odd->rank});
  Finding finding = HostFinding({odd->rank}, others);
  finding.confidence = Confidence::possible;
  finding.headline =
      who + " is in " + odd->where + ", while " + RankWords(others) +
      (others.size() == 2 ? " are both at the same line, " : " are all at the same line, ") + usual->where +
      (asked && odd->thread->looked_at ? "; these stacks were taken from outside the processes"
       : asked                         ? "; these stacks are the last that the ranks wrote"
               : "; their timers wrote these stacks after " + DurationWords(odd->thread->timer_s * 1'000'000'000) +
                     ", and nothing has been printed since") +
      ": most likely the others wait for " + who;
  finding.evidence.push_back(CiteStack(facts.incident, *odd->thread, "where " + who + " is"));
  finding.evidence.push_back(CiteStack(facts.incident, *usual->thread, "where " + RankWords(others) + " are"));
  if (by_output) finding.evidence.push_back({front.own->source, front.own->text, "the last line of " + who});
  finding.fix = {"Look at " + odd->where + " on " + who +
                     ": what does it wait for (a lock that it holds itself, storage, another process)?",
                 "Keep work that only one rank does short, or let the others wait for it at a barrier."};
  // Calls into C++ have no frame of Python.
  if (!odd->certain)
    finding.fix.insert(
        finding.fix.begin(),
        "If it makes a call there that all ranks must make (a collective, full_tensor(), state_dict(), a "
        "metric's compute()): let all ranks make it, or none.");
  return finding;
}

}  // namespace

std::string OutputWords(const OutputFront& front) {
  const std::string who = RankWords({front.rank}), others = RankWords(front.others);
  switch (front.kind) {
    case OutputFront::Kind::lags:
      return "the last line of " + who + " is " + QuotedLine(*front.own) + ", and " + others + " have printed " +
             QuotedLine(*front.other) + " since";
    case OutputFront::Kind::apart:
      return "the last line of " + who + " is " + QuotedLine(*front.own) + ", and that of " + others + " is " +
             QuotedLine(*front.other);
    case OutputFront::Kind::leads:
      return who + " has printed " + QuotedLine(*front.own) + ", and none of the others has";
    default: return "the last line of " + who + " is " + QuotedLine(*front.own) + ", which no other rank has printed";
  }
}

// The line that shows how far the others got. Where the one who is ahead printed it as well, theirs is cited.
static const OwnLine* LineOfOthers(const PrintedLines& printed, const OutputFront& front) {
  if (front.kind != OutputFront::Kind::leads || front.others.empty()) return front.other;
  const auto& ahead = printed.LastOf(front.rank);
  if (std::find(ahead.begin(), ahead.end(), front.other) == ahead.end()) return front.other;
  const auto& lines = printed.LastOf(front.others.front());
  return lines.empty() ? front.other : lines.back();
}

void CiteOutputFront(const Case& facts, Finding& finding) {
  const OutputFront& front = facts.analyses.front;
  finding.evidence.push_back({front.own->source, front.own->text,
                              front.kind == OutputFront::Kind::leads
                                  ? "printed by " + RankWords({front.rank}) + " alone"
                                  : "the last line of " + RankWords({front.rank})});
  const OwnLine* other = front.other ? LineOfOthers(facts.analyses.printed, front) : nullptr;
  if (other)
    finding.evidence.push_back({other->source, other->text,
                                front.kind == OutputFront::Kind::lags
                                    ? "printed by " + RankWords(front.others) + ", not by " + RankWords({front.rank})
                                    : "how far " + RankWords(front.others) + " got"});
}

std::optional<OutputFinding> FindingByOutput(const Case& facts) {
  if (!facts.analyses.sources.empty()) return std::nullopt;
  for (const auto find : {LaggingFinding, LateFinding, MissingFileFinding, AwaitedFinding, InterruptedFinding,
                          TimerFinding, FindingByStacks})
    if (auto finding = find(facts)) {
      if (find == MissingFileFinding) return OutputFinding{std::move(*finding), std::nullopt};
      CannotTell open = finding->ranks.empty() ? CannotTell{"Which rank waits for it?", RankOutputs(Library::not_told)}
                                               : StackQuestion(facts, *finding);
      return OutputFinding{std::move(*finding), std::move(open)};
    }
  return std::nullopt;
}

std::optional<Finding> PassedByOutput(const Case& facts) {
  const OutputFront& front = facts.analyses.front;
  if (front.kind != OutputFront::Kind::leads || facts.analyses.told.size() != 1 || !facts.analyses.sources.empty())
    return std::nullopt;
  const ToldLaggard& told = facts.analyses.told.front();
  const Event* first = nullptr;
  for (const Rank rank : told.waiters) {
    const RankLife* life = facts.analyses.life.Of(rank);
    if (!first && life) first = life->gloo_timeout ? life->gloo_timeout : life->gave_up;
  }
  if (told.rank != front.rank || !first) return std::nullopt;
  const std::string who = RankWords({told.rank}), place = CodePlaceWords(first->As<Raised>().place);
  Finding finding = HostFinding({told.rank}, told.waiters);
  finding.cause = "collective-skipped";
  finding.headline = RankWords(told.waiters) + " waited " + (place.empty() ? "" : "in " + place + " ") +
                     "until they timed out, and " + who + " continued without it: " + OutputWords(front);
  CiteOutputFront(facts, finding);
  finding.evidence.push_back(CiteEvent(*first, RankWords(told.waiters) + " waited here"));
  const auto& lines = facts.analyses.printed.LastOf(told.rank);
  const auto at = std::find(lines.begin(), lines.end(), front.own);
  if (at != lines.begin() && at != lines.end() && *std::prev(at) != front.other)
    finding.evidence.push_back({(*std::prev(at))->source, (*std::prev(at))->text, "what it had printed before that"});
  finding.fix = {"Look at how " + who + " gets past the call" + (place.empty() ? "" : " in " + place) +
                     ": an exception that is caught and logged, a branch that depends on its data, an early return?",
                 "Let all ranks reach the collective in any case: catch the exception before it, and exchange whether "
                 "one occurred."};
  return finding;
}

}  // namespace tacet
