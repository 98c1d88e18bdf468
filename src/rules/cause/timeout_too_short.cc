// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rules/rule.h"
#include "rules/words/message_words.h"
#include "rules/words/milestone_words.h"
#include "rules/words/scheduler_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// A wait this close to the limit that still ended well, or a last member this late, shows that time was short, not that
// somebody stood still.
constexpr double kCloseToLimit = 0.5;

struct LateArrival {
  const Call* first = nullptr;
  const Call* last = nullptr;
  const CallStream* first_stream = nullptr;
  const CallStream* last_stream = nullptr;
};

bool TookLonger(const LateArrival& late) {
  return late.last->enter_wall_ns - late.first->enter_wall_ns >= int64_t{late.first->timeout_ms} * 1'000'000;
}

// An operation that all members issued, the last one more than the time limit after the first; or after much of it,
// where the operation did end on somebody's GPU, so that it did not stand still.
LateArrival FindLateArrival(const SourceAnalysis& source) {
  for (const GroupCalls& group : source.groups) {
    const int64_t highest = group.HighestEnqueued();
    for (int64_t seq = std::max<int64_t>(highest - 8, 0); seq <= highest; ++seq) {
      LateArrival late;
      bool whole = true, ended = false;
      for (const MemberCalls& member : group.members) {
        const Call* call = member.Find(static_cast<uint32_t>(seq));
        if (!call || call->enter_wall_ns == kNoTime) {
          whole = false;
          break;
        }
        ended |= IsFinished(*call);
        if (!late.first || call->enter_wall_ns < late.first->enter_wall_ns)
          late.first = call, late.first_stream = member.stream;
        if (!late.last || call->enter_wall_ns > late.last->enter_wall_ns)
          late.last = call, late.last_stream = member.stream;
      }
      if (!whole || !late.first || late.first->timeout_ms == 0) continue;
      const double limit_ns = late.first->timeout_ms * 1e6;
      const auto gap_ns = static_cast<double>(late.last->enter_wall_ns - late.first->enter_wall_ns);
      if (gap_ns >= limit_ns * (ended ? kCloseToLimit : 0.9)) return late;
    }
  }
  return {};
}

// The longest operation of a group that did end, as a share of the limit. The first one does not count: it waits until
// all ranks have started up.
double LongestShare(const SourceAnalysis& source, const Call** longest, const CallStream** stream) {
  double share = 0;
  for (const GroupCalls& group : source.groups) {
    for (const MemberCalls& member : group.members) {
      for (size_t i = 0; i < member.calls.size(); ++i) {
        const Call& call = member.At(i);
        if (!IsFinished(call) || call.duration_ms <= 0 || call.timeout_ms == 0 || call.seq <= 1) continue;
        const double one = static_cast<double>(call.duration_ms) / call.timeout_ms;
        if (one > share) share = one, *longest = &call, *stream = member.stream;
      }
    }
  }
  return share;
}

// Somebody has waited for a missing rank as long as the limit allows: that one does not come.
bool WaitsTooLong(const SourceAnalysis& source) {
  return std::any_of(source.waits.roots.begin(), source.waits.roots.end(), [](const WaitRoot& root) {
    if (root.kind != RootKind::not_entered || !root.call || !root.stream || root.call->timeout_ms == 0) return true;
    if (root.call->enter_wall_ns == kNoTime || root.stream->captured_wall_ns == kNoTime) return true;
    const int64_t limit = int64_t{root.call->timeout_ms} * 1'000'000;
    return root.stream->captured_wall_ns / 2 - root.call->enter_wall_ns / 2 >= limit / 2 * 9 / 10;
  });
}

}  // namespace

static std::vector<std::string> LateRankSteps() {
  return {
      "Split this work across all ranks, or do it outside the job: what one rank does alone makes all others "
      "wait.",
      "Or raise the limit for it: init_process_group(timeout=...), ddp_timeout of Transformers, or a group with a "
      "timeout of its own for the wait (new_group(timeout=...), monitored_barrier)."};
}

// No record is here, and the output shows that the one who is missing works on.
static bool JudgeRankAtWork(const Case& facts, RuleAnswer& answer) {
  const auto working = FindRankAtWork(facts);
  if (!working) return false;
  const TimedOutCall& call = working->census.calls.front();
  const Rank rank = working->rank;
  // Records of the others may be here, and show that they wait for it and no more.
  const auto& ends = facts.standstill.ranks;
  const bool unclear = ends.size() == 1 && ends[0].rank == rank && ends[0].kind == StandstillKind::unclear;
  if (!facts.analyses.sources.empty() && (!unclear || !working->by_checkpoint)) return false;
  const int64_t limit_ms = call.first->As<WatchdogTimeout>().timeout_ms;
  Finding finding;
  finding.cause = "timeout-too-short";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {rank};
  finding.affected_ranks = call.ranks;
  if (call.op != OpKind::unknown) finding.operation = OperationRef{call.op, call.seq, -1};
  std::string place;
  if (const Call* operation = facts.standstill.operation) {
    finding.operation = RefOf(*operation);
    finding.group = facts.standstill.group;
    place = CallSiteWords(facts.incident, *operation);
  }
  finding.headline = RankWords(call.ranks) + " timed out " + (place.empty() ? "" : "in " + place + " ") +
                     "while they waited for " + RankWords({rank}) + ", which was still working ('" +
                     MessageWords(working->text) + "')" +
                     (limit_ms > 0 ? "; the limit is " + DurationWords(limit_ms * 1'000'000) : std::string());
  finding.evidence.push_back(
      {working->source, working->text, RankWords({rank}) + " made progress after the first timeout"});
  finding.evidence.push_back(CiteEvent(*call.first, RankWords(call.ranks) + " waited until they timed out"));
  finding.fix = LateRankSteps();
  answer.findings.push_back(std::move(finding));
  return true;
}

// By its own counters it issued the operation when the time of the others was up already.
static bool JudgeLateCounters(const Case& facts, RuleAnswer& answer) {
  if (!facts.analyses.sources.empty() || facts.analyses.told.size() != 1) return false;
  const ToldLaggard& told = facts.analyses.told.front();
  const TimeoutCensus census = CountTimeouts(facts.incident);
  if (!told.arrived || !census) return false;
  const TimedOutCall* call = nullptr;
  for (const TimedOutCall& one : census.calls)
    if (!std::binary_search(one.ranks.begin(), one.ranks.end(), told.rank) && (!call || one.seq < call->seq))
      call = &one;
  if (!call) return false;
  const int64_t limit_ms = call->first->As<WatchdogTimeout>().timeout_ms;
  const std::string who = RankWords({told.rank});
  Finding finding;
  finding.cause = "timeout-too-short";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {told.rank};
  finding.affected_ranks = told.waiters;
  finding.operation = OperationRef{call->op, call->seq, -1};
  finding.headline = who + " issued " + std::string(Name(call->op)) + " #" + std::to_string(call->seq) +
                     " only after " + RankWords(call->ranks) + " had timed out in it" +
                     (limit_ms > 0 ? "; the limit is " + DurationWords(limit_ms * 1'000'000) : std::string());
  finding.evidence.push_back({told.source, "", who + " " + told.words});
  finding.evidence.push_back(CiteEvent(*call->first, RankWords(call->ranks) + " waited until they timed out"));
  finding.evidence.push_back(
      CiteEvent(*told.arrived, "later " + who + " had issued operations up to #" +
                                   std::to_string(told.arrived->As<WorkCounters>().last_enqueued)));
  finding.fix = LateRankSteps();
  answer.findings.push_back(std::move(finding));
  return true;
}

// Nothing but a sentence tells of it: what one rank does takes longer than the others wait.
static bool JudgeToldLimit(const Case& facts, RuleAnswer& answer) {
  const auto& events = facts.incident.events;
  const auto told = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::watchdog_timeout && event.Means(Meaning::in_prose);
  });
  if (told == events.end() || !facts.analyses.sources.empty()) return false;
  Finding finding;
  finding.cause = "timeout-too-short";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.headline = "something takes longer than the others wait for it (" +
                     DurationWords(told->As<WatchdogTimeout>().timeout_ms * 1'000'000) +
                     "), as the text says: a time limit ends the job";
  finding.evidence.push_back(CiteEvent(*told, "said in the text around the log"));
  finding.fix = LateRankSteps();
  answer.findings.push_back(std::move(finding));
  return true;
}

// A wait in the store ended, and the work that was waited for goes on in the same output.
static bool JudgeWorkBeside(const Case& facts, RuleAnswer& answer) {
  const auto& events = facts.incident.events;
  const auto wait = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::store_wait_timeout && !event.As<StoreWait>().bar.empty();
  });
  if (wait == events.end() || !facts.analyses.sources.empty()) return false;
  const auto& told = wait->As<StoreWait>();
  Finding finding;
  finding.cause = "timeout-too-short";
  finding.status = facts.analyses.end.kind == JobEnding::hung ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  for (const Event& event : events)
    if (event.kind == EventKind::store_wait_timeout && event.rank.known() && event.peer == wait->peer &&
        std::find(finding.affected_ranks.begin(), finding.affected_ranks.end(), event.rank) ==
            finding.affected_ranks.end())
      finding.affected_ranks.push_back(event.rank);
  std::sort(finding.affected_ranks.begin(), finding.affected_ranks.end());
  if (wait->peer.known()) finding.ranks = {wait->peer};  // whoever creates what is waited for is the one that works
  const std::string working =
      finding.ranks.empty() ? "the work of one process" : "most likely the work of " + RankWords(finding.ranks);
  finding.headline = (finding.affected_ranks.empty() ? std::string("a process") : RankWords(finding.affected_ranks)) +
                     " timed out waiting for " + (finding.ranks.empty() ? "the store" : RankWords(finding.ranks)) +
                     (told.timeout_ms > 0 ? " after " + DurationWords(told.timeout_ms * 1'000'000) : "") +
                     ", while a progress bar in the same output was still advancing ('" + told.bar + "'): " + working +
                     " takes longer than the others wait";
  finding.evidence.push_back(CiteEvent(*wait, "a wait in the store timed out"));
  finding.fix = LateRankSteps();
  answer.findings.push_back(std::move(finding));
  return true;
}

static RuleAnswer JudgeTimeoutTooShort(const Case& facts) {
  RuleAnswer answer;
  if (JudgeToldLimit(facts, answer)) return answer;
  if (JudgeRankAtWork(facts, answer) || JudgeLateCounters(facts, answer) || JudgeWorkBeside(facts, answer))
    return answer;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::job_time_limit && !ProgressShortlyBefore(facts, event)) {
      answer.open.push_back({"Was the job stalled, or was the scheduler's time limit too short for it?",
                             "stacks of all ranks (py-spy dump), taken shortly before the scheduler's limit, or "
                             "flight records"});
      break;
    }
  if (!facts.analyses.outcome.first_timeout && !facts.analyses.outcome.unfinished_calls) return answer;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    if (!source.waits.cycles.empty() || !source.differences.empty() || WaitsTooLong(source)) continue;
    Finding finding;
    finding.cause = "timeout-too-short";
    finding.status = Status::hang;
    finding.severity = Severity::critical;
    const LateArrival late = FindLateArrival(source);
    if (!late.last && !source.waits.roots.empty()) continue;
    // Whoever is waited for at the moment of the dump came late before, and would come again.
    const Call* longest = nullptr;
    const CallStream* stream = nullptr;
    if (late.last) {
      finding.confidence = Confidence::likely;
      finding.ranks = {late.last_stream->rank};
      finding.operation = RefOf(*late.first);
      finding.group = late.first->group;
      finding.headline = RankWords(finding.ranks) + " reached " + OperationWords(facts.incident, *late.first) + " " +
                         DurationWords(late.last->enter_wall_ns - late.first->enter_wall_ns) +
                         " after the first rank, " + (TookLonger(late) ? "which is longer than" : "which is close to") +
                         " the limit of " + DurationWords(int64_t{late.first->timeout_ms} * 1'000'000);
      finding.evidence.push_back(CiteCall(facts.incident, *late.last_stream, *late.last, "the last rank did issue it"));
      finding.evidence.push_back(
          CiteCall(facts.incident, *late.first_stream, *late.first, "the first rank has waited since this call"));
    } else if (LongestShare(source, &longest, &stream) >= kCloseToLimit) {
      finding.confidence = Confidence::possible;
      finding.operation = RefOf(*longest);
      finding.group = longest->group;
      finding.headline = "operations that finish take up to " +
                         DurationWords(static_cast<int64_t>(longest->duration_ms * 1e6f)) + ", close to the limit of " +
                         DurationWords(int64_t{longest->timeout_ms} * 1'000'000) +
                         ": the timeout is too short for this job";
      finding.evidence.push_back(CiteCall(facts.incident, *stream, *longest, "the longest one that did finish"));
    } else {
      continue;
    }
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  return answer;
}

extern const Rule kTimeoutTooShortRule;
const Rule kTimeoutTooShortRule = {
    "timeout-too-short",
    "A rank arrives, but after the time limit",
    "flight records of all members, or output that shows the late rank still working",
    "All ranks reach the operation and would finish it, but one of them arrives after the time limit: a long "
    "evaluation, a checkpoint, compilation, a slow first step.",
    "In a hang the missing rank never arrives. Here the records show that it did, at about the time when the others' "
    "watchdogs fired, or later.",
    {"Raise the limit: init_process_group(timeout=timedelta(minutes=...)), for the group that waits.",
     "Shorten what the late rank does alone, or let all ranks do it."},
    {"Set the limit to several times the longest legitimate pause (checkpoint, evaluation, compilation)."},
    JudgeTimeoutTooShort};

}  // namespace tacet
