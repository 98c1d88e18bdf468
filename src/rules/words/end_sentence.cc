// SPDX-License-Identifier: Apache-2.0
#include "rules/words/end_sentence.h"

#include <algorithm>
#include <set>
#include <vector>

#include "analysis/timeouts/nameless_waits.h"
#include "analysis/timeouts/timeout_census.h"
#include "model/events/nccl_warnings.h"
#include "rules/findings/refusal_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/end_advice.h"
#include "rules/words/gpu_maker.h"
#include "rules/words/library_words.h"
#include "rules/words/message_words.h"
#include "rules/words/timeout_words.h"
#include "rules/words/words.h"
#include "rules/words/xla_words.h"

namespace tacet {
namespace {

// What its watchdog found, where it tells: "(#716 of 747 issued)".
std::string UnfinishedWords(const Case& facts, Rank rank) {
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::watchdog_status || event.rank != rank || event.seq < 0) continue;
    const int64_t issued = event.As<WorkCounters>().last_enqueued;
    return " (#" + std::to_string(event.seq) + (issued > 0 ? " of " + std::to_string(issued) + " issued)" : ")");
  }
  return " and asked for flight records";
}

// All whose watchdog stood still: which of them was first nobody knows.
std::string StuckWords(const Case& facts, const Event& told_by, const std::string& who) {
  std::set<Rank> ranks;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::heartbeat_stuck && event.rank.known()) ranks.insert(event.rank);
  const auto& told = told_by.As<HeartbeatStuck>();
  std::set<int64_t> engines;  // by their process
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::heartbeat_stuck && event.As<HeartbeatStuck>().waits_for_workers &&
        event.As<HeartbeatStuck>().reason == told.reason && !event.rank.known())
      if (const Process* process = ProcessOf(facts.incident, event)) engines.insert(process->pid);
  if (told.waits_for_workers && engines.size() > 1)
    return std::to_string(engines.size()) + " engine processes wait for their workers, which " + told.reason +
           (told.seconds > 0 ? " for " + std::to_string(told.seconds) + " s at a time" : "");
  if (told.waits_for_workers)
    return who + " waits for its workers, which " + told.reason +
           (told.seconds > 0 ? " for " + std::to_string(told.seconds) + " s at a time" : "");
  if (ranks.size() < 2) return who + "'s watchdog thread made no progress";
  return "the watchdog threads of " + RankWords({ranks.begin(), ranks.end()}) + " made no progress";
}

// All that tell of it: none of them is closer to the reason than the others.
std::string StoreLosers(const Case& facts, const std::string& who) {
  std::set<Rank> ranks;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::store_lost && event.rank.known() && event.As<LostPeer>().kind != PeerKind::rendezvous)
      ranks.insert(event.rank);
  return ranks.size() < 2 ? who : RankWords({ranks.begin(), ranks.end()});
}

// A report names those who have not joined. Where they are most of the job nobody of them is to blame, but who they are
// is worth knowing.
std::string OutOfStepWords(const Case& facts, const Event& report) {
  if (report.ranks.empty()) return "ranks are reported to be out of step";
  std::vector<Rank> joined = facts.incident.AllRanks();
  std::erase_if(joined, [&](Rank rank) {
    return std::find(report.ranks.begin(), report.ranks.end(), rank) != report.ranks.end();
  });
  std::string call = ReportedCallWords(report);
  if (call.empty()) call = "a collective";
  const std::string missing =
      RankWords(report.ranks) + (report.ranks.size() == 1 ? " has not joined" : " have not joined");
  if (joined.empty()) return missing + " " + call;
  return RankWords(joined) + (joined.size() == 1 ? " waits" : " wait") + " in " + call + ", which " + missing;
}

// Nothing but Python leaves these events behind, or the launcher says what it started.
bool RanPython(const Case& facts, const Event& end) {
  if (end.Means(Meaning::by_python) || end.As<ProcessEnd>().local_rank >= 0) return true;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    return event.Means(Meaning::by_python) || event.kind == EventKind::watchdog_timeout ||
           event.kind == EventKind::store_lost ||
           (event.kind == EventKind::exception && !event.Means(Meaning::reported));
  });
}

// All of whom the same is said: "ranks 1, 3".
std::string EndedAlikeWords(const Case& facts, const Event& first, const std::string& who) {
  std::set<Rank> ranks;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::process_exited && event.rank.known() &&
        event.As<ProcessEnd>().how == first.As<ProcessEnd>().how)
      ranks.insert(event.rank);
  return ranks.empty() ? who : RankWords({ranks.begin(), ranks.end()});
}

std::string ExitWords(const Case& facts, const Event& event, const std::string& who) {
  const auto& end = event.As<ProcessEnd>();
  if (end.how == "MPI_Abort")
    return EndedAlikeWords(facts, event, who) + " called MPI_Abort" +
           (end.mpi_error ? " (error code " + std::to_string(*end.mpi_error) + ")" : "");
  if (end.code < 0)
    return who + " was ended by signal " + std::to_string(-end.code) + (end.how.empty() ? "" : " (" + end.how + ")");
  if (end.how == "a heartbeat that stopped") return EndedAlikeWords(facts, event, who) + " stopped sending heartbeats";
  if (!end.how.empty()) return EndedAlikeWords(facts, event, who) + " ended (" + end.how + ")";
  return who + " exited with code " + std::to_string(end.code) +
         (end.code == 1 && RanPython(facts, event) ? ", as Python does after an uncaught exception or sys.exit(1)"
                                                   : "");
}

// " with ncclInternalError"; the two that say what kind of call failed are told in NCCL's own words.
std::string ResultWords(const NcclError& error, bool amd) {
  if (error.code == 1)
    return amd ? ": unhandled cuda error (one of RCCL's own HIP calls failed)"
               : ": unhandled cuda error (one of NCCL's own CUDA calls failed)";
  if (error.code == 2 && error.of_socket)
    return ": unhandled system error (a socket operation failed: a connection to another process)";
  if (error.code == 2) return ": unhandled system error (a socket, memory or file operation failed)";
  if (error.result.empty()) return "";
  // "ncclInternalError", and in words "internal error"
  return (error.result.find(' ') == std::string::npos ? " with " : ": ") + error.result;
}

// All ranks that tell the same result of NCCL, where it is all that they tell: none of them is closer to the reason.
std::string RanksOfResult(const Case& facts, const Event& told, const std::string& who) {
  std::set<Rank> ranks;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_error && event.rank.known() && event.As<NcclError>().reason.empty() &&
        event.As<NcclError>().code == told.As<NcclError>().code)
      ranks.insert(event.rank);
  return told.rank.known() && ranks.size() > 1 ? RankWords({ranks.begin(), ranks.end()}) : who;
}

// A traceback that is cut before its name still tells where the program was.
std::string CutPlaceWords(const CodePlace& place) {
  if (place.function.empty() || place.function.starts_with('<')) return "";
  return ", in " + CodePlaceWords(place);
}

// " waited in a barrier, in main (train.py:50), until it was interrupted (Ctrl-C)"
std::string InterruptedWords(const Event& event) {
  return (event.op == OpKind::barrier ? " waited in a barrier" : " waited for other ranks in the setup of the job") +
         CutPlaceWords(event.As<Raised>().place) + ", until it was interrupted (Ctrl-C)";
}

// " on rank 3", " in process 811 on n4"
std::string InWords(const std::string& who) { return (who.starts_with("rank") ? " on " : " in ") + who; }

std::string StoreWaitWords(const Event& event, const std::string& who) {
  const auto& wait = event.As<StoreWait>();
  std::string what = wait.keys.empty() ? "the store" : "the key " + wait.keys + " in the store";
  if (event.peer_group_rank.known())
    what = "the NCCL communicator that " +
           (event.peer.known() ? RankWords({event.peer})
                               : "rank " + std::to_string(event.peer_group_rank.value) + " of the group") +
           " creates";
  return who +
         (wait.timeout_ms > 0 ? " waited " + DurationWords(wait.timeout_ms * 1'000'000) + " (the timeout) for "
                              : std::string(" timed out waiting for ")) +
         what +
         (wait.bar.empty() ? ""
                           : ", while a progress bar in the same output was still advancing ('" + wait.bar +
                                 "'): the rank that draws it may be the one that " + who + " waited for");
}

// Of several overdue operations of one process and group the lowest number is the one that does not finish: the others
// were issued behind it.
const Event& LowestOverdue(const Case& facts, const Event& timeout) {
  const Event* lowest = &timeout;
  if (timeout.speaker == kNobody) return timeout;
  for (const Event& event : facts.incident.events)
    if (event.kind == timeout.kind && event.speaker == timeout.speaker && event.rank == timeout.rank &&
        event.source.file == timeout.source.file && event.group_name == timeout.group_name && event.seq >= 0 &&
        event.seq < lowest->seq)
      lowest = &event;
  return *lowest;
}

}  // namespace

const Event* WarningBehind(const Case& facts, const Event& error) {
  // A code that is passed on right below a warning is what the warning speaks of, unless that tells what a peer did.
  constexpr uint32_t kRightBelow = 1;
  const auto speaks_of_it = [&](const Event& event) {
    if (event.kind != EventKind::nccl_warning || event.speaker != error.speaker) return false;
    if (event.source.file != error.source.file || event.source.line > error.source.line) return false;
    const auto& warning = event.As<Warning>();
    return warning.id == "other" ||
           (warning.role != NcclWarningRole::secondary && error.source.line - event.source.line <= kRightBelow);
  };
  const Event* last = nullptr;
  for (const Event& event : facts.incident.events)
    if (speaks_of_it(event) && (!last || event.source.line > last->source.line)) last = &event;
  return last;
}

// All clients of an MPS server fail together: none of them is special.
static std::string MpsWords(const Case& facts) {
  std::set<Rank> ranks;
  for (const Event& event : facts.incident.events)
    if (event.Means(Meaning::mps_failed) && event.rank.known()) ranks.insert(event.rank);
  if (ranks.empty()) return "a process lost its MPS server";
  const bool all = ranks.size() > 1 && ranks.size() >= facts.analyses.life.ranks.size();
  return (all ? "all " + std::to_string(ranks.size()) + " ranks" : RankWords({ranks.begin(), ranks.end()})) + " lost " +
         (ranks.size() == 1 ? "its" : "their") + " MPS server";
}

std::string EndSentence(const Case& facts, const Event& event) {
  if (event.Means(Meaning::mps_failed)) return MpsWords(facts);
  const std::string who = SubjectWords(SubjectOf(facts.incident, event));
  std::string operation = event.op == OpKind::unknown ? "" : std::string(Name(event.op));
  if (!operation.empty() && event.seq >= 0) operation += " #" + std::to_string(event.seq);
  switch (event.kind) {
    case EventKind::watchdog_timeout: {
      // All whose time was up, and where: nobody of them is special.
      if (const TimeoutCensus census = CountTimeouts(facts.incident); census && event.rank.known())
        return TimeoutWords(facts.incident, census);
      const Event& lowest = LowestOverdue(facts, event);
      if (&lowest != &event) return EndSentence(facts, lowest);
      const auto& timeout = event.As<WatchdogTimeout>();
      if (event.Means(Meaning::of_ascend) && operation.empty() && !event.peer.known() && !event.text.empty())
        return who + " waited until it timed out: " + MessageWords(event.text, 120);
      return who + " timed out" + (operation.empty() ? "" : " in " + operation) +
             (timeout.elapsed_ms > 0   ? " after " + DurationWords(timeout.elapsed_ms * 1'000'000)
              : timeout.timeout_ms > 0 ? " after " + DurationWords(timeout.timeout_ms * 1'000'000)
                                       : "") +
             (event.peer.known() ? ", waiting for " + RankWords({event.peer}) : "");
    }
    case EventKind::watchdog_status:
      return who + "'s watchdog reports that operation #" + std::to_string(event.seq) +
             (event.group_name.empty() ? "" : " of group " + event.group_name) +
             " did not finish: it timed out, or NCCL returned an error";
    case EventKind::dump_signal:
      return event.peer.known()
                 ? RankWords({event.peer}) + " timed out in a collective" + UnfinishedWords(facts, event.peer)
                 : "a collective timed out, and flight records were asked for";
    case EventKind::heartbeat_stuck: return StuckWords(facts, event, who);
    case EventKind::gil_blocked: return who + " could not acquire the GIL";
    case EventKind::xla_wait: return XlaWaitWords(event);
    case EventKind::desync_report: return OutOfStepWords(facts, event);
    case EventKind::monitored_barrier_failed:
      return event.peer.known() ? who + " reached a monitored barrier, and its exchange with " +
                                      RankWords({event.peer}) + " failed there: " + RankWords({event.peer}) +
                                      " ended, or did not answer in time because a rank did not reach the barrier"
                                : "not every rank reached a monitored barrier";
    case EventKind::hung_task: return "the kernel reports " + who + " as blocked";
    case EventKind::process_exited:
      return ExitWords(facts, event, EndedSubjectWords(event, SubjectOf(facts.incident, event)));
    case EventKind::abort_signal: {
      const std::string& sentence = event.As<Abort>().sentence;
      return sentence.empty() ? who + " aborted" : sentence;
    }
    case EventKind::process_killed: {
      const auto& end = event.As<ProcessEnd>();
      if (!end.sentence.empty()) return end.sentence;
      return who + " was ended by the launcher or scheduler" + (end.how.empty() ? "" : " (" + end.how + ")");
    }
    case EventKind::exception: {
      const auto& raised = event.As<Raised>();
      if (IsInterruptedMeeting(event)) return (event.rank.known() ? who : "a process") + InterruptedWords(event);
      if (const auto* reason = std::get_if<ErrorReason>(&raised.about); reason && IsConsequence(event))
        return reason->sentence;
      if (const std::string refusal = RefusalWords(event); !refusal.empty() && IsConsequence(event))
        return refusal + " (" + raised.type + ": " + MessageWords(event.text) + ")";
      if (event.Means(Meaning::gloo_timeout))
        return (event.rank.known() ? who : "a process") + " waited for a peer in gloo until it timed out (" +
               raised.type + ": " + MessageWords(event.text) + ")";
      // Who only tells of another's failure is a messenger, and its process id would be taken for the culprit's.
      return (IsConsequence(event) && !event.rank.known() ? "a process" : who) +
             (event.Means(Meaning::reported) ? " reports " : " raised ") + raised.type +
             (event.text.empty() ? CutPlaceWords(raised.place) + DuringWords(raised.during)
                                 : ": " + MessageWords(event.text));
    }
    case EventKind::connection_lost: return who + " lost the connection to a peer";
    case EventKind::store_lost:
      return event.As<LostPeer>().kind == PeerKind::rendezvous
                 ? "a running torchrun agent lost the rendezvous store: the agent that hosts it (usually on node 0) "
                   "has ended, or its host can no longer be reached"
                 : StoreLosers(facts, who) + " lost the connection to the store of rank 0";
    case EventKind::store_wait_timeout: return StoreWaitWords(event, who);
    case EventKind::nccl_error: {
      const auto& error = event.As<NcclError>();
      if (event.Means(Meaning::reported))
        return who + " reports " + error.result + ": '" + MessageWords(error.reason) + "'";
      const Event* warning = WarningBehind(facts, event);
      const bool amd = MakerOfGpus(facts.incident, event) == GpuMaker::amd;
      const std::string whom = warning || !error.reason.empty() ? who : RanksOfResult(facts, event, who);
      return std::string(LibraryName(facts.incident, event)) + " failed" + InWords(whom) + ResultWords(error, amd) +
             (warning                 ? " after its warning '" + MessageWords(warning->text) + "'"
              : !error.reason.empty() ? ": " + MessageWords(error.reason)
                                      : "");
    }
    case EventKind::nccl_warning: {
      const auto& told = event.As<Warning>();
      if (told.id == "cuda-failure" && !told.object.empty())
        return (MakerOfGpus(facts.incident, event) == GpuMaker::amd ? "a HIP call in RCCL failed"
                                                                    : "a CUDA call in NCCL failed") +
               InWords(who) + " with '" + told.object + "'" +
               (told.place.file.empty() ? "" : " (" + told.place.file + ":" + std::to_string(told.place.line) + ")");
      const NcclWarning* known = FindNcclWarning(told.id);
      return std::string(LibraryName(facts.incident, event)) + " failed" + InWords(who) + ": " +
             (known ? std::string(known->meaning) : MessageWords(event.text));
    }
    case EventKind::job_time_limit: return "the scheduler ended the job at its time limit";
    case EventKind::node_failed: return "a node failed";
    default: return who + " failed" + (event.text.empty() ? "" : ": " + MessageWords(event.text));
  }
}

}  // namespace tacet
