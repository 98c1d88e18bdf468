// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/printed/printed_steps.h"
#include "rules/findings/straggler_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string Seconds(double seconds) { return MeasuredWords(std::llround(seconds * 1e9)); }

std::string_view CauseOf(const PrintedLaggard& odd) {
  if (odd.part == PrintedLaggard::Part::data) return "data-loading-slow";
  if (!odd.persistent()) return "straggler-intermittent";
  return odd.stage >= 0 ? "straggler-stage" : "straggler-compute";
}

// "rank 2", "pipeline stage 2 (ranks 4 and 5)"
std::string Who(const PrintedLaggard& odd) {
  if (odd.stage < 0) return RankWords(odd.ranks);
  const std::string stage = "pipeline stage " + std::to_string(odd.stage);
  return odd.ranks.empty() ? stage : stage + " (" + RankWords(odd.ranks) + ")";
}

// The text tells nothing of the step but this part.
bool IsAllOfStep(double part, double whole) {
  constexpr double kAll = 0.999;
  return part >= kAll * whole;
}

// "of each 575 ms step", "per step", "in 4 of 20 steps"
std::string OfSteps(const PrintedLaggard& odd) {
  if (!odd.persistent()) return " in " + std::to_string(odd.long_steps) + " of " + std::to_string(odd.steps) + " steps";
  return IsAllOfStep(odd.own, odd.whole) ? " per step" : " of each " + Seconds(odd.whole) + " step";
}

// "the other rank typically spends 20 ms", "the other 2 stages typically compute for 20 ms or less"
std::string OthersWords(const PrintedLaggard& odd) {
  const bool data = odd.part == PrintedLaggard::Part::data, one = odd.compared == 2;
  const std::string kind = odd.stage < 0 ? "rank" : "stage";
  std::string words = "the other " + (one ? kind : std::to_string(odd.compared - 1) + " " + kind + "s");
  constexpr double kNothing = 5e-7;
  if (odd.others < kNothing)
    return words + (one ? " does" : " do") + (data ? " not wait for data;" : " not;") + (one ? " it" : " they");
  words += data ? (one ? " typically spends " : " typically spend ")
                : (one ? " typically computes for " : " typically compute for ");
  return words + Seconds(odd.others) + (one ? "" : " or less") + (odd.persistent() ? "" : " on average") + " and";
}

std::string Headline(const PrintedLaggard& odd) {
  const bool data = odd.part == PrintedLaggard::Part::data;
  const std::string own = odd.stage < 0 ? RankWords(odd.ranks) : "stage " + std::to_string(odd.stage);
  return Who(odd) +
         (data ? " spends " + Seconds(odd.own) + OfSteps(odd) + " waiting for data; "
               : " computes for " + Seconds(odd.own) + OfSteps(odd) + "; ") +
         OthersWords(odd) + (odd.compared == 2 ? " waits for " : " wait for ") + own +
         " (times as the job prints them)";
}

// "the last such step: 1.03 s of a 1.40 s step was compute"
std::string LastStepWords(const PrintedLaggard& odd) {
  const bool data = odd.part == PrintedLaggard::Part::data;
  const double part = data ? odd.last->data : odd.last->work;
  const std::string what = data ? "data loading" : "compute";
  return "the last such step: " + Seconds(part) +
         (IsAllOfStep(part, odd.last->whole) ? " of " + what
                                             : " of a " + Seconds(odd.last->whole) + " step was " + what);
}

void AddFix(const Case& facts, const PrintedLaggard& odd, Finding& finding) {
  if (odd.part == PrintedLaggard::Part::data) {
    finding.fix = {
        NodesOf(facts.incident) == 1
            ? "Compare this rank's data shard with those of the others: larger or more files, another file "
              "system, more work per sample. All ranks are on one host, so a busy host would slow all of them; its "
              "own CPU cores may be fewer (taskset -cp PID)."
            : "Compare this rank's data shard, storage and CPUs with those of the others: its "
              "files may be larger, its disk slow, its CPU cores few, or its host busy, if the others run elsewhere.",
        "Take stacks of its DataLoader workers during a slow batch (py-spy dump --pid PID)."};
    return;
  }
  if (odd.stage >= 0) {
    finding.fix = {
        "Compare what the stages do: layers, embedding and loss, recomputation. If this one has more, move layers to "
        "other stages until the times are equal.",
        "If it has no more than the others: compare its GPU's clock, temperature and other processes with theirs "
        "(nvidia-smi), and look for code that runs in this stage alone (logging, checks, debugging).",
        "torch.profiler traces of a few steps on all ranks show where the time goes: tacet profile."};
    return;
  }
  finding.fix = {
      std::string("Look for what only this rank does in ") + (odd.persistent() ? "a step" : "these steps") +
          " (monitoring, logging, saving, an analysis of the weights, a larger share of the batch): do it less often, "
          "in the same steps on all ranks, or outside the step.",
      "If it does the same as the others: compare its GPU's clock, temperature and other processes with theirs "
      "(nvidia-smi), and its host's CPUs.",
      "torch.profiler traces of a few steps on all ranks show where the time goes: tacet profile."};
}

// A stack that was taken while the job ran shows the main thread of that rank alone in a function of the program's own:
// there it spends the time, and not in waiting for workers.
const StackReading* StackAtWork(const Case& facts, const PrintedLaggard& odd) {
  if (odd.ranks.size() != 1) return nullptr;
  const StackReading* own = facts.analyses.StackOf(odd.ranks.front());
  const auto function = [](const StackReading& one) { return std::pair(one.innermost.function, one.innermost.file); };
  if (!own || !own->whole || own->place != StackReading::Place::host || own->certain || own->where.empty())
    return nullptr;
  if (function(*own) != std::pair(own->innermost_user.function, own->innermost_user.file)) return nullptr;
  for (const StackReading& one : facts.analyses.stacks)
    if (one.rank != own->rank && function(one) == function(*own)) return nullptr;
  return own;
}

void TellWork(const Case& facts, const StackReading& stack, Finding& finding) {
  const std::string who = RankWords({stack.rank});
  finding.headline += "; a stack shows " + who + " in " + stack.where;
  finding.evidence.push_back(
      CiteStack(facts.incident, *stack.thread, "where " + who + " was when its stack was taken"));
  finding.fix.back() = "Look at " + stack.where +
                       ": the main process itself was at work there, and not a DataLoader worker. "
                       "Prepare this before the training, move it into workers (num_workers), or give all ranks inputs "
                       "of about the same length.";
}

}  // namespace

void TellPrintedStraggler(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  const auto& odd = facts.analyses.printed_laggard;
  if (!odd || CauseOf(*odd) != cause) return;
  Finding finding;
  finding.cause = cause;
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.ranks = odd->ranks;
  finding.headline = Headline(*odd);
  finding.evidence.push_back({odd->last->source, "", LastStepWords(*odd)});
  AddFix(facts, *odd, finding);
  const bool data = odd->part == PrintedLaggard::Part::data;
  const StackReading* at_work = data ? StackAtWork(facts, *odd) : nullptr;
  if (at_work) TellWork(facts, *at_work, finding);
  answer.findings.push_back(std::move(finding));
  if (data && !at_work)
    answer.open.push_back({"What does the loader wait for?",
                           "py-spy dump of a DataLoader worker during a slow batch, CPU usage (top -H), and the "
                           "speed of the storage (iostat -x 5)"});
}

}  // namespace tacet
