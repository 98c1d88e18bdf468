// SPDX-License-Identifier: Apache-2.0
#include "rules/open_finding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeout_census.h"
#include "rules/end_sentence.h"
#include "rules/message_words.h"
#include "rules/timeout_words.h"
#include "rules/words.h"

namespace tacet {
namespace {

constexpr size_t kMostCited = 3;

std::string OpenProof(const Event& told) {
  switch (told.kind) {
    case EventKind::heartbeat_stuck:
    case EventKind::gil_blocked: return "the process made no progress";
    case EventKind::desync_report:
    case EventKind::monitored_barrier_failed: return "ranks are not at the same place";
    case EventKind::hung_task: return "the kernel saw the process blocked";
    case EventKind::watchdog_status:
    case EventKind::dump_signal: return "an operation did not finish";
    case EventKind::connection_lost:
    case EventKind::store_lost: return "the process lost a peer";
    case EventKind::process_killed: return "the launcher ended the process";
    case EventKind::process_exited:
    case EventKind::abort_signal: return "the process ended";
    case EventKind::nccl_error:
    case EventKind::nccl_warning: return told.Means(Meaning::of_ascend) ? "HCCL gave up" : "NCCL gave up";
    default: return IsSignOfHang(told) ? "a wait reached its limit" : "the first error on record";
  }
}

std::vector<std::string> StepsOfAHang(const TimeoutCensus& census, const Event& told) {
  std::vector<std::string> steps;
  constexpr size_t kFew = 8;
  // Fewer than those that speak: they may be what is waited for. Otherwise a part of the output was pasted.
  size_t heard = 0;
  for (const TimedOutCall& call : census.calls) heard += call.ranks.size();
  if (census && !census.unheard.empty() && census.unheard.size() <= kFew) {
    const bool one = census.unheard.size() == 1;
    steps.push_back(census.unheard.size() < heard
                        ? "Look at " + RankWords(census.unheard) + ": no line is from " + (one ? "it. " : "them. ") +
                              (one ? "Is the process alive (ps), what does it do (py-spy dump --pid PID), what does "
                                     "dmesg say?"
                                   : "Are the processes alive (ps), what do they do (py-spy dump --pid PID), what does "
                                     "dmesg say?")
                        : "The output of " + RankWords(census.unheard) +
                              " is not in these files: add it, and run the diagnosis again.");
  }
  if (told.kind == EventKind::heartbeat_stuck || told.kind == EventKind::gil_blocked)
    steps.push_back(
        "Take the stacks of the cited process with native frames (py-spy dump --native --pid PID, or gdb): a call of "
        "CUDA or NCCL, or a thread that holds the GIL, blocks it.");
  else if (told.kind == EventKind::hung_task)
    steps.push_back("Look at what the process waits for in the kernel: cat /proc/PID/stack, and dmesg -T before it.");
  else
    steps.push_back(
        "While the job hangs, take the stack of every rank (py-spy dump --pid PID): the rank whose main thread is not "
        "in communication is the one that the others wait for.");
  steps.push_back(
      "If the job is gone: restart it with tacet run, or with the settings below, and diagnose what it leaves.");
  return steps;
}

std::vector<std::string> StepsOfACrash(const Incident& incident, const Event& told) {
  const std::string elsewhere =
      "Look for the rank that ended first: the output of every other rank, and the kernel log (dmesg -T) of their "
      "hosts.";
  switch (told.kind) {
    case EventKind::nccl_error:
    case EventKind::nccl_warning:
      if (told.Means(Meaning::of_ascend))
        return {"Read the plogs of this process and of its peers (ascend/log/debug/plog).",
                "Look at the output of the peers for an earlier error."};
      return {told.kind == EventKind::nccl_warning || HasNcclInfo(incident)
                  ? "Read the lines of the same process around the cited one: NCCL's warnings, and '-> N', the results "
                    "of its calls."
                  : "Read NCCL's warnings above the cited line; where there are none, run again with NCCL_DEBUG=INFO.",
              "Look at the output of the peers for an earlier error."};
    case EventKind::connection_lost:
    case EventKind::store_lost:
    case EventKind::monitored_barrier_failed: return {elsewhere};
    case EventKind::exception:
      if (IsConsequence(told)) return {elsewhere};
      return {"Read the traceback that ends in the cited line: its last frame is where the program failed."};
    case EventKind::process_exited:
      if (told.Means(Meaning::reported))
        return {"Run the same command by hand on one node, in the environment that the job gets."};
      [[fallthrough]];
    default:
      return {
          "Read the output before the cited line for the first traceback or error: the last one is usually a "
          "consequence of an earlier one.",
          elsewhere};
  }
}

}  // namespace

void AddOpenFinding(const Case& facts, const Event* told, Diagnosis& diagnosis) {
  if (!told) return;
  Finding finding;
  finding.status = diagnosis.status;
  finding.severity = Severity::critical;
  finding.confidence = diagnosis.confidence;
  finding.headline = diagnosis.headline;
  const bool hangs = diagnosis.status == Status::hang;
  finding.explanation =
      hangs ? "A rank waited until a limit was reached. The line says which rank waited, not for which rank."
            : "The line says how the job ended. The reason came before it and is not in these files.";
  const TimeoutCensus census = hangs ? CountTimeouts(facts.incident) : TimeoutCensus{};
  if (census && told->kind == EventKind::watchdog_timeout) {
    for (const TimedOutCall& call : census.calls) {
      finding.affected_ranks.insert(finding.affected_ranks.end(), call.ranks.begin(), call.ranks.end());
      if (finding.evidence.size() < kMostCited)
        finding.evidence.push_back(CiteEvent(
            *call.first, RankWords(call.ranks) + " waited in " + TimedOutCallWords(call) + " until the limit"));
    }
    const TimedOutCall& common = census.calls.front();
    if (common.op != OpKind::unknown) finding.operation = OperationRef{common.op, common.seq, -1};
  } else {
    finding.evidence.push_back(CiteEvent(*told, OpenProof(*told)));
    if (const Event* warning = told->kind == EventKind::nccl_error ? WarningBehind(facts, *told) : nullptr)
      finding.evidence.push_back(CiteEvent(*warning, "the last warning before it"));
  }
  finding.fix = hangs ? StepsOfAHang(census, *told) : StepsOfACrash(facts.incident, *told);
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
}

namespace {

bool IsStepOfSetup(const Event& event) {
  switch (event.kind) {
    case EventKind::network:
    case EventKind::interface_used:
    case EventKind::device_found:
    case EventKind::transport:
    case EventKind::init_started:
    case EventKind::init_completed:
    case EventKind::comm_destroyed: return true;
    default: return false;
  }
}

// The same process goes on with its set-up: nothing followed from the warning.
bool WentOn(const Incident& incident, const Event& warning) {
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return IsStepOfSetup(event) && event.speaker == warning.speaker && event.source.file == warning.source.file &&
           event.source.line > warning.source.line;
  });
}

// RCCL's advice on the host: worth a note, and no verdict.
bool QuoteAdvice(const Case& facts, Diagnosis& diagnosis) {
  Finding finding;
  finding.severity = Severity::note;
  finding.headline =
      "no line reports a fault; RCCL advises settings of the host or of the environment that are missing here";
  finding.explanation = "The messages name them. They matter for speed and stability on some machines; setup goes on.";
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "rccl-host-setting" &&
        finding.evidence.size() < kMostCited)
      finding.evidence.push_back(CiteEvent(event, "RCCL's advice"));
  if (finding.evidence.empty()) return false;
  finding.fix = {"Set them at the next opportunity, as the cited messages say."};
  diagnosis.headline = finding.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

}  // namespace

bool HasNcclInfo(const Incident& incident) {
  return !incident.rank_channels.empty() || std::any_of(incident.events.begin(), incident.events.end(), IsStepOfSetup);
}

bool QuoteUnknownWarning(const Case& facts, Diagnosis& diagnosis) {
  const auto& events = facts.incident.events;
  const auto warning = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "other" && !event.text.empty() &&
           !WentOn(facts.incident, event);
  });
  if (warning == events.end()) return QuoteAdvice(facts, diagnosis);
  Finding finding;
  finding.severity = Severity::note;
  finding.headline = "NCCL warns in " + SubjectWords(SubjectOf(facts.incident, *warning)) + ": '" +
                     MessageWords(warning->text) + "'; what follows from it is not in these files";
  finding.explanation = "No rule knows this warning, and nothing tells how the job ended.";
  finding.evidence.push_back(CiteEvent(*warning, "a warning that no rule knows"));
  finding.fix = {"Look at what follows in the log: an error of NCCL's names the call that failed ('-> 2', '-> 3').",
                 HasNcclInfo(facts.incident)
                     ? "Keep the output of every rank from the start to the end."
                     : "Run again with NCCL_DEBUG=INFO and keep the output of every rank from the start."};
  diagnosis.headline = finding.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

}  // namespace tacet
