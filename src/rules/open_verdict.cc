// SPDX-License-Identifier: Apache-2.0
#include "rules/open_verdict.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/event_witness.h"
#include "model/nccl_warnings.h"
#include "rules/benchmark_verdict.h"
#include "rules/end_advice.h"
#include "rules/end_sentence.h"
#include "rules/finished_job.h"
#include "rules/hang_capture.h"
#include "rules/library_words.h"
#include "rules/listing_words.h"
#include "rules/milestone_words.h"
#include "rules/open_finding.h"
#include "rules/outline_words.h"
#include "rules/quiet_rank.h"
#include "rules/stack_words.h"
#include "rules/told_hang.h"
#include "rules/told_trouble.h"
#include "rules/training_words.h"
#include "rules/unread_error.h"
#include "rules/words.h"
#include "rules/xla_words.h"

namespace tacet {
namespace {

// "the other 31 ranks", "all 4 ranks"; without a number where the size of the job is only what was seen of it.
std::string OtherRanks(const Case& facts, int have, int world) {
  if (facts.incident.world_told && have == 0 && world == 2) return "both ranks";
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
  if (life.outputs < world) {
    enough = false;
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
                    "NCCL logs of all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,COLL" +
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

// How many processes the launcher says to have ended in the same way.
// Processes that ended alike: a shell, the launcher and its summary may tell of one and the same.
size_t CountAlike(const Case& facts, const Event& first) {
  std::set<Rank> ranks;
  size_t nameless = 0;
  for (const Event& event : facts.incident.events) {
    if (event.kind != first.kind || event.As<ProcessEnd>().code != first.As<ProcessEnd>().code) continue;
    if (event.rank.known())
      ranks.insert(event.rank);
    else
      ++nameless;
  }
  return ranks.empty() ? nameless : ranks.size();
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
  const bool over = IsGone(facts) || (end.told && end.told->kind == EventKind::watchdog_timeout);
  diagnosis.headline = over ? "the job hung" : "the job hangs";
  if (end.quiet_ns > 0)
    diagnosis.headline = "the job made no progress for " + DurationWords(end.quiet_ns) + " before it was ended";
  else if (end.told)
    diagnosis.headline += ": " + EndSentence(facts, *end.told);
  if (const std::string stood = end.told ? StoodWords(facts.incident, end.told->source) : ""; !stood.empty())
    diagnosis.headline = stood + "; then " + diagnosis.headline;
  if (end.told && end.told->kind == EventKind::xla_wait) return SettleXlaWait(*end.told, diagnosis);
  if (end.told && !end.told->As<WatchdogTimeout>().bar.empty()) return;  // the headline says who works
  const bool awaited = end.told && end.quiet_ns <= 0 && end.told->kind == EventKind::watchdog_timeout &&
                       end.told->peer.known();  // the headline names it
  diagnosis.headline += awaited ? "; look there first" : "; the evidence does not show which rank is responsible";
  if (end.told && end.told->Means(Meaning::of_ascend)) {
    diagnosis.open.push_back(
        {"Which rank makes the others wait?",
         "the output of all ranks, their plogs (ascend/log/debug/plog) and stacks (py-spy dump --pid "
         "PID): look for a rank that reports no timeout, or for the one that reports first"});
    return;
  }
  diagnosis.open.push_back({"Which rank makes the others wait?", HangCapture(facts)});
}

// An error in its own words, after which nothing else is missing but its reason.
bool QuotesError(const Event* told) {
  return told && (told->kind == EventKind::nccl_error || told->kind == EventKind::nccl_warning ||
                  (told->kind == EventKind::exception && !IsConsequence(*told)));
}

const Event* DecidingEvent(const Case& facts, const JobEnd& end) {
  if (end.kind == JobEnding::hung) return end.told;
  if (const Event* warning = FirstUnexplainedWarning(facts)) return warning;
  return end.told ? end.told : facts.analyses.outcome.first_failure;
}

// "; setup had completed, and the first collective (all_reduce, 8 B) failed": the last stage that went well, where an
// NCCL log holds one call of each rank at most, and the error behind it.
std::string FirstCallWords(const Case& facts, const Event& error) {
  const auto& events = facts.incident.events;
  if (error.kind != EventKind::nccl_error) return "";
  const bool ready = std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::init_completed && event.source.file == error.source.file &&
           event.source.line < error.source.line;
  });
  const Call* first = nullptr;
  for (const CallStream& stream : facts.incident.streams) {
    if (stream.source != CallSource::nccl_log || stream.calls.empty()) continue;
    if (stream.calls.size() > 1 || !stream.from_start || stream.file != error.source.file ||
        stream.calls[0].line >= error.source.line)
      return "";
    first = &stream.calls[0];
  }
  if (!ready || !first || first->kind == OpKind::unknown) return "";
  return "; setup had completed, and the first collective (" + std::string(Name(first->kind)) +
         (first->Bytes() > 0 ? ", " + SizeWords(first->Bytes()) : "") + ") failed";
}

const Event* SettleEndOfRun(const Case& facts, const Event& end, Diagnosis& diagnosis) {
  const Event* before = UnreadErrorBefore(facts.incident, &end);
  diagnosis.headline = end.As<ProcessEnd>().sentence;
  diagnosis.headline += before ? "; before that, a line reports: '" + UnreadErrorWords(*before) + "'"
                               : "; the captured evidence does not show why";
  if (!before)
    diagnosis.open.push_back({"What ended the job?",
                              "the program's own output, also what it writes to files; the kernel log (dmesg -T) and "
                              "the scheduler's record of that time"});
  return before;
}

// Returns the line that tells more than how the process ended, if there is one.
const Event* SettleCrash(const Case& facts, const Event* told, Diagnosis& diagnosis) {
  diagnosis.status = Status::crash;
  diagnosis.confidence = Confidence::likely;
  if (told && IsEndOfRun(*told)) return SettleEndOfRun(facts, *told, diagnosis);
  diagnosis.headline = "the job crashed";
  bool stopped = false;
  const ProcessEnd& how_it_ended = told ? told->As<ProcessEnd>() : kEmptyDetail<ProcessEnd>;
  if (told) {
    const size_t alike = CountAlike(facts, *told);
    const auto& how = how_it_ended;
    const bool ended = told->kind == EventKind::process_exited && how.code < 0;
    const std::string signal = how.how.empty() ? "" : " (" + how.how + ")";
    stopped = told->kind == EventKind::process_killed;
    diagnosis.headline += ": ";
    if (alike > 1 && ended)
      diagnosis.headline +=
          std::to_string(alike) + " processes were ended by signal " + std::to_string(-how.code) + signal;
    else if (alike > 1 && stopped)
      diagnosis.headline += "the launcher stopped " + std::to_string(alike) + " processes" + signal;
    else
      diagnosis.headline += EndSentence(facts, *told) + FirstCallWords(facts, *told);
    if (NeverStarted(*told)) {
      const bool ran = !facts.analyses.life.ranks.empty() || facts.analyses.life.outputs > 0;
      diagnosis.headline =
          (ran ? "a program of the job did not start: " : "the job did not start: ") + how_it_ended.how;
    }
  }
  // A failed CUDA call of NCCL often comes from a kernel that failed before it.
  const bool nccl_tells = told && told->kind == EventKind::nccl_warning && told->As<Warning>().id != "cuda-failure";
  const bool told_why =
      nccl_tells || (told && told->kind == EventKind::store_wait_timeout) || (told && NeverStarted(*told)) ||
      (told && !told->As<Raised>().refusal.empty()) ||
      (told && told->kind == EventKind::nccl_error && (told->Means(Meaning::reported) || WarningBehind(facts, *told)));
  const Event* before = stopped || told_why || QuotesError(told) || !how_it_ended.log_file.empty()
                            ? nullptr
                            : UnreadErrorBefore(facts.incident, told);
  const bool cut = told && told->kind == EventKind::exception && told->text.empty() && told->Means(Meaning::reported) &&
                   told->library == Library::not_told;
  if (cut)
    diagnosis.headline += "; the traceback is cut before its last line, which names the error";
  else if (stopped)
    diagnosis.headline += "; the one that failed before is not in these files";
  else if (before)
    diagnosis.headline += "; before that, a line reports: '" + UnreadErrorWords(*before) + "'";
  else if (const auto quiet = told ? FindQuietRank(facts, *told) : std::nullopt)
    diagnosis.headline += "; " + QuietRankWords(*quiet);
  else if (!told_why)
    diagnosis.headline += told && !how_it_ended.log_file.empty() ? "; more is in " + how_it_ended.log_file
                          : QuotesError(told)                    ? "; the reason is not in these files"
                                                                 : "; the first error is not in these files";
  if (before) return before;
  if (told && NeverStarted(*told)) {
    diagnosis.open.push_back({"Why can it not be started?",
                              "the PATH and the environment of the script that starts the job (env, which -a)"});
    return nullptr;
  }
  if (told && told->kind == EventKind::nccl_warning && !nccl_tells) {
    diagnosis.open.push_back(
        {"Why does the driver refuse NCCL's call?",
         "the driver's version (nvidia-smi) beside the CUDA version that NCCL prints; NCCL's log from the start "
         "(NCCL_DEBUG=INFO); whether NCCL_CUMEM_ENABLE=0 or NCCL_P2P_DISABLE=1 make a difference"});
    return nullptr;
  }
  if (told && !told->As<Raised>().refusal.empty()) return nullptr;
  const bool by_nccl = told && (told->kind == EventKind::nccl_error || told->kind == EventKind::nccl_warning);
  diagnosis.open.push_back(
      {"What ended the job first?",
       told && !LibraryCapture(told->library).empty() ? LibraryCapture(told->library)
       : by_nccl
           ? "the NCCL log of this process from the start (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET), and those "
             "of its peers"
           : OutputToCapture(told)});
  return nullptr;
}

// Something of a job was read, even if no line tells a rank.
bool HasWordsOfAJob(const Incident& incident) {
  const auto is_read = [](const Event& event) {
    return event.kind != EventKind::unread_error && WitnessOf(event) != Witness::reporter;
  };
  return std::any_of(incident.events.begin(), incident.events.end(), is_read) || !incident.streams.empty() ||
         !incident.threads.empty() ||
         std::any_of(incident.files.begin(), incident.files.end(),
                     [](const InputFile& file) { return file.bytes.understood > 0; });
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
    if (diagnosis.headline.empty() && !QuoteUnreadError(facts, diagnosis))
      diagnosis.headline = "No recognizable job data found";
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
  std::vector<CannotTell> missing;
  const std::string training = TrainingWords(facts);
  const bool enough = SawEnough(facts, !training.empty(), missing);
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
  if (diagnosis.headline.empty()) {
    diagnosis.headline = StackWords(facts);
    if (!diagnosis.headline.empty()) diagnosis.headline += "; stacks alone do not show whether the job is stalled";
    // Of one process nothing can be compared: the stacks of the others are what helps.
    if (!diagnosis.headline.empty() && ranks <= 1) missing.clear();
    if (!diagnosis.headline.empty() && ranks <= 1)
      missing.push_back({"What do the other ranks do at the same time?",
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
      diagnosis.headline = "no line reports a fault. " + figures;
      diagnosis.progresses = !IsTroubleTold(facts.incident);
    }
  }
  if (diagnosis.headline.empty() && !QuoteUnknownWarning(facts, diagnosis) && !QuoteSlowXla(facts, diagnosis) &&
      !QuoteUnreadError(facts, diagnosis))
    diagnosis.headline = WordsWithoutFault(facts, diagnosis, IsTroubleTold(facts.incident));
  diagnosis.progresses |= ReachedItsEnd(facts) || ListsNoFault(facts.incident, diagnosis);
  if (end.kind == JobEnding::open && diagnosis.findings.empty()) SettleToldEnd(facts, diagnosis);
  if (!outcome.ended_in_order && diagnosis.status != Status::healthy && !IsTroubleTold(facts.incident) &&
      !TellsItsEnd(facts.incident) && !HoldsListingsOnly(facts.incident))
    missing.push_back(
        {"Did the job finish?", "the job's last lines on every rank, or the exit code that its launcher reports"});
  diagnosis.open.insert(diagnosis.open.end(), missing.begin(), missing.end());
}

}  // namespace tacet
