// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/open_verdict.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/process/job_end.h"
#include "analysis/timeouts/timeout_census.h"
#include "model/events/event_witness.h"
#include "model/events/nccl_warnings.h"
#include "rules/findings/ras_lead.h"
#include "rules/unexplained/benchmark_verdict.h"
#include "rules/unexplained/finished_job.h"
#include "rules/unexplained/open_crash.h"
#include "rules/unexplained/open_finding.h"
#include "rules/unexplained/told_hang.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/unexplained/unread_error.h"
#include "rules/words/crash_steps.h"
#include "rules/words/end_advice.h"
#include "rules/words/end_sentence.h"
#include "rules/words/hang_capture.h"
#include "rules/words/library_words.h"
#include "rules/words/listing_words.h"
#include "rules/words/milestone_words.h"
#include "rules/words/outline_words.h"
#include "rules/words/stack_words.h"
#include "rules/words/timeout_words.h"
#include "rules/words/training_words.h"
#include "rules/words/words.h"
#include "rules/words/xla_words.h"

namespace tacet {
namespace {

// "the other 31 ranks", "all 4 ranks"; without a number where the size of the job is only what was seen of it.
std::string OtherRanks(const Case& facts, int have, int world) {
  if (facts.incident.world_told && have == 0 && world <= 2) return world == 2 ? "both ranks" : "the rank";
  const std::string number = facts.incident.world_told && world - have > 1 ? std::to_string(world - have) + " " : "";
  return (have == 0 ? "all " : "the other ") + number +
         (facts.incident.world_told && world - have == 1 ? "rank" : "ranks");
}

// What must be on record before a job may be called healthy: every rank's calls with their reductions, and every rank's
// output. Anything less leaves room for a fault that leaves no trace in what is here.
bool SawEnough(const Case& facts, bool progresses, std::vector<CannotTell>& open) {
  const SignsOfLife& life = facts.analyses.life;
  const auto world = static_cast<int>(life.ranks.size());
  bool enough = world > 0;
  if (life.outputs < world) enough = false;
  if (life.outputs < world && (life.outputs > 0 || facts.incident.threads.empty())) {
    open.push_back({"Did every rank exit without an error?",
                    "the output (stdout and stderr) of " + OtherRanks(facts, life.outputs, world)});
  }
  // Stacks are taken of a job that is suspected to hang: whose is missing could not be asked, or did not answer.
  if (!facts.analyses.outcome.ended_in_order && life.stacks > 0 && life.stacks < world) {
    enough = false;
    open.push_back(
        {"Do all ranks make progress?",
         "the stacks (py-spy dump) of " + OtherRanks(facts, life.stacks, world) + ", or anything recorded later"});
  }
  int compared = 0;
  for (const CallStream& stream : facts.incident.streams)
    compared += (stream.source == CallSource::nccl_log || stream.source == CallSource::black_box) &&
                !stream.calls.empty() && stream.from_start && !stream.cut;
  const bool traced = facts.incident.timelines.size() >= static_cast<size_t>(world);
  // Of a trainer's own output nobody expects calls.
  const bool of_nccl = life.nccl_logs > 0 || life.records > 0 || life.stubs > 0;
  if (compared < world && !traced) enough = false;
  if (compared < world && !traced && of_nccl && !progresses) {
    open.push_back({"Did all ranks issue the same collectives with the same reductions?",
                    life.nccl_logs >= world
                        ? "COLL in NCCL_DEBUG_SUBSYS: the NCCL logs that are here do not list all calls"
                        : "NCCL logs of all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,COLL" +
                              std::string(life.records > 0 ? " (flight records do not hold the reduction)" : "")});
  }
  return enough;
}

// Logs of a job that ended hold the same calls on all ranks; others were cut.
bool SomebodyIsBehind(const Case& facts) {
  return std::any_of(facts.analyses.sources.begin(), facts.analyses.sources.end(),
                     [](const SourceAnalysis& source) { return !source.waits.operations.empty(); });
}

// A timeline of a pipeline tells of its pace, and of nothing else.
std::string PipelineWords(const Case& facts) {
  if (facts.incident.pipeline_traces.empty()) return "";
  if (facts.analyses.replay_slowdown <= 0)
    return "The pipeline's timeline cannot be replayed: `tacet profile` says why";
  char text[160];
  std::snprintf(text, sizeof text,
                "No worker or stage of the pipeline makes the others wait: steps take %.2f times the ideal",
                facts.analyses.replay_slowdown);
  return text;
}

// NCCL says that something of this process, its host or its arguments is wrong, and no cause covers it.
const Event* FirstUnexplainedWarning(const Case& facts) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id != "other" &&
        event.As<Warning>().role == NcclWarningRole::cause)
      return &event;
  return nullptr;
}

// "The kernel killed java (process 9120) for lack of memory in its cgroup": all that is here is what the kernel did to
// services of a host. Empty where anything else speaks.
std::string KilledServiceWords(const Case& facts) {
  const Event* kill = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::oom_kill || !event.Means(Meaning::of_service)) return "";
    if (!kill) kill = &event;
  }
  if (!kill || kill->As<OomKill>().process.empty()) return "";
  const auto& told = kill->As<OomKill>();
  return "the kernel killed " + told.process + (kill->pid > 0 ? " (process " + std::to_string(kill->pid) + ")" : "") +
         " for lack of " +
         (told.limit == MemoryLimit::cgroup ? "memory in its cgroup"
          : told.limit == MemoryLimit::host ? "host memory"
                                            : "memory") +
         "; nothing shows that it belonged to a job";
}

// "The kernel reports lvm (process 4711) as blocked for more than 120 s": all that is here is of services of a host.
std::string BlockedServiceWords(const Case& facts) {
  const Event* task = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::hung_task || !event.Means(Meaning::of_service)) return "";
    if (!task) task = &event;
  }
  if (!task || task->As<HungTask>().process.empty()) return "";
  const auto& told = task->As<HungTask>();
  return "the kernel reports " + told.process + (task->pid > 0 ? " (process " + std::to_string(task->pid) + ")" : "") +
         " as blocked" + (told.seconds > 0 ? " for more than " + std::to_string(told.seconds) + " s" : "") +
         (told.module.empty() ? "" : " in the module " + told.module) +
         ": a disk, a file system or a driver of the host did not answer; nothing shows that a job waited for it";
}

void SettleHang(const Case& facts, const JobEnd& end, Diagnosis& diagnosis) {
  diagnosis.status = Status::hang;
  diagnosis.confidence = Confidence::likely;
  if (const auto& connecting = facts.standstill.connecting; !connecting.empty()) {
    const std::string who = RankWords(connecting), one = connecting.size() == 1 ? "is" : "are";
    diagnosis.headline =
        who + " " + one +
        " inside NCCL with an operation that runs for the first time: connections are being set up, or cannot be";
    diagnosis.open.push_back({"Why " + one + " " + who + " still connecting?",
                              "NCCL logs of these ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"});
    return;
  }
  // A watchdog that fired has ended its process.
  const bool over =
      IsGone(facts) ||
      (end.told && (end.told->kind == EventKind::watchdog_timeout || end.told->kind == EventKind::exception));
  diagnosis.headline = over ? "the job hung" : "the job hangs";
  if (end.quiet_ns > 0)
    diagnosis.headline = "the job made no progress for " + DurationWords(end.quiet_ns) + " before it was ended";
  else if (end.looked_at)
    diagnosis.headline += ": the stacks of all ranks were taken, and then the job was ended from outside";
  else if (end.told)
    diagnosis.headline += ": " + EndSentence(facts, *end.told);
  if (const std::string stood = end.told ? StoodWords(facts.incident, end.told->source) : ""; !stood.empty())
    diagnosis.headline = stood + "; then " + diagnosis.headline;
  if (end.told && end.told->kind == EventKind::xla_wait) return SettleXlaWait(*end.told, diagnosis);
  if (end.told && !end.told->As<WatchdogTimeout>().bar.empty() && !CountTimeouts(facts.incident).bar.empty())
    return;  // the headline says who works
  const bool awaited = end.told && end.quiet_ns <= 0 && end.told->kind == EventKind::watchdog_timeout &&
                       end.told->peer.known();  // the headline names it
  if (end.told && end.quiet_ns <= 0 && HaveDiverged(CountTimeouts(facts.incident))) {
    diagnosis.open.push_back({"Where do the collectives of the ranks first differ?", HangCapture(facts)});
    return;
  }
  diagnosis.headline += awaited ? "; look there first" : "; the evidence does not show which rank is responsible";
  if (end.told && end.told->Means(Meaning::of_ascend)) {
    diagnosis.open.push_back(
        {"Which rank makes the others wait?",
         "the output of all ranks, their plogs (ascend/log/debug/plog) and stacks (py-spy dump --pid "
         "PID): look for a rank that reports no timeout, or for the one that reports first"});
    return;
  }
  const bool watchdog =
      end.told && end.told->kind == EventKind::heartbeat_stuck && !end.told->As<HeartbeatStuck>().waits_for_workers;
  diagnosis.open.push_back(
      {watchdog ? "What blocks the watchdog threads?" : "Which rank makes the others wait?", HangCapture(facts)});
}

// NCCL lost a peer (ncclRemoteError), and the launcher names another process that had ended by then: that one.
const Event* EndOfLostPeer(const Incident& incident, const Event* told) {
  constexpr int64_t kRemoteError = 6;
  if (!told || told->kind != EventKind::nccl_error || told->As<NcclError>().code != kRemoteError) return told;
  const auto found = std::find_if(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::process_exited && event.rank.known() && event.rank != told->rank &&
           event.As<ProcessEnd>().code > 0 && IsNamedFirst(event);
  });
  return found == incident.events.end() ? told : &*found;
}

const Event* DecidingEvent(const Case& facts, const JobEnd& end) {
  if (end.kind == JobEnding::hung) return end.told;
  if (const Event* warning = FirstUnexplainedWarning(facts)) return warning;
  return EndOfLostPeer(facts.incident, end.told ? end.told : facts.analyses.outcome.first_failure);
}

// Something of a job was read, even if no line tells a rank.
bool HasWordsOfAJob(const Incident& incident) {
  const auto is_read = [](const Event& event) {
    return event.kind != EventKind::unread_error && WitnessOf(event) != Witness::reporter;
  };
  return std::any_of(incident.events.begin(), incident.events.end(), is_read) || !incident.streams.empty() ||
         !incident.threads.empty() || !incident.outlines.empty() ||
         std::any_of(incident.files.begin(), incident.files.end(),
                     [](const InputFile& file) { return file.bytes.understood > 0; });
}

bool HoldsKernelLogsOnly(const Incident& incident) {
  const auto& files = incident.files;
  return !files.empty() &&
         std::all_of(files.begin(), files.end(), [](const InputFile& file) { return file.format == "kernel_log"; });
}

// What a kernel log tells by what is not in it.
void SettleQuietKernel(Diagnosis& diagnosis) {
  diagnosis.headline =
      "the kernel log reports no fault of a GPU, a PCIe link, an adapter or a disk, and no killed process";
  diagnosis.open.push_back({"Is it the log of the right host and time?",
                            "the kernel log from before the failure until after it (dmesg -T, journalctl -k), of the "
                            "host on which the job failed"});
}

}  // namespace

bool SawAllToTheEnd(const Case& facts) {
  const auto& streams = facts.incident.streams;
  // One process prints the table of a benchmark, for all of its ranks.
  const auto& runs = facts.incident.benchmark_runs;
  if (!runs.empty() && std::all_of(runs.begin(), runs.end(), [](const BenchmarkRun& run) {
        return run.failure.empty() && (run.concluded || run.reached_largest);
      }))
    return true;
  return std::all_of(facts.analyses.life.ranks.begin(), facts.analyses.life.ranks.end(),
                     [](const auto& one) { return one.second.any(); }) &&
         std::none_of(streams.begin(), streams.end(), [](const CallStream& stream) { return stream.cut; });
}

bool IsAllEmpty(const Incident& incident) {
  return !incident.files.empty() &&
         std::all_of(incident.files.begin(), incident.files.end(), [](const InputFile& file) {
           return file.bytes.understood + file.bytes.ignored + file.bytes.not_understood == 0;
         });
}

// Nothing bad is told, and the text shows progress up to its end.
static bool ShowsProgressToItsEnd(const Case& facts, const Diagnosis& diagnosis) {
  constexpr uint32_t kLinesBehind = 12;  // of other output
  const Incident& incident = facts.incident;
  const JobEnding end = facts.analyses.end.kind;
  if ((end != JobEnding::open && end != JobEnding::finished) || IsTroubleTold(incident) || !HasNotesOnly(diagnosis))
    return false;
  if (UnreadErrorBefore(incident, nullptr)) return false;
  if (facts.analyses.outcome.ended_in_order) return true;
  std::map<FileId, uint32_t> last, furthest;  // the last line that is known, and the last sign of progress
  const auto see = [](std::map<FileId, uint32_t>& of, const SourceRef& source) {
    of[source.file] = std::max(of[source.file], source.line);
  };
  for (const Event& event : incident.events) {
    see(last, event.source);
    if (event.kind == EventKind::progress) see(furthest, event.source);
    if (IsSignOfCrash(event) || IsSignOfHang(event)) return false;
  }
  for (const LogOutline& outline : incident.outlines) {
    if (outline.last_source.line > 0) see(last, outline.last_source);
    for (const StepShare& step : outline.steps) see(furthest, step.source);
    for (const FigureSeries& series : outline.series) see(furthest, series.last);
    if (outline.trained) see(furthest, outline.trained.source);
    if (!outline.says_done.empty()) see(furthest, outline.last_source);
  }
  return !furthest.empty() && std::all_of(furthest.begin(), furthest.end(), [&](const auto& one) {
    return one.second + kLinesBehind >= last[one.first];
  });
}

void SettleWithoutFinding(const Case& facts, Diagnosis& diagnosis) {
  const Outcome& outcome = facts.analyses.outcome;
  const JobEnd& end = facts.analyses.end;
  const size_t ranks = facts.analyses.life.ranks.size();
  const Event* told = DecidingEvent(facts, end);
  const bool told_slow = FindToldWords(facts.incident, EventKind::told_slow) != nullptr;
  if (end.kind == JobEnding::hung) {
    SettleHang(facts, end, diagnosis);
    const bool by_text = told && told->kind == EventKind::told_hang;
    if (by_text) SettleToldHang(facts, *told, diagnosis);
    AddOpenFinding(facts, told, diagnosis);
    if (by_text) FinishToldHang(facts, *told, diagnosis);
    return;
  }
  if (SettleBenchmarks(facts.incident, diagnosis)) return;
  if (end.kind == JobEnding::crashed && (!outcome.ended_in_order || (told && IsEndOfRun(*told)))) {
    const Event* before = SettleCrash(facts, told, diagnosis);
    return AddOpenFinding(facts, told, diagnosis, before);
  }
  if (facts.incident.files.empty() || (ranks == 0 && !HasWordsOfAJob(facts.incident))) {
    diagnosis.headline = PipelineWords(facts);
    if (diagnosis.headline.empty() && !QuoteUnreadError(facts, diagnosis)) {
      if (HoldsKernelLogsOnly(facts.incident)) return SettleQuietKernel(diagnosis);
      diagnosis.headline = IsAllEmpty(facts.incident) ? "The input has no content" : "No recognizable job data found";
    }
    diagnosis.open.push_back(
        {"What happened?", "logs, dumps or stacks of the job; `tacet formats` lists what is read"});
    return;
  }
  if (const std::string killed = KilledServiceWords(facts); !killed.empty() && diagnosis.findings.empty()) {
    diagnosis.headline = killed;
    diagnosis.open.push_back({"Did a process of a job end then?",
                              "the output of the jobs that ran on that host at that time, with the ids of their "
                              "processes"});
    return;
  }
  if (const std::string blocked = BlockedServiceWords(facts); !blocked.empty() && diagnosis.findings.empty()) {
    diagnosis.headline = blocked;
    diagnosis.open.push_back({"Did a job wait for it?",
                              "the output of the jobs that ran on that host at that time; cat /proc/PID/stack of the "
                              "blocked processes"});
    return;
  }
  std::vector<CannotTell> missing;
  const std::string training = TrainingWords(facts);
  const bool enough = SawEnough(facts, !training.empty(), missing);
  // Stacks without an output are of a job that runs: how it ends cannot be asked.
  const bool runs = !facts.incident.threads.empty() && facts.analyses.life.outputs == 0;
  // A profiler's traces are of a job that runs well; files that merely end may have lost the end.
  const bool traced = facts.incident.timelines.size() >= ranks;
  if (enough && (outcome.ended_in_order || traced) && !SomebodyIsBehind(facts)) {
    diagnosis.status = Status::healthy;
    diagnosis.confidence = outcome.ended_in_order ? Confidence::certain : Confidence::likely;
    diagnosis.headline = (told_slow ? "No fault found: " : "Nothing is wrong: ") + std::to_string(ranks) +
                         " ranks issued the same collectives and none reports an error";
    return;
  }
  if (SettleFinished(facts, diagnosis)) return;
  diagnosis.headline = PipelineWords(facts);
  // Stacks of ranks that finished since show where they were for a moment.
  if (diagnosis.headline.empty() && !outcome.ended_in_order) {
    diagnosis.headline = StackWords(facts);
    if (!diagnosis.headline.empty()) diagnosis.headline += "; stacks alone do not show whether the job is stalled";
    // Of one process nothing can be compared: the stacks of the others are what helps.
    if (!diagnosis.headline.empty() && ranks <= 1) missing.clear();
    if (!diagnosis.headline.empty() && ranks <= 1)
      missing.push_back({"What are the other ranks doing at the same time?",
                         "stacks of all processes of the job (py-spy dump --native --pid PID), twice, a minute apart; "
                         "nvidia-smi, and dmesg -T | grep -i xid on this host"});
  }
  if (diagnosis.headline.empty()) {
    diagnosis.headline = training;
    diagnosis.progresses = !training.empty() && !IsTroubleTold(facts.incident);
  }
  if (diagnosis.headline.empty() && end.kind == JobEnding::open && !UnreadErrorBefore(facts.incident, nullptr)) {
    // Too few lines to say that it trains, but what they show is worth saying.
    const auto tells = [](const TrainingRecord& record) { return record.loss.lines > 0 || record.scale.drops > 0; };
    const auto& records = facts.incident.training;
    const std::string figures = TrainingFigures(facts.incident);
    if (!figures.empty() && std::any_of(records.begin(), records.end(), tells)) {
      const std::string seen = IsTroubleTold(facts.incident) ? "" : EndSeenWords(facts);
      diagnosis.headline = FaultWords(facts.incident) + ". " + figures + (seen.empty() ? "" : " ") + seen;
      diagnosis.progresses = !IsTroubleTold(facts.incident);
    }
  }
  if (diagnosis.headline.empty() && !SpeakOfRasLead(facts, diagnosis) && !SpeakOfRasSilence(facts, diagnosis) &&
      !QuoteUnknownWarning(facts, diagnosis) && !QuoteSlowXla(facts, diagnosis) &&
      !QuoteUnreadError(facts, diagnosis)) {
    diagnosis.headline = WordsWithoutFault(facts, diagnosis, IsTroubleTold(facts.incident));
    diagnosis.progresses = ShowsProgressToItsEnd(facts, diagnosis);
  }
  diagnosis.progresses |= ReachedItsEnd(facts) || ListsNoFault(facts.incident, diagnosis);
  if (end.kind == JobEnding::open && diagnosis.findings.empty()) SettleToldEnd(facts, diagnosis);
  if (diagnosis.status == Status::undetermined && AllReachedTheirEnd(facts) && HasNotesOnly(diagnosis) &&
      !IsTroubleTold(facts.incident) && !SomebodyIsBehind(facts)) {
    diagnosis.status = Status::healthy;
    diagnosis.confidence = Confidence::possible;
  }
  if (!outcome.ended_in_order && diagnosis.status != Status::healthy && diagnosis.status != Status::crash &&
      !IsTroubleTold(facts.incident) && !TellsItsEnd(facts.incident) && !HoldsListingsOnly(facts.incident) && !runs)
    missing.push_back(
        {"Did the job finish?", "the job's last lines on every rank, or the exit code that its launcher reports"});
  diagnosis.open.insert(diagnosis.open.end(), missing.begin(), missing.end());
}

}  // namespace tacet
