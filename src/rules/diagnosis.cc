// SPDX-License-Identifier: Apache-2.0
#include "rules/diagnosis.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "model/nccl_warnings.h"
#include "rules/benchmark_verdict.h"
#include "rules/silence_words.h"
#include "rules/words.h"

namespace tacet {
namespace {

void FillTexts(const Rule& rule, const Incident& incident, Finding& finding) {
  if (finding.explanation.empty())
    finding.explanation = std::string(rule.meaning) + " " + std::string(rule.look_alikes);
  if (finding.fix.empty()) finding.fix.assign(rule.fix.begin(), rule.fix.end());
  for (std::string& advice : finding.fix) advice = NamePlaces(incident, finding.ranks, std::move(advice));
  if (finding.prevent.empty()) finding.prevent.assign(rule.prevent.begin(), rule.prevent.end());
  if (!finding.headline.empty())
    finding.headline[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(finding.headline[0])));
  std::sort(finding.ranks.begin(), finding.ranks.end());
}

// Nothing tells how long anybody has waited. In a running job, too, somebody is behind at any moment: the rank is
// spoken of, but not suspected.
void SpeakOfAMoment(const Case& facts, Finding& finding, const std::string& who, const std::string& where,
                    Diagnosis& diagnosis) {
  finding.headline = "Where the records end, " + who + (finding.ranks.size() == 1 ? " is" : " are") +
                     " behind the others before " + where + "; a running job looks like this at any moment";
  finding.explanation =
      "The logs do not tell times, and nobody reports a timeout: whether the job stood still or was simply still "
      "running when the records end cannot be told.";
  finding.fix = {NamePlaces(facts.incident, finding.ranks,
                            "If the job hangs: look at " + who + " first (py-spy dump --pid PID, ps, dmesg)."),
                 "Take the stacks twice, some seconds apart, and run the diagnosis on both."};
  diagnosis.open.push_back({"Does the job stand still?",
                            "anything that tells of time: the output with the watchdog's message, flight records "
                            "(TORCH_FR_BUFFER_SIZE=2000), NCCL RAS (ncclras -f json), or black boxes"});
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

// Where waiting ends is known, why is not: the ranks are suspects, the status stays undetermined.
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
  for (const Standstill& still : facts.standstill.ranks)
    if (still.told && still.kind == StandstillKind::unclear)
      finding.evidence.push_back(
          {still.told->source, RankWords({still.rank}) + " " + still.told->words, "this report names the rank"});
  for (const Standstill& still : facts.standstill.ranks)
    if (still.kind == StandstillKind::absent)
      finding.evidence.push_back(
          CiteAbsence(RankWords({still.rank}) + " left no file of any kind while its peers did"));
  CiteSilences(facts, StandstillKind::unclear, finding.evidence);
  const Silence* silence = FirstSilence(facts, StandstillKind::unclear);
  const std::string where =
      facts.standstill.operation ? OperationWords(facts.incident, *facts.standstill.operation) : "the next operation";
  finding.headline = "Everybody waits for " + who + " in " + where + "; why " +
                     (finding.ranks.size() == 1 ? "it does" : "they do") + " not come cannot be told" +
                     (absent    ? ": no file of " + std::string(finding.ranks.size() == 1 ? "it" : "them") + " is here"
                      : silence ? ": " + SilenceWords(facts, *silence) + ", so it is dead or frozen"
                                : "");
  finding.explanation =
      "The records show who is waited for, but not whether that process is stuck on its host, frozen, dead, or ended "
      "by an error of its own.";
  finding.fix = {
      "Capture what is missing (below) and run the diagnosis again.",
      "Look at " + who +
          " first: is the process alive (ps), what does it do (py-spy dump --pid PID), what does dmesg say?"};
  finding.fix.back() = NamePlaces(facts.incident, finding.ranks, std::move(finding.fix.back()));
  diagnosis.open.push_back({"Why does " + who + " not go on?",
                            "the stack (py-spy dump), flight record, output and kernel log of " + who + "'s host"});
  if (!facts.standstill.lasts && !silence) SpeakOfAMoment(facts, finding, who, where, diagnosis);
  // Whoever was started leaves a log. Where logs were collected, a rank without any may merely not have been: it is
  // spoken of, but not suspected. The same goes for a rank of which only the end of its log says that it did not come.
  const bool logs = facts.analyses.life.nccl_logs + facts.analyses.life.outputs > 0;
  if ((all_absent && logs) || OnlyLogsEnd(facts)) finding.ranks.clear();
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

// What must be on record before a job may be called healthy: every rank's calls with their reductions, and every rank's
// output. Anything less leaves room for a fault that leaves no trace in what is here.
bool SawEnough(const Case& facts, std::vector<CannotTell>& open) {
  const SignsOfLife& life = facts.analyses.life;
  const auto world = static_cast<int>(life.ranks.size());
  bool enough = world > 0;
  if (life.outputs < world) {
    enough = false;
    open.push_back({"Did every rank end without an error?",
                    "the output (stdout and stderr) of " + std::to_string(world - life.outputs) + " more ranks"});
  }
  // Stacks are taken of a job that is suspected to hang: whose is missing could not be asked, or did not answer.
  if (!facts.analyses.outcome.ended_in_order && life.stacks > 0 && life.stacks < world) {
    enough = false;
    open.push_back({"Do all ranks go on?", "the stacks (py-spy dump) of " + std::to_string(world - life.stacks) +
                                               " more ranks, or anything of a later time"});
  }
  int compared = 0;
  for (const CallStream& stream : facts.incident.streams)
    compared += (stream.source == CallSource::nccl_log || stream.source == CallSource::black_box) &&
                !stream.calls.empty() && stream.from_start && !stream.cut;
  const bool traced = facts.incident.timelines.size() >= static_cast<size_t>(world);
  if (compared < world && !traced) {
    enough = false;
    open.push_back({"Did all ranks issue the same collectives with the same reductions?",
                    "NCCL logs of all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,COLL (flight records do "
                    "not hold the reduction)"});
  }
  return enough;
}

// Every rank left files, and none of its logs is cut short.
bool SawAllToTheEnd(const Case& facts) {
  const auto& streams = facts.incident.streams;
  return std::all_of(facts.analyses.life.ranks.begin(), facts.analyses.life.ranks.end(),
                     [](const auto& one) { return one.second.any(); }) &&
         std::none_of(streams.begin(), streams.end(), [](const CallStream& stream) { return stream.cut; });
}

// Logs of a job that ended hold the same calls on all ranks; others were cut.
bool SomebodyIsBehind(const Case& facts) {
  return std::any_of(facts.analyses.sources.begin(), facts.analyses.sources.end(),
                     [](const SourceAnalysis& source) { return !source.waits.operations.empty(); });
}

bool SawALoss(const Case& facts) {
  return std::any_of(facts.analyses.life.ranks.begin(), facts.analyses.life.ranks.end(),
                     [](const auto& one) { return one.second.lost_peer || one.second.consequence; });
}

// A timeline of a pipeline tells of its pace, and of nothing else.
std::string PipelineWords(const Case& facts) {
  if (facts.incident.pipeline_traces.empty()) return "";
  if (facts.analyses.replay_slowdown <= 0)
    return "The pipeline's timeline cannot be replayed: `tacet profile` says why";
  char text[160];
  std::snprintf(text, sizeof text,
                "No worker and no stage of the pipeline makes the others wait: its steps take %.2f times their ideal",
                facts.analyses.replay_slowdown);
  return text;
}

// NCCL says that something of this process, its host or its arguments is wrong, and no cause covers it.
const Event* FirstUnexplainedWarning(const Case& facts) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_warning && event.subject != "other" &&
        event.value2 == static_cast<int64_t>(NcclWarningRole::cause))
      return &event;
  return nullptr;
}

void SettleWithoutFinding(const Case& facts, Diagnosis& diagnosis) {
  const Outcome& outcome = facts.analyses.outcome;
  const size_t ranks = facts.analyses.life.ranks.size();
  if (const auto& connecting = facts.standstill.connecting; outcome.hangs() && !connecting.empty()) {
    const std::string who = RankWords(connecting), one = connecting.size() == 1 ? "is" : "are";
    diagnosis.headline =
        who + " " + one +
        " inside NCCL with an operation that has not run before: connections are being made, or cannot be";
    diagnosis.headline[0] = 'R';
    diagnosis.open.push_back({"Why " + one + " " + who + " not done with connecting?",
                              "NCCL logs of these ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"});
    return;
  }
  if (outcome.hangs()) {
    diagnosis.headline = "The job hangs, but the evidence does not tell who holds it up";
    diagnosis.open.push_back({"Who holds the job up?",
                              "flight records of all ranks (TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_ENABLE_TIMING=1), "
                              "stacks (py-spy dump) and NCCL logs"});
    return;
  }
  if (outcome.first_failure) {
    diagnosis.headline = "A rank failed, but the evidence does not tell why";
    return;
  }
  if (SettleBenchmarks(facts.incident, diagnosis)) return;
  const bool output = std::any_of(facts.incident.files.begin(), facts.incident.files.end(),
                                  [](const auto& file) { return file.format == "torch_log"; });
  if (facts.incident.files.empty() || (ranks == 0 && !output)) {
    diagnosis.headline = PipelineWords(facts);
    if (diagnosis.headline.empty())
      diagnosis.headline = "Nothing here says anything about a job: no file was understood";
    diagnosis.open.push_back(
        {"What happened?", "logs, dumps or stacks of the job; `tacet formats` lists what is read"});
    return;
  }
  if (const Event* warning = FirstUnexplainedWarning(facts); warning && !outcome.ended_in_order) {
    const NcclWarning* known = FindNcclWarning(warning->subject);
    diagnosis.headline = "NCCL gave up" +
                         (warning->rank.known() ? " on " + RankWords({warning->rank}) : std::string()) + ": " +
                         std::string(known ? known->meaning : warning->subject);
    diagnosis.open.push_back({"Is this what ended the job?", "the output of all ranks and the launcher's"});
    return;
  }
  if (!outcome.ended_in_order && SawALoss(facts)) {
    diagnosis.headline = "Connections closed before the job ended in order; nothing here tells who was the first to go";
    diagnosis.open.push_back({"Why did the connections close?",
                              "the launcher's output with exit codes, the kernel log of all hosts, stacks and flight "
                              "records from before the end"});
    return;
  }
  std::vector<CannotTell> missing;
  const bool enough = SawEnough(facts, missing);
  // A profiler's traces are of a job that runs well; files that merely end may have lost the end.
  const bool traced = facts.incident.timelines.size() >= ranks;
  if (enough && (outcome.ended_in_order || traced) && !SomebodyIsBehind(facts)) {
    diagnosis.status = Status::healthy;
    diagnosis.confidence = outcome.ended_in_order ? Confidence::certain : Confidence::likely;
    diagnosis.headline =
        "Nothing is wrong: " + std::to_string(ranks) + " ranks issued the same collectives and none reports an error";
    return;
  }
  diagnosis.headline = "Nothing wrong is visible in what is here, but it is not enough to call the job healthy";
  if (!outcome.ended_in_order)
    missing.push_back(
        {"Did the job come to its end?",
         "the output of every rank up to the end, or NCCL logs up to the destruction of the communicators"});
  diagnosis.open.insert(diagnosis.open.end(), missing.begin(), missing.end());
}

}  // namespace

Diagnosis Diagnose(const Incident& incident, const Analyses& analyses, const StandstillView& standstill) {
  const Case facts{incident, analyses, standstill};
  Diagnosis diagnosis;
  for (const Rule* rule : AllRules()) {
    RuleAnswer answer = rule->judge(facts);
    for (Finding& finding : answer.findings) {
      FillTexts(*rule, incident, finding);
      diagnosis.findings.push_back(std::move(finding));
    }
    std::move(answer.open.begin(), answer.open.end(), std::back_inserter(diagnosis.open));
  }
  if (auto failed = FindFailedBenchmark(incident)) diagnosis.findings.push_back(std::move(*failed));
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.severity, -a.weight) < std::tuple(b.severity, -b.weight);
  });
  const bool proven = !diagnosis.findings.empty() && diagnosis.findings[0].severity != Severity::note;
  const bool critical = proven && diagnosis.findings[0].severity == Severity::critical;
  // A slow rank holds its peers up at most moments: that it is behind when the records end is no more than that.
  const bool slow = proven && diagnosis.findings[0].status == Status::slow && !analyses.outcome.hangs();
  const bool suspects = !critical && !slow && AddSuspects(facts, diagnosis);
  // A setting that slows the job down answers no question about a job whose end, and some of whose ranks, nobody saw.
  const bool unseen = proven && diagnosis.findings[0].status == Status::degraded && !analyses.outcome.ended_in_order &&
                      !SawAllToTheEnd(facts);
  if ((!proven && !suspects) || (unseen && !suspects) ||
      (!critical && !suspects && (analyses.outcome.hangs() || analyses.outcome.first_failure))) {
    SettleWithoutFinding(facts, diagnosis);
    return diagnosis;
  }
  const Finding& first = diagnosis.findings[0];
  diagnosis.status = first.status;
  diagnosis.cause = first.cause;
  diagnosis.ranks = first.ranks;
  diagnosis.confidence = first.confidence;
  diagnosis.headline = first.headline;
  return diagnosis;
}

}  // namespace tacet
