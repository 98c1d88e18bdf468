// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>

#include "analysis/process/stopped_heartbeat.h"
#include "model/events/nccl_warnings.h"
#include "rules/findings/collapse_finding.h"
#include "rules/findings/common_end.h"
#include "rules/findings/early_leaver_finding.h"
#include "rules/findings/loader_worker_finding.h"
#include "rules/findings/lost_node_finding.h"
#include "rules/findings/ras_dead_finding.h"
#include "rules/findings/standstill_finding.h"
#include "rules/first_end.h"
#include "rules/rule.h"
#include "rules/words/end_advice.h"
#include "rules/words/silence_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

const char* ProofOfEnd(const Event& end) {
  return end.Means(Meaning::timed_out)  ? "the rank that is reported as timed out"
         : end.Means(Meaning::in_prose) ? "said in the text around the log"
                                        : "how the process ended";
}
int64_t CodeOf(const Event& end) { return end.As<ProcessEnd>().code; }

// The launcher names the processes that it ended after the first failure, and this one is none of them.
bool LauncherEndedOthers(const Event& event, const Case& facts) {
  bool others = false;
  for (const Event& one : facts.incident.events) {
    if (one.kind != EventKind::process_killed) continue;
    if ((one.rank.known() && one.rank == event.rank) || (event.pid > 0 && one.pid == event.pid)) return false;
    others |= one.rank.known() || one.pid > 0;
  }
  return others;
}

// SIGABRT and SIGTERM are mostly answers to something else. Not so where no watchdog fired, nobody raised an error of
// its own, this end is the first of all, and what the others tell is that a peer of theirs has gone.
bool PeersLostItFirst(const Event& event, const Case& facts) {
  const Analyses& analyses = facts.analyses;
  const Outcome& outcome = analyses.outcome;
  const int64_t code = CodeOf(event);
  if ((code != -6 && code != -15) || outcome.first_timeout) return false;
  const Event* failure = outcome.first_failure;  // ends of processes count as failures
  if (failure && failure->rank != event.rank && failure->kind != EventKind::process_exited) return false;
  if (outcome.first_end && IsBefore(*outcome.first_end, event)) return false;
  const RankLife* own = analyses.life.Of(event.rank);
  if (own && (own->consequence || own->lost_peer)) return false;  // it lost a peer itself: that one went before
  size_t lost = 0, cleaned_up = 0, others = 0;
  for (const auto& [rank, life] : analyses.life.ranks) {
    if (rank == event.rank) continue;
    ++others;
    cleaned_up += (!life.exited || CodeOf(*life.exited) == -15) && !life.consequence && !life.lost_peer && life.any();
    // Others that ended by the same signal were cleaned up together with it, or it with them; unless the launcher says
    // whom it ended, and this rank is not among them.
    const bool same = life.exited && CodeOf(*life.exited) == code;
    if (life.segfault || (life.exited && IsFirstHandEnd(*life.exited)) || (same && !LauncherEndedOthers(event, facts)))
      return false;
    lost += life.gloo_loss || life.lost_peer;
  }
  // It alone aborted, and the launcher ended all others, of whom nobody complains.
  const bool alone = code == -6 && others > 0 && cleaned_up == others;
  return lost > 0 || (alone && std::any_of(facts.incident.events.begin(), facts.incident.events.end(),
                                           [](const Event& one) { return one.kind == EventKind::process_killed; }));
}

// Launchers kill whoever is left once somebody failed: torchrun sends SIGTERM, and SIGKILL half a minute later; Slurm
// kills at once. An error in user code beside a kill is the older one: a peer's death gives other errors.
bool IsCleanUp(const Event& event, const Case& facts) {
  const Analyses& analyses = facts.analyses;
  if (event.kind == EventKind::segfault) return false;
  if (!IsFirstHandEnd(event)) return !PeersLostItFirst(event, facts);
  const Outcome& outcome = analyses.outcome;
  for (const Event* first : {outcome.first_failure, outcome.first_timeout, outcome.first_end})
    if (first && (first->rank != event.rank || first == outcome.first_timeout) && CameBefore(*first, event))
      return true;
  return CodeOf(event) == -9 &&
         std::any_of(analyses.life.ranks.begin(), analyses.life.ranks.end(), [&](const auto& one) {
           const RankLife& life = one.second;
           const Event* own = life.exception ? life.exception : life.unused_parameters;
           return own && life.rank != event.rank && !IsBefore(event, *own);
         });
}

// Told by the launcher, the shell or the kernel.
void JudgeToldEnds(const Case& facts, RuleAnswer& answer) {
  const Event* first = nullptr;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (life.oom_killed || life.exception || life.cuda_oom || life.gpu_error || life.unused_parameters)
      continue;  // better causes
    for (const Event* event : {life.segfault, life.exited}) {
      if (!event || IsCleanUp(*event, facts) || FollowsLibraryError(facts.incident, *event)) continue;
      if (!first || IsBefore(*event, *first)) first = event;
    }
  }
  if (!first) return;
  Finding finding;
  finding.cause = "rank-dead";
  finding.status = facts.analyses.outcome.hangs() && !EndedBeforeTimeouts(facts, *first) ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  const bool presumed = first->Means(Meaning::timed_out);
  finding.confidence = presumed ? Confidence::likely : Confidence::certain;
  finding.ranks = {first->rank};
  finding.affected_ranks = facts.standstill.waiters;
  std::erase(finding.affected_ranks, first->rank);
  finding.headline =
      RankWords(finding.ranks) + (presumed ? " is reported as timed out: it is dead, preempted or blocked"
                                  : first->kind == EventKind::process_exited && CodeOf(*first) < 0
                                      ? " was killed by " + HowItEnded(*first)
                                      : "'s process is gone: " + HowItEnded(*first));
  finding.fix = EndAdvice(*first);
  finding.evidence.push_back(CiteEvent(*first, ProofOfEnd(*first)));
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
    finding.evidence.push_back(CiteCall(facts.incident, *facts.standstill.stream, *facts.standstill.operation,
                                        "a peer waits in this operation"));
  }
  answer.findings.push_back(std::move(finding));
}

// ", and ranks 1 and 2 then report closed connections": who reports what.
std::string ReportedAfterwards(const Case& facts, const std::vector<Rank>& ranks) {
  std::vector<Rank> closed, failed;
  for (const Rank rank : ranks) {
    const RankLife* life = facts.analyses.life.Of(rank);
    if (life && life->lost_peer)
      closed.push_back(rank);
    else if (life && life->shared_gpu_error)
      failed.push_back(rank);
  }
  const auto report = [](const std::vector<Rank>& who, const char* what) {
    return RankWords(who) + (who.size() == 1 ? " reports " : " report ") + what;
  };
  std::string words;
  if (!closed.empty()) words = ", and then " + report(closed, "closed connections");
  if (!failed.empty()) words += (words.empty() ? ", and then " : " and ") + report(failed, "CUDA errors");
  return words;
}

// Nobody tells, and no record shows a wait: the job broke down at once.
void JudgeVanished(const Case& facts, RuleAnswer& answer) {
  Finding finding;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (life.vanished) finding.ranks.push_back(rank);
    if (!life.vanished) finding.affected_ranks.push_back(rank);
    if (const Event* echo = life.lost_peer ? life.lost_peer : life.shared_gpu_error;
        echo && finding.evidence.size() < 3)
      finding.evidence.push_back(
          CiteEvent(*echo, life.lost_peer ? RankWords({rank}) + " saw a peer's connection close"
                                          : RankWords({rank}) + "'s GPU used memory of a process that had ended"));
  }
  if (finding.ranks.empty()) return;
  const std::string who = RankWords(finding.ranks);
  for (const Rank rank : finding.ranks)
    if (const Event* last = facts.analyses.life.Of(rank)->last_event)
      finding.evidence.push_back(CiteEvent(*last, "the last thing " + RankWords({rank}) + " wrote"));
  finding.cause = "rank-dead";
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.headline = GoneWords(finding.ranks) +
                     " without an error message: " + (finding.ranks.size() == 1 ? "its" : "their") + " output stops" +
                     ReportedAfterwards(facts, finding.affected_ranks);
  const std::string hosts = finding.ranks.size() == 1 ? "its host" : "their hosts";
  answer.open.push_back(
      {"What ended " + who + "?",
       "the kernel log of " + hosts + " (dmesg -T: out-of-memory kills, segfaults, Xid) and the launcher's output"});
  answer.findings.push_back(std::move(finding));
}

// The launcher, the kernel or a peer tell of an end, and nothing tells whose: a process by its pid, or a peer by its
// closed connection. A closed connection counts where one process tells of it. Where several ranks have a say and none
// of them is the one that went, connections close after the end that matters: a watchdog's, a launcher's, a kill's.
const Event* FirstEndWithoutRank(const Case& facts) {
  const Event *ended = nullptr, *lost = nullptr;
  const bool kernel_alone = facts.analyses.life.ranks.empty();
  const auto& processes = facts.incident.processes;
  const bool one_tells =
      std::count_if(processes.begin(), processes.end(), [](const Process& one) { return !one.files.empty(); }) <= 1;
  for (const Event& event : facts.incident.events) {
    const bool closed = event.kind == EventKind::connection_lost;
    if (closed ? !one_tells : event.rank.known()) continue;
    if (event.kind == EventKind::process_exited && event.Means(Meaning::reported)) continue;  // it did not start
    const bool exited = event.kind == EventKind::process_exited && CodeOf(event) != 0 && IsFirstHandEnd(event) &&
                        (CodeOf(event) < 0 || CodeOf(event) > 2);
    const bool faulted = event.kind == EventKind::segfault && kernel_alone;
    if ((exited || faulted) && (!ended || CameBefore(event, *ended))) ended = &event;
    if (closed && (!lost || CameBefore(event, *lost))) lost = &event;
  }
  return ended ? ended : lost;
}

// A call of NCCL's own failed before the connection closed: whoever gives up closes its connections, also those between
// its own threads.
bool FailedBefore(const Case& facts, const Event& lost) {
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::cause &&
           CameBefore(event, lost);
  });
}

void JudgeUnknownEnd(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.end.kind != JobEnding::crashed || facts.analyses.outcome.first_timeout ||
      facts.analyses.outcome.first_failure || facts.analyses.outcome.ended_in_order ||
      facts.analyses.outcome.unfinished_calls)
    return;
  const Event* event = FirstEndWithoutRank(facts);
  if (!event || (event->kind == EventKind::connection_lost && FailedBefore(facts, *event))) return;
  Finding finding;
  finding.cause = "rank-dead";
  finding.status = Status::crash;
  finding.severity = Severity::critical;
  const bool lost = event->kind == EventKind::connection_lost;
  finding.confidence = lost ? Confidence::possible : Confidence::likely;
  const Subject subject = SubjectOf(facts.incident, *event);
  if (lost) {
    const std::string& address = event->As<LostPeer>().address;
    const bool daemon = event->As<LostPeer>().kind == PeerKind::daemon;
    const bool coordinator = event->As<LostPeer>().kind == PeerKind::coordinator;
    const std::string named = coordinator ? "process 0" : event->peer.known() ? RankWords({event->peer}) : "";
    finding.headline =
        daemon ? "the launcher lost the connection to its daemon on " + (address.empty() ? "another node" : address) +
                     ": the daemon or its node is gone, or the network failed"
        : coordinator
            ? SubjectWords(subject) +
                  " lost JAX's coordination service, which process 0 runs: process 0 is gone, or the network failed"
            : SubjectWords(subject) + " lost the connection to " + (named.empty() ? "a peer" : named) +
                  (address.empty() ? "" : " at " + address) + ": that process is gone, or the network failed";
    if (event->rank.known()) finding.affected_ranks.push_back(event->rank);
    const std::string peer = !named.empty() ? named : address.empty() ? "the peer" : "the process at " + address;
    finding.fix = {"Look at what " + peer + " printed at that time, and how it ended.",
                   "The launcher's output shows how each process ended; dmesg -T on the host of " + peer +
                       " shows OOM kills, segfaults and Xid errors.",
                   "If no process ended: look at the network between the two (ibstat, ip -s link, the switch)."};
    if (daemon)
      finding.fix = {"Look at " + (address.empty() ? "the other node" : address) +
                         " at that time: is the node up, what do dmesg -T and the log of the "
                         "scheduler's daemon there (slurmd) say?",
                     "The daemons talk over TCP: look at the network that the launcher uses between the nodes (mpirun "
                     "--mca oob_tcp_if_include NET chooses it)."};
  } else {
    finding.headline =
        EndedSubjectWords(*event, subject) +
        (event->Means(Meaning::timed_out) ? " is reported as timed out: it is dead, preempted or blocked"
         : CodeOf(*event) == 255 ? (event->As<ProcessEnd>().of_pod ? " failed: " : " is gone: ") + HowItEnded(*event)
                                 : (CodeOf(*event) < 0 ? " was ended by " : " ended with ") + HowItEnded(*event)) +
        "; the log does not say which rank it was";
    finding.subjects = {subject};
    finding.fix = EndAdvice(*event);
  }
  finding.evidence.push_back(CiteEvent(*event, !lost ? ProofOfEnd(*event)
                                               : event->As<LostPeer>().kind == PeerKind::coordinator
                                                   ? "the coordination service no longer answers"
                                                   : "a peer's connection closed"));
  if (const Event* daemon = lost ? nullptr : LostDaemonAfter(facts.incident, *event)) TellLostDaemon(*daemon, finding);
  // Others of whom the same is told are no less concerned.
  for (const Event& other : facts.incident.events)
    if (!lost && &other != event && other.kind == event->kind && !other.rank.known() && finding.evidence.size() < 3 &&
        CodeOf(other) == CodeOf(*event) && other.As<ProcessEnd>().how == event->As<ProcessEnd>().how &&
        SubjectOf(facts.incident, other) != subject)
      finding.evidence.push_back(
          CiteEvent(other, EndedSubjectWords(other, SubjectOf(facts.incident, other)) + " ended in the same way"));
  answer.open.push_back(QuestionAboutEnd(*event));
  answer.findings.push_back(std::move(finding));
}

bool AllFinished(const Case& facts, const std::vector<Rank>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
    const RankLife* life = facts.analyses.life.Of(rank);
    return life && life->finished;
  });
}

}  // namespace

static RuleAnswer JudgeDead(const Case& facts) {
  RuleAnswer answer;
  JudgeLostNodes(facts, answer);
  if (!answer.findings.empty()) return answer;
  JudgeCommonEnd(facts, answer);
  if (answer.findings.empty()) JudgeToldEnds(facts, answer);
  if (!answer.findings.empty()) return answer;
  JudgeKilledLoaderWorker(facts, answer);
  if (!answer.findings.empty()) return answer;
  auto finding = StandstillFinding(facts, StandstillKind::dead, "rank-dead");
  if (!finding) {
    if (auto left = FindingOfEarlyLeavers(facts)) return answer.findings.push_back(std::move(*left)), answer;
    JudgeVanished(facts, answer);
    if (answer.findings.empty()) JudgeUnknownEnd(facts, answer);
    if (answer.findings.empty()) JudgeCollapse(facts, answer);
    if (answer.findings.empty()) JudgeRasDead(facts, answer);
    return answer;
  }
  for (const Rank rank : finding->ranks) {
    const RankLife* life = facts.analyses.life.Of(rank);
    if (life && (life->oom_killed || life->exception || life->cuda_oom || life->unused_parameters))
      return answer;  // told by a better cause
  }
  finding->confidence = Confidence::likely;
  const std::string who = RankWords(finding->ranks);
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != StandstillKind::dead || !still.closing) continue;
    finding->evidence.insert(
        finding->evidence.begin(),
        CiteEvent(*still.closing, RankWords({still.closing->rank}) + " saw a peer's connection close"));
    const RankLife* life = facts.analyses.life.Of(still.rank);
    if (life && life->last_event)
      finding->evidence.push_back(CiteEvent(*life->last_event, "the last thing " + who + " wrote"));
  }
  if (const Silence* silence = FirstSilence(facts, StandstillKind::dead)) {
    CiteSilences(facts, StandstillKind::dead, finding->evidence);
    // Of several that went at the same moment one may have pulled the others along.
    const bool several = finding->ranks.size() > 1;
    if (silence->dead() && !several) finding->confidence = Confidence::certain;
    finding->headline =
        (several ? "the processes of " + who + " ended at the same time: " : who + "'s process is gone: ") +
        SilenceWords(facts, *silence, several);
    const std::string waits = WaitWords(facts, finding->ranks),
                      peers = several ? "their peers wait for them" : "its peers wait for it";
    finding->headline += "; " + (waits.empty() ? peers : waits);
  } else if (AllFinished(facts, finding->ranks)) {
    const bool one = finding->ranks.size() == 1;
    finding->headline = who + " exited cleanly after fewer operations than " + (one ? "its" : "their") + " peers; " +
                        WaitWords(facts, finding->ranks);
    finding->fix = {"Compare the numbers of steps: did the data of " + who + " end earlier (uneven shards, drop_last)?",
                    "Look for calls that " + who + " skipped: model.no_sync(), `continue`, a branch taken on one rank.",
                    "For uneven data use torch's Join context manager, or agree on the number of steps beforehand."};
    answer.findings.push_back(std::move(*finding));
    return answer;
  } else if (AllLeft(facts, finding->ranks)) {
    const bool one = finding->ranks.size() == 1;
    finding->headline = who + (one ? "'s program" : "' programs") + " ended without an error while " +
                        (one ? "its" : "their") + " peers continued; " + WaitWords(facts, finding->ranks);
    finding->fix = {
        "Look at the last lines of " + who +
            ": why does it end before the others (early stopping, fewer batches, sys.exit, an error that "
            "is caught)?",
        "Let all ranks decide together when to stop: broadcast the decision of one rank, or all_reduce it."};
    answer.findings.push_back(std::move(*finding));
    return answer;
  } else {
    const bool dumped = facts.analyses.life.records > 0;
    if (dumped)
      finding->evidence.push_back(CiteAbsence(who + " left no flight record, although " +
                                              std::to_string(facts.analyses.life.records) +
                                              (facts.analyses.life.records == 1 ? " peer did" : " peers did")));
    const bool one = finding->ranks.size() == 1;
    finding->headline = GoneWords(finding->ranks) + ": " + (one ? "its" : "their") + " connections closed" +
                        (dumped ? (one ? " and it left no dump; " : " and they left no dump; ") : "; ") +
                        WaitWords(facts, finding->ranks);
  }
  // Its own traceback tells what ended it, and that others were the reason.
  const bool raised = std::all_of(finding->ranks.begin(), finding->ranks.end(), [&](Rank rank) {
    const RankLife* life = facts.analyses.life.Of(rank);
    return life && life->consequence;
  });
  if (raised && !finding->ranks.empty()) {
    const Event& last = *facts.analyses.life.Of(finding->ranks.front())->consequence;
    finding->headline = who + (finding->ranks.size() == 1 ? "'s process ended with " : " ended with ") +
                        last.As<Raised>().type.substr(last.As<Raised>().type.rfind('.') + 1) + "; " +
                        WaitWords(facts, finding->ranks);
    finding->evidence.insert(finding->evidence.begin(), CiteEvent(last, "the error that ended " + who));
    answer.findings.push_back(std::move(*finding));
    return answer;
  }
  const std::string hosts = finding->ranks.size() == 1 ? "its host" : "their hosts";
  answer.open.push_back(
      {"What ended " + who + "?",
       "the kernel log of " + hosts + " (dmesg -T: out-of-memory kills, segfaults, Xid) and the launcher's output"});
  answer.findings.push_back(std::move(*finding));
  return answer;
}

extern const Rule kRankDeadRule;
const Rule kRankDeadRule = {
    "rank-dead",
    "A process of the job is gone",
    "launcher output, NCCL logs of the peers (closed connections), flight records of the peers, kernel log, black "
    "boxes",
    "The process ended: it was killed by a signal, crashed or exited on its own. It leaves no flight "
    "record; peers that talk to it over sockets log a closed connection; peers on the same host notice nothing and "
    "wait.",
    "A frozen process keeps its connections open. An out-of-memory kill also ends the process, but is a separate cause "
    "(rank-out-of-memory) if the kernel log names the pid. SIGABRT and SIGTERM at the end of a job are usually "
    "consequences: the watchdog's and the launcher's cleanup.",
    {"Look for the reason on its host: dmesg -T | grep -iE 'killed process|segfault|xid', the scheduler's log, the "
     "core dump.",
     "SIGKILL without an entry in the kernel log: a person or the scheduler killed it (time limit, preemption).",
     "Segmentation fault: run with PYTHONFAULTHANDLER=1 and keep core dumps.",
     "SIGBUS (7): most often /dev/shm is full (df -h /dev/shm); otherwise a file was truncated while it was mapped."},
    {"Collect kernel logs together with the job's logs.", "Set PYTHONFAULTHANDLER=1 in the job's environment."},
    JudgeDead};

}  // namespace tacet
