// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "analysis/timeouts/nameless_waits.h"
#include "rules/findings/few_joined.h"
#include "rules/findings/output_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/hang_capture.h"
#include "rules/words/interrupted_places.h"
#include "rules/words/milestone_words.h"
#include "rules/words/scheduler_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Ctrl-C, as it is seen in the program: Python's own exception.
bool IsInProgram(const Event& kill) { return kill.kind == EventKind::exception; }

SchedulerKill KillKindOf(const Event& kill) {
  return IsInProgram(kill) ? SchedulerKill::signal : kill.As<OutsideEnd>().why;
}

const std::string& KillerOf(const Event& kill) {
  static const std::string of_ctrl_c = "SIGINT";
  return IsInProgram(kill) ? of_ctrl_c : kill.As<OutsideEnd>().by;
}

const std::string& PodOf(const Event& kill) { return kill.As<OutsideEnd>().who; }

bool IsEndFromOutside(const Event& event) {
  return event.kind == EventKind::scheduler_kill || (IsInProgram(event) && IsInterrupt(event));
}

// A pod is evicted because a node runs out of something. No wait of its peers leads to that; it leads to their waits.
bool ExplainsWaits(const Event& kill) { return KillKindOf(kill) == SchedulerKill::evicted && !KillerOf(kill).empty(); }

bool IsWaitInVain(const Event& event) {
  return event.kind == EventKind::watchdog_timeout || event.kind == EventKind::heartbeat_stuck ||
         event.kind == EventKind::monitored_barrier_failed || event.kind == EventKind::store_wait_timeout ||
         event.kind == EventKind::rendezvous_incomplete;
}

// A step is cancelled, and torchrun gets SIGTERM, also because a task or another node failed. The other words say why.
bool GivesReason(const Event& kill) {
  if (KillKindOf(kill) == SchedulerKill::signal) return false;
  return KillKindOf(kill) != SchedulerKill::cancelled || KillerOf(kill) != "step";
}

// The reason before the mere fact, the fact before a signal.
int Rating(const Event& kill) {
  switch (KillKindOf(kill)) {
    case SchedulerKill::signal: return IsInProgram(kill) ? -1 : 0;
    case SchedulerKill::cancelled: return KillerOf(kill) == "step" ? 1 : 2;
    default: return ExplainsWaits(kill) ? 4 : 3;
  }
}

// Something of the job failed by itself. Ends by SIGTERM and SIGKILL are the scheduler's, exit code 1 is anybody's.
bool IsOwnFailure(const Event& event) {
  switch (event.kind) {
    case EventKind::exception: return !IsConsequence(event);
    case EventKind::cuda_error:
    case EventKind::segfault:
    case EventKind::oom_kill:
    case EventKind::mismatch_report:
    case EventKind::ddp_unused_parameters:
    case EventKind::watchdog_timeout:
    case EventKind::heartbeat_stuck:
    case EventKind::monitored_barrier_failed:
    case EventKind::store_wait_timeout:
    case EventKind::rendezvous_incomplete:
    case EventKind::shared_memory_full:
    case EventKind::disk_full:
    case EventKind::port_in_use:
    case EventKind::node_failed: return true;
    case EventKind::process_exited: {
      const int64_t code = event.As<ProcessEnd>().code;
      return code != 0 && IsFirstHandEnd(event) && code != -9;
    }
    default: return false;
  }
}

bool EndedByItself(const Event& event) {
  const int64_t code = event.As<ProcessEnd>().code;
  return event.kind == EventKind::process_exited && code != 0 && code != -15 && code != -9 && code != -2 && code != -1;
}

// Within the same second nobody reacts to an error by pressing Ctrl-C.
bool CameAfter(const Event& kill, const Event& failure) {
  if (!IsInterrupt(kill)) return CameBefore(kill, failure);
  if (kill.wall_ns != kNoTime && failure.wall_ns != kNoTime) return !CameBefore(failure, kill);
  const bool clocked = kill.clock_s >= 0 && failure.clock_s >= 0 && kill.source.file == failure.source.file;
  return clocked ? failure.clock_s >= kill.clock_s : CameBefore(kill, failure);
}

std::string KillWords(const Incident& incident, const Event& kill) {
  switch (KillKindOf(kill)) {
    case SchedulerKill::time_limit: return "the scheduler ended the job at its time limit";
    case SchedulerKill::preempted: return "the scheduler preempted the job";
    case SchedulerKill::requeued: return "the scheduler stopped the job to requeue it";
    case SchedulerKill::evicted:
      return "Kubernetes evicted " + (PodOf(kill).empty() ? "a pod of the job" : "pod " + PodOf(kill)) +
             (KillerOf(kill).empty() ? std::string() : ": its node was low on " + KillerOf(kill)) +
             (kill.As<OutsideEnd>().use.empty() ? ""
                                                : " (a container of the pod used " + kill.As<OutsideEnd>().use + ")");
    case SchedulerKill::reclaimed:
      return "the cloud provider reclaimed a machine of the job (spot, preemptible, or a node shutdown)";
    case SchedulerKill::cancelled:
      return KillerOf(kill) == "step"
                 ? "Slurm ended the step: it was canceled, or one of its tasks had failed"
                 : "the job was canceled (" + std::string(WordsOfScheduler(incident, kill).cancel) +
                       ", or an administrator)";
    case SchedulerKill::unkillable:
      return "Slurm could not end the step" + (KillerOf(kill).empty() ? std::string() : " on " + KillerOf(kill)) +
             ": its processes did not respond to SIGKILL, so they are blocked in the kernel";
    case SchedulerKill::limit: {
      const std::string& what = kill.As<OutsideEnd>().use;  // "threads", "memory"
      const bool counted = what.size() > 1 && what.ends_with('s');
      return KillerOf(kill) + " ended the job at its " + (counted ? what.substr(0, what.size() - 1) : what) + " limit";
    }
    case SchedulerKill::signal: break;
  }
  if (KillerOf(kill) == "SIGHUP")
    return "the launcher received SIGHUP: the terminal or ssh session that started the job was closed";
  if (IsInProgram(kill)) return "the job was interrupted (Ctrl-C)";
  if (KillerOf(kill) == "SIGINT") return "the launcher received SIGINT: the job was interrupted (Ctrl-C)";
  return "the launcher was ended from outside by " + (KillerOf(kill).empty() ? "a signal" : KillerOf(kill)) +
         "; no rank had failed before";
}

// Who tells it.
std::string_view ReportWords(const Event& kill) {
  if (IsInProgram(kill)) return "where Ctrl-C met the process";
  if (KillKindOf(kill) == SchedulerKill::signal) return "the launcher reports the signal";
  return KillKindOf(kill) == SchedulerKill::evicted ? "the report of Kubernetes" : "the scheduler's report";
}

std::vector<std::string> KillAdvice(const Incident& incident, const Event& kill) {
  const SchedulerWords& words = WordsOfScheduler(incident, kill);
  const std::string record = "Look at the scheduler's record (" + std::string(words.record) + ").";
  switch (KillKindOf(kill)) {
    case SchedulerKill::time_limit:
      return {"Ask for more time (" + std::string(words.time) + "), or save checkpoints and continue in a new job.",
              "If the job should have been done by then: check its step time, and whether it stalled."};
    case SchedulerKill::limit:
      return {
          "Ask for a higher limit, or start fewer threads and processes: data loader workers, OMP_NUM_THREADS, "
          "tokenizer threads.",
          record};
    case SchedulerKill::unkillable:
      return {
          "Look at the node's kernel log for tasks that are blocked (dmesg -T | grep 'blocked for more than') and "
          "for errors of the GPU, the file system or the network adapter: a driver or a storage call does not "
          "return.",
          "Slurm usually drains such a node: check sinfo -R, and reboot it before jobs run there again."};
    case SchedulerKill::evicted:
      return {KillerOf(kill) == "memory"
                  ? "Set the pod's memory request to what it uses: kubectl describe pod, kubectl top pod."
              : KillerOf(kill) == "ephemeral-storage" || KillerOf(kill) == "disk space"
                  ? "Write checkpoints and caches to a volume, or raise the ephemeral-storage request."
                  : "See why: kubectl describe pod POD, kubectl get events --sort-by=.lastTimestamp.",
              "Start again from the last checkpoint."};
    case SchedulerKill::signal:
      if (KillerOf(kill) == "SIGHUP")
        return {
            "Start the job in tmux or screen, with setsid, or through the scheduler. nohup alone does not protect it: "
            "torchrun handles SIGHUP itself.",
            "Start again from the last checkpoint."};
      if (IsInterrupt(kill))
        return {
            "If someone pressed Ctrl-C because the job hung: let it hang again, and take a stack of each rank before "
            "(py-spy dump --pid PID), or start it with tacet run, which does that.",
            "Otherwise start the job again; what the ranks report after the signal is a consequence of it.",
            "If no one pressed Ctrl-C: look at the scheduler's record of the job. Some send SIGINT before they end "
            "it."};
      break;
    case SchedulerKill::preempted:
    case SchedulerKill::requeued:
      return {record, "Preemption: use a queue that is not preempted, or let the scheduler start the job again (" +
                          std::string(words.requeue) + ") and continue from its last checkpoint."};
    case SchedulerKill::cancelled:
      if (KillerOf(kill) != "step") return {record, "Continue from the last checkpoint in a new job."};
      break;
    case SchedulerKill::reclaimed:
      return {"Start again on another machine.",
              "Use machines that are not reclaimed, or save a checkpoint when the notice arrives, 30 s to 2 min before "
              "the end."};
    default: break;
  }
  return {};
}

// What can be gone on from is worth more than who ended the job. True where the program was asked to stop and did so
// by itself, with something saved.
bool AddWhatWasSaved(const Case& facts, const Event& kill, const ToldEvents& told, Finding& finding) {
  const Event* own = nullptr;
  for (const Event* event : told.events)
    if (IsOwnWord(facts.incident, event->source)) own = event;
  const Milestone* saved = nullptr;
  if (own) saved = SavedBefore(facts.incident, own->source);
  if (!saved && !own) saved = SavedAfter(facts.incident, kill.source);
  const bool since = saved != nullptr;
  if (!saved) saved = SavedBefore(facts.incident, kill.source);
  if (!saved) return false;
  if (own && since)
    finding.headline = saved->words + " was saved, and the program exited on its own after it was asked to stop (" +
                       (KillerOf(*own).empty() ? "by a signal" : KillerOf(*own)) + ")";
  else
    finding.headline += "; " + saved->words + (since ? " was saved after that" : " had been saved");
  finding.evidence.push_back({saved->source, "", "what was saved last"});
  if (finding.fix.empty())
    finding.fix = {"The scheduler's record shows who ended it (" +
                   std::string(WordsOfScheduler(facts.incident, kill).record) + ")."};
  finding.fix.insert(finding.fix.begin(), "Continue from " + saved->words + ".");
  return own && since;
}

// Ranks whose last line says that they wait may be why the job was not done in time.
void AddWhoWaited(const Case& facts, const Event& kill, Finding& finding) {
  for (const LogOutline& outline : facts.incident.outlines)
    for (const LineOfRank& line : outline.last_of_ranks) {
      if (!line.waits || line.source.file != kill.source.file || line.source.line > kill.source.line) continue;
      const std::string who = RankWords({Rank{line.rank}});
      finding.headline += "; the last line of " + who + " says that it waits";
      finding.evidence.push_back({line.source, line.text, "the last line of " + who});
      finding.fix.insert(finding.fix.begin(),
                         line.lock_file.empty()
                             ? "See what " + who + " waited for: its last line says so."
                             : "See which process holds " + line.lock_file +
                                   " (fuser, lsof): if none does, it is left over from an earlier run "
                                   "and can be deleted.");
      return;
    }
}

// A job that is ended while most of its processes have not joined had not begun, and would not have.
void AddWhoJoined(const Case& facts, const Event& kill, Finding& finding) {
  for (const LogOutline& outline : facts.incident.outlines) {
    const auto few = FindFewJoined(outline, kill.source.line);
    if (!few || few->source.file != kill.source.file) continue;
    finding.headline += "; until then " + few->words + " had printed that " +
                        (few->came.size() == 1 ? "it joins" : "they join") + " the setup";
    finding.evidence.push_back({few->source, few->text, "the last rank that says that it joins"});
    finding.fix.insert(finding.fix.begin(), std::string(kLaunchAllStep));
    return;
  }
}

// A job that printed a step just before its limit had too little time, and did not stall.
void AddLastProgress(const Case& facts, const Event& kill, Finding& finding) {
  const Event* last = ProgressShortlyBefore(facts, kill);
  if (!last) return;
  const int64_t step = last->As<Progress>().step;
  const int64_t seconds = (kill.wall_ns - last->wall_ns) / 1'000'000'000;
  const std::string age = seconds < 1 ? "less than 1" : std::to_string(seconds);
  finding.headline += "; its last progress line" + (step >= 0 ? " (step " + std::to_string(step) + ")" : "") + " is " +
                      age + " s older, so it was most likely still running";
  finding.evidence.push_back(CiteEvent(*last, "the last progress line"));
  finding.fix.back() = "If the job should have been done by then: check its step time.";
}

std::string ProofOfKill(const Event& kill) {
  if (IsInProgram(kill)) return "where Ctrl-C met the process";
  switch (KillKindOf(kill)) {
    case SchedulerKill::signal: return "the launcher reports the signal";
    case SchedulerKill::evicted: return "Kubernetes' report";
    case SchedulerKill::reclaimed: return "the cloud provider's notice";
    default: return "the scheduler's report";
  }
}

}  // namespace

static RuleAnswer JudgeKilledByScheduler(const Case& facts) {
  RuleAnswer answer;
  const Outcome& outcome = facts.analyses.outcome;
  if (outcome.ended_in_order) return answer;
  const bool done = static_cast<bool>(facts.analyses.end.said);
  const ToldEvents told =
      CollectTold(facts, [&](const Event& e) { return IsEndFromOutside(e) && !(done && IsStepEnd(e)); });
  if (!told) return answer;
  const Event* kill = told.events.front();
  for (const Event* event : told.events)
    if (Rating(*event) > Rating(*kill)) kill = event;
  bool failed_before = false, failed = false;
  for (const Event& event : facts.incident.events) {
    if (!IsOwnFailure(event) || (ExplainsWaits(*kill) && IsWaitInVain(event))) continue;
    failed = true;
    failed_before |= !CameAfter(*kill, event);
  }
  // Without a reason, whoever exited by itself is one: a step is cancelled when a task exits with code 1.
  if (!GivesReason(*kill) && !IsInterrupt(*kill))
    failed |= std::any_of(facts.incident.events.begin(), facts.incident.events.end(), EndedByItself);
  // A job that hangs is ended by somebody in the end: that explains nothing.
  const bool hung = !ExplainsWaits(*kill) &&
                    (outcome.hangs() || facts.standstill.lasts || facts.analyses.end.kind == JobEnding::hung ||
                     (IsInterrupt(*kill) && FindingByOutput(facts)));
  Finding finding = ToldFinding(facts, "killed-by-scheduler", told, ReportWords(*kill));
  for (size_t i = 0; i < std::min(finding.evidence.size(), told.events.size()); ++i)
    finding.evidence[i].says = IsOwnWord(facts.incident, told.events[i]->source) ? "the program reports the signal"
                                                                                 : ProofOfKill(*told.events[i]);
  finding.ranks.clear();
  finding.operation.reset();
  finding.group = GroupIndex::none;
  finding.headline = KillWords(facts.incident, *kill);
  finding.fix = KillAdvice(facts.incident, *kill);
  if (KillKindOf(*kill) == SchedulerKill::time_limit) {
    AddLastProgress(facts, *kill, finding);
    AddWhoWaited(facts, *kill, finding);
  }
  if (IsInterrupt(*kill)) AddWhereInterrupted(facts.incident, *kill, finding);
  AddWhoJoined(facts, *kill, finding);
  const bool in_order = AddWhatWasSaved(facts, *kill, told, finding);
  std::stable_sort(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& a, const EvidenceItem&) {
    return a.source.file == kill->source.file && a.source.line == kill->source.line;
  });
  if (!GivesReason(*kill)) finding.confidence = Confidence::likely;
  if (ExplainsWaits(*kill)) finding.status = Status::crash;  // whoever waits is left over
  // What fails behind a Ctrl-C fails because of it.
  if (hung || failed_before || (failed && !GivesReason(*kill) && !IsInterrupt(*kill))) {
    finding.severity = Severity::note;
    if (hung)
      answer.open.push_back(
          {std::string(kWhyItStalled),
           "stacks of all ranks (py-spy dump) and flight records, taken before the scheduler ends it"});
  } else if (KillKindOf(*kill) == SchedulerKill::signal && KillerOf(*kill) != "SIGHUP" && !IsInterrupt(*kill) &&
             !in_order) {
    answer.open.push_back(
        {"Who sent the signal?", "the output of the other nodes, and the scheduler's record of the job (" +
                                     std::string(WordsOfScheduler(facts.incident, *kill).record) + ")"});
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kKilledBySchedulerRule;
const Rule kKilledBySchedulerRule = {
    "killed-by-scheduler",
    "The job was ended from outside",
    "the output of Slurm, PBS, LSF, Kubernetes or the cloud, or torchrun's own lines about signals",
    "The job did not fail: it was ended by a time limit, a preemption, an eviction, the reclaiming of a spot machine, "
    "a cancellation, or the closing of a terminal. Lost connections, SIGTERM and SIGKILL in the ranks' output are "
    "consequences.",
    "A job that hangs is also ended by its time limit: then the hang is the cause. Slurm also cancels a step when "
    "one of its tasks has failed, and torchrun sends SIGTERM to the workers that are left: a failure before that is "
    "the cause.",
    {"Look at the scheduler's record (Slurm: sacct -j JOB -o State,Reason,Elapsed,Timelimit; Kubernetes: kubectl "
     "describe pod; LSF: bhist -l; PBS: tracejob).",
     "Preemption: use a queue that is not preempted, or let the scheduler start the job again (Slurm --requeue, PBS "
     "-r y, LSF -r) and continue from its last checkpoint."},
    {"Save checkpoints at intervals that you can afford to lose, and when SIGTERM or SIGUSR1 arrives "
     "(--signal=USR1@120)."},
    JudgeKilledByScheduler};

}  // namespace tacet
