// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/open_finding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeouts/nameless_waits.h"
#include "analysis/timeouts/timeout_census.h"
#include "rules/findings/quiet_rank.h"
#include "rules/unexplained/open_calls.h"
#include "rules/words/caller_places.h"
#include "rules/words/crash_steps.h"
#include "rules/words/end_sentence.h"
#include "rules/words/hang_capture.h"
#include "rules/words/library_words.h"
#include "rules/words/message_words.h"
#include "rules/words/milestone_words.h"
#include "rules/words/timeout_words.h"
#include "rules/words/words.h"
#include "rules/words/xla_words.h"

namespace tacet {

bool IsEndOfRun(const Event& event) {
  return event.kind == EventKind::process_killed && event.As<ProcessEnd>().code > 0 && !event.rank.known();
}

namespace {

constexpr size_t kMostCited = 3;

std::string OpenProof(const Case& facts, const Event& told) {
  switch (told.kind) {
    case EventKind::heartbeat_stuck:
      if (told.As<HeartbeatStuck>().waits_for_workers) return "the engine waits for its workers";
      return (told.rank.known() ? "the watchdog thread of " + RankWords({told.rank}) : "the watchdog thread") +
             std::string(" made no progress");
    case EventKind::gil_blocked: return "the process made no progress";
    case EventKind::desync_report:
    case EventKind::monitored_barrier_failed: return "ranks are not at the same place";
    case EventKind::hung_task: return "the kernel saw the process blocked";
    case EventKind::watchdog_status:
    case EventKind::dump_signal: return "an operation did not finish";
    case EventKind::connection_lost:
    case EventKind::store_lost:
      return told.As<LostPeer>().kind == PeerKind::rendezvous ? "the agent could not reach the store"
                                                              : "the process lost a peer";
    case EventKind::xla_wait: return XlaProof(told);
    case EventKind::told_hang: return "said in the text around the log";
    case EventKind::store_wait_timeout: return "a wait in the store timed out";
    case EventKind::process_killed: return IsEndOfRun(told) ? "how the run ended" : "the launcher ended the process";
    case EventKind::process_exited:
      if (NeverStarted(told)) return "what could not be started";
      [[fallthrough]];
    case EventKind::abort_signal: return "the process ended";
    case EventKind::nccl_error:
    case EventKind::nccl_warning: return std::string(LibraryName(facts.incident, told)) + "'s error message";
    case EventKind::exception:
      if (IsInterruptedMeeting(told)) return "where Ctrl-C met the process";
      [[fallthrough]];
    default: return IsSignOfHang(told) ? "a wait timed out" : "the earliest error in these files";
  }
}

// The group is larger than the number of ranks whose output is here: it must be asked for, whoever they are.
std::string MissingOutputStep(const Incident& incident, const TimeoutCensus& census) {
  if (!census) return "";
  const int64_t size = census.calls.front().group_size, heard = static_cast<int64_t>(census.heard);
  if (size <= heard || size - heard <= static_cast<int64_t>(census.unheard.size())) return "";
  int64_t folded = 0;
  for (const TimedOutCall& call : census.calls) folded = std::max(folded, int64_t{call.first->folded});
  for (const Event& event : incident.events)
    if (IsSignOfHang(event)) folded = std::max(folded, int64_t{event.folded});
  if (folded > 0)
    return "Ray left out " + std::to_string(folded) + (folded == 1 ? " line" : " lines") +
           " like these: set RAY_DEDUP_LOGS=0, or read the workers' own files (/tmp/ray/session_latest/logs), to see "
           "whose they are.";
  return "The group has " + std::to_string(size) + " ranks, and the output of " + std::to_string(size - heard) +
         " of them is not in these files: add it, and run the diagnosis again.";
}

// The counters by which a rank has completed what others wait in, and the bar of the work that goes on.
void CiteBesideTimeouts(const Incident& incident, const TimeoutCensus& census, Finding& finding) {
  if (census.proof_of_completed)
    finding.evidence.push_back(CiteEvent(
        *census.proof_of_completed, RankWords({census.proof_of_completed->rank}) + " has completed #" +
                                        std::to_string(census.proof_of_completed->As<WorkCounters>().last_completed)));
  for (const Event& event : incident.events)
    if (const uint32_t line = event.As<WatchdogTimeout>().bar_line; line > 0 && !census.bar.empty()) {
      finding.evidence.push_back({SourceRef{event.source.file, line, 0}, "", "the progress bar is still advancing"});
      return;
    }
}

std::string LateWatchdogStep(const Event& timeout) {
  const auto& told = timeout.As<WatchdogTimeout>();
  return "Find out why the watchdog reported " + DurationWords((told.elapsed_ms - told.timeout_ms) * 1'000'000) +
         " after the limit: the watchdog itself was delayed, for example because the process or its host was suspended "
         "or starved of CPU, a CUDA call blocked, or the clock jumped (dmesg -T, journalctl).";
}

bool IsAllPointToPoint(const TimeoutCensus& census) {
  return std::all_of(census.calls.begin(), census.calls.end(),
                     [](const TimedOutCall& call) { return call.op == OpKind::send || call.op == OpKind::recv; });
}

// Ranks that belong to both groups may use them in different orders.
bool HasSeveralGroups(const TimeoutCensus& census) {
  return std::any_of(census.calls.begin(), census.calls.end(), [&](const TimedOutCall& call) {
    return !call.group.empty() && !census.calls.front().group.empty() && call.group != census.calls.front().group;
  });
}

// PyTorch counts from 1.
bool IsFirstCall(const TimedOutCall& call) {
  return call.seq == 1 && call.op != OpKind::unknown && !call.first->Means(Meaning::of_ascend);
}

// " to well over 44 min": as long as the others had waited, and what the bar expects to need still.
std::string BarLimitWords(const Event& timeout) {
  const auto& told = timeout.As<WatchdogTimeout>();
  const int64_t waited_ms = std::max(told.elapsed_ms, told.timeout_ms);
  if (told.bar_left_s <= 0 || waited_ms <= 0) return "";
  return " to well over " + DurationWords((waited_ms + told.bar_left_s * 1000) * 1'000'000);
}

std::vector<std::string> StepsOfAHang(const Case& facts, const TimeoutCensus& census, const Event& told) {
  const bool gone = IsGone(facts);
  if (told.kind == EventKind::xla_wait) return XlaSteps(told);
  if (!StoodWords(facts.incident, told.source).empty()) return StepsAfterTheWork(gone);
  if (auto own = LibraryHangSteps(told); !own.empty()) return own;
  std::vector<std::string> steps;
  constexpr size_t kFew = 8;
  const Event& timeout = census ? *census.calls.front().first : told;
  const std::string missing = MissingOutputStep(facts.incident, census);
  if (!missing.empty()) steps.push_back(missing);
  if (IsFoundLate(timeout)) steps.push_back(LateWatchdogStep(timeout));
  if (std::string step = census ? CallerPlaceStep(FindCallerPlaces(facts.incident, census.calls.front())) : "";
      !step.empty())
    steps.insert(steps.begin(), std::move(step));
  if (!census.bar.empty())
    return {
        "Do this work before the job starts: preprocess the dataset once, save it to disk (or fill the cache that "
        "all ranks read), and let the job only load it.",
        "Or raise the timeout" + BarLimitWords(timeout) +
            ": ddp_timeout of Transformers and LLaMA-Factory, init_process_group(timeout=...). More processes "
            "(num_proc) shorten the preprocessing."};
  if (!census.completed.empty())
    steps.push_back(
        "Compare what the ranks issue up to the cited numbers: code that depends on the rank or on the data makes them "
        "diverge (uneven batches, a skipped step, a reduction for logging on one rank only)." +
        std::string(HasAllRecords(facts) ? "" : " Flight records show the first difference."));
  // Fewer than those that speak: they may be what is waited for. Otherwise a part of the output was pasted.
  size_t heard = 0;
  for (const TimedOutCall& call : census.calls) heard += call.ranks.size();
  if (const Rank peer = AwaitedRank(census); census && peer.known())
    steps.push_back("Look at " + RankWords({peer}) + " first: the cited line names it as the rank that is waited for.");
  if (told.kind == EventKind::desync_report && !told.ranks.empty() && told.ranks.size() <= kFew)
    steps.push_back("Look at " + RankWords(told.ranks) + " first, which the cited report names as missing.");
  if (missing.empty() && census && !census.nameless.empty() && !census.unheard.empty()) {
    steps.push_back("No line names " + RankWords(census.unheard) + ", and the lines of " +
                    SubjectWords(census.nameless) +
                    " do not show its rank: add the whole output of each rank, and run the "
                    "diagnosis again.");
  } else if (missing.empty() && census && !census.unheard.empty() && census.unheard.size() <= kFew) {
    const bool one = census.unheard.size() == 1;
    steps.push_back(census.unheard.size() < heard
                        ? "Look at " + RankWords(census.unheard) + ": no line is from " + (one ? "it. " : "them. ") +
                              AliveQuestions(facts.incident, one, gone)
                        : "The output of " + RankWords(census.unheard) +
                              " is not in these files: add it, and run the diagnosis again.");
  }
  if (missing.empty() && census && census.unheard.empty() && !census.outside.empty() && census.calls.size() == 1)
    steps.push_back("If " + GroupInWords(census) + " has members beside " + RankWords(census.calls.front().ranks) +
                    ": add their output, and run the diagnosis again.");
  if (census && census.unheard.empty() && census.printing.size() == 1 && census.bar.empty() && missing.empty())
    steps.push_back("Look at " + RankWords(census.printing) +
                    ", the only one that reports no timeout: what do its last "
                    "lines say, and what did it do after them?");
  if (census && census.calls.size() == 1 && census.calls.front().ranks.size() == 1 && timeout.peer.known())
    steps.push_back("Look at rank " + std::to_string(timeout.peer.value) +
                    " of that group first (this is its number within the group): does it report an earlier error, a "
                    "wait of its own, or nothing?");
  if (census && HasSeveralGroups(census) && IsAllPointToPoint(census))
    steps.push_back(
        "These ranks wait for peers, each in a process group of its own, as the stages of a pipeline do: look at the "
        "other ranks of these groups (the next or the previous stage), at their output first and then at their "
        "stacks.");
  else if (HasSeveralGroups(census))
    steps.push_back(
        "Ranks wait in different groups: compare the order in which each rank uses these groups. It must be the same "
        "on all ranks.");
  if (census && IsFirstCall(census.calls.front()))
    steps.push_back(
        "This is the first operation of its group. If every rank has issued it, suspect the path between the GPUs: "
        "test "
        "with NCCL_P2P_DISABLE=1, and between hosts with NCCL_IB_DISABLE=1.");
  if (told.As<HeartbeatStuck>().waits_for_workers)
    steps.push_back(std::string(gone ? "When it hangs again, take" : "Take") +
                    " the stacks of the engine's worker processes (py-spy dump --native --pid PID): the one that is in "
                    "a different place blocks the others; one that compiles or loads weights is only slow.");
  else if (told.kind == EventKind::heartbeat_stuck || told.kind == EventKind::gil_blocked)
    steps.push_back(
        std::string(gone ? "When it hangs again, take" : "Take") +
        " the stacks of the cited process with native frames (py-spy dump --native --pid PID, or gdb): a CUDA or NCCL "
        "call, or a thread holding the GIL, is blocking it.");
  else if (told.kind == EventKind::hung_task)
    steps.push_back("Look at what the process waits for in the kernel: cat /proc/PID/stack, and dmesg -T before it.");
  else if (HaveDiverged(census) && HasAllStacks(facts))
    steps.push_back("Compare where the ranks are (the table below): which condition made them call different things?");
  else if (HaveDiverged(census))
    steps.push_back(std::string(gone ? "When it hangs again" : "While the job hangs") +
                    ", take the stack of every rank (py-spy dump --pid PID): it shows from where each of them called "
                    "the collective that it waits in.");
  else
    steps.push_back(std::string(gone ? "When it hangs again" : "While the job hangs") +
                    (HasAllStacks(facts)
                         ? ", take the stacks of all ranks twice, a few seconds apart (" +
                               StackCommand(facts.incident) + "): the stacks read so far do not settle it."
                         : ", take the stack of every " +
                               std::string(census && !census.outside.empty() ? "member of that group" : "rank") + " (" +
                               StackCommand(facts.incident) +
                               "): the rank whose main thread is not in communication is the one that the "
                               "others wait for."));
  const std::string restart =
      "estart it under `tacet run`, or capture what is listed below, then run the diagnosis on the result.";
  // Of a job that is gone no stack can be taken.
  if (gone)
    steps.insert(steps.end() - 1, "The job is gone: r" + restart);
  else
    steps.push_back("If the job is gone: r" + restart);
  return steps;
}

}  // namespace

std::string AliveQuestions(const Incident& incident, bool one, bool gone) {
  const auto& files = incident.files;
  const bool kernel = std::any_of(files.begin(), files.end(),
                                  [](const InputFile& file) { return file.format.find("kernel_log") == 0; });
  if (gone)
    return std::string(one ? "Get its output" : "Get their output") +
           (kernel ? "."
            : one  ? " and the kernel log (dmesg -T) of its host."
                   : " and the kernel logs (dmesg -T) of their hosts.");
  return std::string(one ? "Is the process alive (ps)? What is it doing (py-spy dump --pid PID)?"
                         : "Are the processes alive (ps)? What are they doing (py-spy dump --pid PID)?") +
         (kernel ? "" : " What does dmesg say?");
}

// PyTorch's monitor ends the process whose watchdog stands still, and an engine ends that gave up on its workers. One
// that only waits says for how long.
static bool EndsTheProcess(const HeartbeatStuck& stuck) { return !stuck.waits_for_workers || stuck.seconds < 0; }

bool IsGone(const Case& facts) {
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    const bool ended = event.kind == EventKind::process_exited || event.kind == EventKind::process_killed ||
                       event.kind == EventKind::abort_signal || event.kind == EventKind::monitored_barrier_failed;
    // PyTorch ends the process with the line itself, whatever the last word of it is.
    const bool ends_itself = event.kind == EventKind::heartbeat_stuck &&
                             (event.Means(Meaning::reported) || EndsTheProcess(event.As<HeartbeatStuck>()));
    // Its watchdog says so before it throws: what it times out, it ends.
    const bool times_out = (event.kind == EventKind::watchdog_status && event.seq >= 0) ||
                           (event.kind == EventKind::watchdog_timeout && event.As<WatchdogTimeout>().timeout_ms > 0 &&
                            event.library == Library::not_told && !event.Means(Meaning::of_ascend));
    return (ended && !event.Means(Meaning::of_service)) || ends_itself || times_out;
  });
}

void AddOpenFinding(const Case& facts, const Event* told, Diagnosis& diagnosis, const Event* before) {
  if (!told) return;
  Finding finding;
  finding.status = diagnosis.status;
  finding.severity = Severity::critical;
  finding.confidence = diagnosis.confidence;
  finding.headline = diagnosis.headline;
  const bool hangs = diagnosis.status == Status::hang;
  finding.explanation =
      told->kind == EventKind::xla_wait
          ? "Before an operation XLA waits until all threads of the process have arrived. The line says who waits, not "
            "who is missing."
      : told->kind == EventKind::told_hang ? "No line of the log shows it; the cited sentence is of the text around it."
      : hangs               ? "A rank waited until it timed out. The line says which rank waited, not for which rank."
      : NeverStarted(*told) ? "No process of the job ran: the line says what could not be started."
      : IsEndOfRun(*told) && !before
          ? "The run's own record says how its command ended. Nothing that was captured says why."
      : before ? "The job ended after it had reported this error itself; Tacet does not know the message."
      : !told->As<NcclError>().cure.empty()
          ? "The message says what failed, and what to do about it."
          : "The line says how the job ended. The reason came before it and is not in these files.";
  const TimeoutCensus census = hangs ? CountTimeouts(facts.incident) : TimeoutCensus{};
  if (census && told->kind == EventKind::watchdog_timeout) {
    for (const TimedOutCall& call : census.calls) {
      finding.affected_ranks.insert(finding.affected_ranks.end(), call.ranks.begin(), call.ranks.end());
      if (finding.evidence.size() < kMostCited)
        finding.evidence.push_back(
            CiteEvent(*call.first, call.op == OpKind::unknown
                                       ? RankWords(call.ranks) + " timed out"
                                       : RankWords(call.ranks) + " waited in " + TimedOutCallWords(call) +
                                             (HasSeveralGroups(census) ? " of group " + call.group : std::string()) +
                                             (IsFoundLate(*call.first) ? " far beyond its timeout"
                                              : call.ranks.size() == 1 ? " until it timed out"
                                                                       : " until they timed out")));
    }
    std::vector<Rank> left;
    for (size_t i = kMostCited; i < census.calls.size(); ++i)
      left.insert(left.end(), census.calls[i].ranks.begin(), census.calls[i].ranks.end());
    if (!left.empty()) {
      std::sort(left.begin(), left.end());
      finding.evidence.back().says += "; so did " + RankWords(left) + " in other calls or groups";
    }
    CiteBesideTimeouts(facts.incident, census, finding);
    const TimedOutCall& common = census.calls.front();
    if (common.op != OpKind::unknown) finding.operation = OperationRef{common.op, common.seq, -1};
  } else {
    if (before) finding.evidence.push_back(CiteEvent(*before, "the first line that reports an error"));
    finding.evidence.push_back(CiteEvent(*told, OpenProof(facts, *told)));
    if (told->kind == EventKind::told_hang) {
      OpenCalls calls = FindOpenCalls(facts);
      finding.affected_ranks = calls.ranks;
      finding.evidence.insert(finding.evidence.end(), calls.evidence.begin(), calls.evidence.end());
    }
    if (const Event* warning = told->kind == EventKind::nccl_error ? WarningBehind(facts, *told) : nullptr)
      finding.evidence.push_back(CiteEvent(*warning, "the last warning before it"));
  }
  finding.fix = hangs ? StepsOfAHang(facts, census, *told) : StepsOfACrash(facts, *told);
  if (const auto quiet = hangs || before ? std::nullopt : FindQuietRank(facts, *told)) {
    const std::string who = RankWords({quiet->rank});
    finding.evidence.push_back(
        {quiet->line->source, quiet->line->text, "the last line of " + who + ", the only one without an error"});
    finding.fix = {
        "Look at what " + who +
            " does after the cited line: did it leave the training loop earlier than the others, or end? "
            "Uneven shards and code that runs on one rank only are the most common reasons.",
        "Let all ranks leave the loop after the same step (agree on the number of steps, or use model.join()), "
        "and call destroy_process_group() only after a barrier of all.",
        "If " + who + " only waited like the others: look at dmesg -T of its host for a kill."};
  }
  if (before)
    finding.fix = {
        "Read the lines around the first cited one: the program says there why it stops.",
        "Search for its words in the program's source: the code that prints the message shows the condition."};
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
}

}  // namespace tacet
