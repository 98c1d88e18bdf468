// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>

#include "analysis/plain_figures.h"
#include "rules/straggler_finding.h"
#include "rules/words.h"

namespace tacet {

void TellPrintedStraggler(const Case& facts, bool now_and_then, RuleAnswer& answer) {
  const auto odd = FindOddWorker(facts.incident);
  if (!odd || odd->persistent() == now_and_then) return;
  const auto words = [](double seconds) { return DurationWords(static_cast<int64_t>(seconds * 1e9)); };
  Finding finding;
  finding.cause = now_and_then ? "straggler-intermittent" : "straggler-compute";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.ranks = {Rank{odd->rank}};
  finding.headline =
      RankWords(finding.ranks) + " computes for " + words(odd->work) +
      (now_and_then ? " in " + std::to_string(odd->long_steps) + " of " + std::to_string(odd->steps) + " steps"
                    : " of a step of " + words(odd->whole)) +
      ", each of the other " + std::to_string(odd->ranks - 1) + " ranks for " + words(odd->others) +
      (now_and_then ? " or less on average" : " or less") + ", by the job's own figures: they wait for it";
  finding.evidence.push_back(
      {odd->last->source, "", "the last such step of this rank: " + words(odd->last->work) + " of compute"});
  finding.fix = {
      std::string("Look for what only this rank does in ") + (now_and_then ? "these steps" : "a step") +
          " (monitoring, logging, saving, an analysis of the weights, a larger share of the batch): do it less often, "
          "on all ranks alike, or outside the step.",
      "If it does the same as the others: compare its GPU's clock, temperature and other processes with theirs "
      "(nvidia-smi), and its host's CPUs.",
      "torch.profiler traces of a few steps on all ranks show where the time goes: tacet profile."};
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
