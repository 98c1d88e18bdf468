// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/printed_steps.h"
#include "rules/straggler_finding.h"
#include "rules/told_finding.h"
#include "rules/words.h"

namespace tacet {
namespace {

std::string Seconds(double seconds) { return DurationWords(static_cast<int64_t>(seconds * 1e9)); }

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

std::string Headline(const PrintedLaggard& odd) {
  const bool data = odd.part == PrintedLaggard::Part::data, often = odd.persistent();
  const std::string others = odd.compared == 2
                                 ? std::string("the other ") + (odd.stage < 0 ? "rank" : "stage")
                                 : "each of the other " + std::to_string(odd.compared - 1) +
                                       (odd.stage < 0 ? " ranks" : " stages");
  const std::string time = Seconds(odd.own);
  std::string words = Who(odd) + (data ? " waits " + time + " for its data" : " computes for " + time);
  words += often ? " of a step of " + Seconds(odd.whole)
                 : " in " + std::to_string(odd.long_steps) + " of " + std::to_string(odd.steps) + " steps";
  return words + ", " + others + " for " + Seconds(odd.others) + (often ? " or less" : " or less on average") +
         ", by the job's own figures: they wait for it";
}

void AddFix(const Case& facts, const PrintedLaggard& odd, Finding& finding) {
  if (odd.part == PrintedLaggard::Part::data) {
    finding.fix = {
        NodesOf(facts.incident) == 1
            ? "Compare this rank's share of the data with those of the others: larger or more files, another file "
              "system, more work per sample. All ranks are on one host, so a busy host would slow all of them; its "
              "own CPU cores may be fewer (taskset -cp PID)."
            : "Compare the storage, the CPUs and the share of the data of this rank with those of the others: its "
              "files may be larger, its disk slow, its CPU cores few, or its host busy, if the others run elsewhere.",
        "Take stacks of its loader's workers during such a load (py-spy dump --pid PID)."};
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
          "on all ranks alike, or outside the step.",
      "If it does the same as the others: compare its GPU's clock, temperature and other processes with theirs "
      "(nvidia-smi), and its host's CPUs.",
      "torch.profiler traces of a few steps on all ranks show where the time goes: tacet profile."};
}

}  // namespace

void TellPrintedStraggler(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  const auto odd = FindPrintedLaggard(facts.incident);
  if (!odd || CauseOf(*odd) != cause) return;
  Finding finding;
  finding.cause = cause;
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.ranks = odd->ranks;
  finding.headline = Headline(*odd);
  const bool data = odd->part == PrintedLaggard::Part::data;
  finding.evidence.push_back({odd->last->source, "",
                              "the last such step: " + Seconds(data ? odd->last->data : odd->last->work) + " of " +
                                  Seconds(odd->last->whole) + (data ? " went into loading data" : " of compute")});
  AddFix(facts, *odd, finding);
  answer.findings.push_back(std::move(finding));
  if (data)
    answer.open.push_back({"What does the loader wait for?",
                           "py-spy dump of a loader's worker during a slow load, the use of the CPUs (top -H), and the "
                           "speed of the storage (iostat -x 5)"});
}

}  // namespace tacet
