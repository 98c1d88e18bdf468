// SPDX-License-Identifier: Apache-2.0
#include "rules/suspects.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/process/stack_reading.h"
#include "analysis/timeouts/timeout_census.h"
#include "rules/findings/kernel_reason.h"
#include "rules/findings/output_finding.h"
#include "rules/unexplained/open_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/hang_capture.h"
#include "rules/words/own_way_words.h"
#include "rules/words/silence_words.h"
#include "rules/words/timeout_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Nothing tells how long anybody has waited. In a running job, too, somebody is behind at any moment: the rank is
// spoken of, but not suspected.
void SpeakOfAMoment(const Case& facts, Finding& finding, const std::string& who, const std::string& where,
                    Diagnosis& diagnosis) {
  finding.headline = "Where the records end, " + who + (finding.ranks.size() == 1 ? " is" : " are") +
                     " behind the others before " + (where.empty() ? "the next operation" : where) +
                     "; a running job can look like this at any moment";
  finding.explanation =
      "The logs have no times, and no rank reports a timeout: it is unknown whether the job was stalled or still "
      "running when the records end.";
  finding.fix = {NamePlaces(facts.incident, finding.ranks,
                            "If the job hangs: look at " + who + " first (py-spy dump --pid PID, ps, dmesg)."),
                 "Take the stacks twice, a few seconds apart, and run the diagnosis on both."};
  diagnosis.open.back().question = (finding.ranks.size() == 1 ? "Does " : "Do ") + who + " make progress?";
  const bool by_ras = !facts.incident.launch_counts.empty() && facts.incident.streams.empty();
  if (by_ras) {
    finding.headline = "At the time of the RAS report, " + who + (finding.ranks.size() == 1 ? " was" : " were") +
                       " behind the others; a running job can look like this at any moment";
    finding.fix.back() = "Take a second RAS report a few seconds later, and run the diagnosis on both.";
    diagnosis.open.back() = {
        (finding.ranks.size() == 1 ? "Does " : "Do ") + who + " make progress?",
        "a second RAS report a few seconds later (ncclras -f json), and the stack (py-spy dump) of " + who};
    finding.ranks.clear();
    return;
  }
  diagnosis.open.push_back(
      {"Is the job stalled?", "anything with timestamps: the output with the watchdog's message, flight records (" +
                                  std::string(kRecorderSetting) + "), NCCL RAS (ncclras -f json), or black boxes"});
  finding.ranks.clear();
}

// A log that was cut looks like that of a rank which stopped there.
bool OnlyLogsEnd(const Case& facts) {
  const auto& ranks = facts.standstill.ranks;
  const auto is_unclear = [](const Standstill& still) { return still.kind == StandstillKind::unclear; };
  if (std::none_of(ranks.begin(), ranks.end(), is_unclear)) return false;
  return std::all_of(ranks.begin(), ranks.end(), [&](const Standstill& still) {
    if (!is_unclear(still)) return true;
    const RankLife* life = facts.analyses.life.Of(still.rank);
    return still.root && still.root->stream && still.root->stream->source == CallSource::nccl_log && !still.silence &&
           !still.told && life && life->has_nccl_log;
  });
}

}  // namespace

// Where no call is recorded a report or the watchdogs may still tell the operation. Empty where nothing does.
std::string ToldOperationWords(const Case& facts) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::monitored_barrier_failed && !event.ranks.empty()) return "a monitored barrier";
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::desync_report && !event.ranks.empty())
      if (std::string words = ReportedCallWords(event); !words.empty()) return words;
  const TimeoutCensus census = CountTimeouts(facts.incident);
  return census && census.calls.size() == 1 && census.calls[0].op != OpKind::unknown
             ? TimedOutCallWords(census.calls[0])
             : "";
}

// The one in which all watchdogs that report a timeout were waiting.
std::optional<OperationRef> ToldOperation(const Incident& incident) {
  // A desync report counts in its own way, and names the call that was not joined.
  for (const Event& event : incident.events)
    if (event.kind == EventKind::desync_report && event.seq >= 0 && event.op == OpKind::unknown) return std::nullopt;
  const TimeoutCensus census = CountTimeouts(incident);
  if (!census || census.calls.size() != 1 || census.calls[0].op == OpKind::unknown) return std::nullopt;
  return OperationRef{census.calls[0].op, census.calls[0].seq, -1};
}

namespace {

// As many stacks without a name as there are ranks, and one unlike all others: most likely that of the one rank that is
// not where the others wait.
bool TellOddStack(const Case& facts, const std::string& who, Finding& finding) {
  constexpr size_t kFewest = 3;
  const std::vector<StackReading> dumps = ReadNamelessDumps(facts.incident);
  if (dumps.size() < kFewest || dumps.size() != facts.analyses.life.ranks.size()) return false;
  const std::vector<StackGroup> groups = GroupStacks(facts.incident, dumps);
  if (groups.size() != 2 || groups[1].ranks.size() != 1) return false;
  const StackReading& odd = dumps[groups[1].example];
  if (odd.where.empty() || odd.place == StackReading::Place::communication) return false;
  finding.headline +=
      "; one of the " + std::to_string(dumps.size()) + " stacks differs from the others, in " + odd.where;
  finding.evidence.push_back(
      CiteStack(facts.incident, *odd.thread, "the stack that differs, most likely that of " + who));
  finding.fix.front() = "Look at " + odd.where + ", the place in the stack that differs: what does " + who +
                        " wait for there, a lock, a file or another thread?";
  return true;
}

// The kernel saw one process of the job blocked, and whose it is no line tells: most likely that of the one rank that
// is waited for.
bool TellBlockedProcess(const Case& facts, const std::string& who, Finding& finding) {
  const Event* blocked = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::hung_task || event.Means(Meaning::of_service) || event.rank.known()) continue;
    if (blocked && (blocked->pid != event.pid || blocked->speaker != event.speaker)) return false;
    blocked = &event;
  }
  if (!blocked || AwaitedOn(facts, *blocked) != finding.ranks.front()) return false;
  const std::string process = SubjectWords(SubjectOf(facts.incident, *blocked));
  finding.headline += "; the kernel reports " + process + " as blocked, which is most likely " + who;
  finding.evidence.push_back(CiteEvent(*blocked, "a process is blocked in the kernel"));
  finding.fix.front() = "Find out what " + process + " waits for: cat /proc/" +
                        (blocked->pid > 0 ? std::to_string(blocked->pid) : "PID") +
                        "/stack, and the lines around the cited one (a file system, a driver).";
  return true;
}

}  // namespace

// Its own watchdog says that the process was alive, and that something in it was blocked.
static void TellStuckWatchdog(const Case& facts, const std::string& who, Finding& finding) {
  const Event *stuck = nullptr, *gil = nullptr;
  std::set<Rank> others;
  for (const Event& event : facts.incident.events) {
    const bool is_stuck = event.kind == EventKind::heartbeat_stuck, is_gil = event.kind == EventKind::gil_blocked;
    if (!is_stuck && !is_gil) continue;
    if (event.rank != finding.ranks.front()) {
      others.insert(event.rank);
      continue;
    }
    if (is_stuck && !stuck) stuck = &event;
    if (is_gil && !gil) gil = &event;
  }
  if ((!stuck && !gil) || !others.empty()) return;
  const int64_t seconds = stuck ? stuck->As<HeartbeatStuck>().seconds : -1;
  if (stuck) {
    finding.headline += ", but its watchdog thread made no progress";
    if (seconds > 0) finding.headline += " for " + DurationWords(seconds * 1'000'000'000);
    if (gil) finding.headline += ", and the GIL could not be acquired";
    finding.evidence.push_back(CiteEvent(*stuck, "the watchdog of " + who + " made no progress"));
  } else {
    finding.headline += ", and its GIL could not be acquired";
  }
  if (gil) finding.evidence.push_back(CiteEvent(*gil, "a thread of " + who + " held the GIL"));
  finding.fix.front() = "Take the stack of " + who +
                        " with native frames when it happens again (py-spy dump --native --pid PID, or gdb): a CUDA or "
                        "NCCL call" +
                        (gil ? ", or a thread that holds the GIL," : "") + " does not return.";
}

// What the one rank printed last of its own, where the lines say whose they are: it may tell what it was about to do.
static void CiteLastLine(const Case& facts, Finding& finding) {
  if (finding.ranks.size() != 1) return;
  const LineOfRank* last = nullptr;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const LineOfRank& line : outline.last_of_ranks)
      if (line.rank == finding.ranks.front().value) last = &line;
  if (last) finding.evidence.push_back({last->source, last->text, "the last line that the program itself printed"});
}

// It came out of what held it up when the others had given up already, and its frames show where that was.
static std::string TellLateException(const Event& late, const std::string& who, Finding& finding) {
  const auto& raised = late.As<Raised>();
  finding.evidence.push_back(CiteEvent(late, "what " + who + " raised when the others had given up"));
  if (raised.place.file.empty()) return "it raised " + raised.type + " only after the others had given up";
  const std::string place = CodePlaceWords(raised.place);
  finding.fix.front() = "Look at " + place + " on " + who +
                        ": what does it wait for there (a server, a file, a lock, another process)? The exception may "
                        "be a consequence of the job's end.";
  return "it was in " + place + ", which raised " + raised.type + " only after the others had given up";
}

// The one that lags says itself how far it came, or a monitored barrier says that it did not.
static bool TellsItself(const Case& facts) {
  return std::any_of(facts.standstill.ranks.begin(), facts.standstill.ranks.end(), [](const Standstill& still) {
    return still.kind == StandstillKind::unclear && still.told && still.told->not_issued;
  });
}

// A barrier is an all_reduce of one element: who is in one may be in the very call that the others wait in.
static OwnWay OwnWayOf(const Case& facts, const RankLife& suspect) {
  OwnWay way = FindOwnWay(facts.analyses.printed, suspect);
  if (way.kind != OwnWay::Kind::in_barrier) return way;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::watchdog_timeout && IsLikeABarrier(event)) return {};
  return way;
}

bool AddSuspects(const Case& facts, Diagnosis& diagnosis) {
  if (!facts.analyses.outcome.may_hang()) return false;
  Finding finding;
  bool absent = false, all_absent = true;
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != StandstillKind::unclear && still.kind != StandstillKind::absent) continue;
    finding.ranks.push_back(still.rank);
    absent |= still.kind == StandstillKind::absent;
    all_absent &= still.kind == StandstillKind::absent;
  }
  if (finding.ranks.empty()) return false;
  finding.status = Status::undetermined;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  const std::string who = RankWords(finding.ranks);
  finding.affected_ranks = facts.standstill.waiters;
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
    finding.evidence.push_back(
        CiteCall(facts.incident, *facts.standstill.stream, *facts.standstill.operation,
                 RankWords({facts.standstill.stream->rank}) + (FirstSilence(facts, StandstillKind::unclear)
                                                                   ? " waits in this operation"
                                                                   : " issued this, " + who + " did not")));
  }
  if (!facts.standstill.operation) finding.operation = ToldOperation(facts.incident);
  for (const Standstill& still : facts.standstill.ranks)
    if (still.told && still.kind == StandstillKind::unclear)
      finding.evidence.push_back({still.told->source, "", RankWords({still.rank}) + " " + still.told->words});
  for (const Standstill& still : facts.standstill.ranks)
    if (still.kind == StandstillKind::absent)
      finding.evidence.push_back(
          CiteAbsence(RankWords({still.rank}) + " left no file of any kind while its peers did"));
  CiteLastLine(facts, finding);
  CiteSilences(facts, StandstillKind::unclear, finding.evidence);
  const Silence* silence = FirstSilence(facts, StandstillKind::unclear);
  const std::string where = facts.standstill.operation ? OperationWords(facts.incident, *facts.standstill.operation)
                                                       : ToldOperationWords(facts);
  // Without a record of calls, a report may name those that are missing, and not all who wait.
  const bool listed = facts.standstill.operation ||
                      facts.standstill.waiters.size() + finding.ranks.size() >= facts.analyses.life.ranks.size();
  const std::vector<Rank> waiters = listed ? facts.standstill.waiters : std::vector<Rank>{};
  finding.headline = (waiters.empty()       ? "all others wait for "
                      : waiters.size() == 1 ? RankWords(waiters) + " waits for "
                                            : RankWords(waiters) + " wait for ") +
                     who + (where.empty() ? "" : " in " + where) + "; the cause is unknown" +
                     (absent    ? ": no file of " + std::string(finding.ranks.size() == 1 ? "it" : "them") + " is here"
                      : silence ? ": " + SilenceWords(facts, *silence) + ", so it is dead or frozen"
                                : "");
  finding.explanation =
      "The records show which rank the others wait for, but not whether its process is stuck on the host, frozen, "
      "dead, or ended by an error of its own.";
  finding.fix = {"Look at " + who + " first. " + AliveQuestions(facts.incident, finding.ranks.size() == 1),
                 "Capture what is missing (below) and run the diagnosis again."};
  // It wrote a line after the others had begun to wait: its process was alive.
  const RankLife* suspect = finding.ranks.size() == 1 ? facts.analyses.life.Of(finding.ranks.front()) : nullptr;
  const bool alive = suspect && (suspect->asked_to_dump || suspect->store_lost ||
                                 (suspect->exited && !IsFirstHandEnd(*suspect->exited)));  // ended later on
  const StackReading* own = suspect ? facts.analyses.StackOf(suspect->rank) : nullptr;
  const bool communicates = own && own->place != StackReading::Place::host;
  if (alive && !silence && !communicates && TellsItself(facts)) {
    // Alive, and by its own words not in the operation: its host is elsewhere, stuck for ever, merely slow, or on
    // another path than the others. Only an exception that shows the place, or output that is further than that of the
    // others, tells which.
    const OutputFront& front = facts.analyses.front;
    const bool shown = front && front.rank == suspect->rank && !suspect->late_exception;
    const bool ahead = shown && front.kind == OutputFront::Kind::leads;
    const OwnWay way = suspect->late_exception || ahead ? OwnWay{} : OwnWayOf(facts, *suspect);
    if (suspect->late_exception) finding.cause = "rank-stuck-on-host";
    if (ahead) finding.cause = "collective-skipped";
    if (way)
      finding.cause = way.kind == OwnWay::Kind::other_branch ? "collective-skipped"
                      : way.elsewhere()                      ? "collective-mismatch-operation"
                                                             : "rank-stuck-on-host";
    const std::string unknown = "; the cause is unknown";
    std::string told = where.empty()                                     ? ""
                       : facts.standstill.operation || finding.operation ? ", which it has not issued"
                                                                         : ", which it has not reached";
    told += suspect->late_exception ? "; " + TellLateException(*suspect->late_exception, who, finding)
            : ahead                 ? "; its process was alive and further in its program: " + OutputWords(front)
            : way                   ? "; " + WayWords(way)
                  : "; its process was alive, so its own code is stuck or slow, or has taken another path" +
                        (shown ? ": " + OutputWords(front) : std::string());
    if (way) CiteWay(way, who, finding);
    if (ahead && front.other)
      finding.evidence.push_back({front.other->source, front.other->text, "how far the others got"});
    if (const size_t at = finding.headline.find(unknown); at != std::string::npos)
      finding.headline.replace(at, unknown.size(), told);
  }
  const bool late = suspect && !finding.cause.empty();
  if (alive && !late)
    finding.fix.front() =
        "Look at " + who +
        " first: its process was alive when the others timed out. What is it doing (py-spy dump --pid "
        "PID)? What does dmesg say?";
  if (IsGone(facts) && !late)
    finding.fix.front() =
        "Look at the last lines of the output of " + who + ", and at the kernel log (dmesg -T) from that time. " +
        (alive ? "Its process was alive when the others timed out: if the job hangs again, take its stack (py-spy dump "
                 "--pid PID)."
               : std::string("If the job hangs again, take ") +
                     (finding.ranks.size() == 1 ? "its stack" : "their stacks") + " (py-spy dump --pid PID).");
  // The process of a job that is gone has no stack any more.
  if (!IsGone(facts)) finding.fix.front() = NamePlaces(facts.incident, finding.ranks, std::move(finding.fix.front()));
  if (finding.ranks.size() == 1 && !silence) TellBlockedProcess(facts, who, finding);
  if (finding.ranks.size() == 1 && !silence) TellStuckWatchdog(facts, who, finding);
  const bool has_stack = finding.ranks.size() == 1 && !silence && TellOddStack(facts, who, finding);
  const bool recorded = MayHaveFlightRecords(facts.incident);
  const bool stacks_known = std::all_of(finding.ranks.begin(), finding.ranks.end(),
                                        [&](Rank rank) { return facts.analyses.StackOf(rank) != nullptr; });
  diagnosis.open.push_back(
      {(finding.ranks.size() > 1 ? "Why do " : "Why does ") + who + " make no progress?",
       (stacks_known ? "stacks taken a second time, a few seconds later (py-spy dump), " +
                           std::string(recorded ? "the flight record and the output of " : "the output of ")
        : has_stack ? std::string("stacks that name their ranks (a separate file for each rank), the ") +
                          (recorded ? "flight record of " : "output of ")
        : alive && suspect->has_output
            ? std::string("the stack (py-spy dump)") + (recorded ? " and the flight record of " : " of ")
        : recorded ? "the stack (py-spy dump), the flight record and the output of "
                   : "the stack (py-spy dump) and the output of ") +
           who + ", and the kernel log of " + (finding.ranks.size() > 1 ? "their hosts" : "its host")});
  if (!facts.standstill.lasts && !silence) SpeakOfAMoment(facts, finding, who, where, diagnosis);
  // Whoever was started leaves a log. Where logs were collected, a rank without any may merely not have been: it is
  // spoken of, but not suspected. The same goes for a rank of which only the end of its log says that it did not come.
  const bool logs = facts.analyses.life.nccl_logs + facts.analyses.life.outputs > 0;
  if ((all_absent && logs) || OnlyLogsEnd(facts)) finding.ranks.clear();
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

}  // namespace tacet
