// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "analysis/printed/plain_figures.h"
#include "rules/rule.h"

namespace tacet {
namespace {

std::string PercentFigure(double percent) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", percent);
  return text;
}

RuleAnswer JudgeLowUtilization(const Case& facts) {
  RuleAnswer answer;
  const auto found = FindLowUtilization(facts.incident);
  if (!found) return answer;
  Finding finding;
  finding.cause = "low-utilization";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::possible;
  const std::string low = PercentFigure(found->lowest->percent), high = PercentFigure(found->highest->percent);
  finding.headline = "The job runs, but uses " + (low == high ? low : low + " to " + high) +
                     " of what the GPUs can compute (" + std::to_string(found->lines) +
                     (found->lines == 1 ? " line)" : " lines)");
  finding.evidence.push_back(
      {found->highest->source, high, low == high ? "the utilization" : "the highest utilization in the text"});
  if (low != high) finding.evidence.push_back({found->lowest->source, low, "the lowest"});
  answer.findings.push_back(std::move(finding));
  answer.open.push_back({"What takes the time?",
                         "traces of a few steps from two or more ranks (tacet run --profile-steps 100-110), and the "
                         "sizes of batch, sequence and model"});
  return answer;
}

}  // namespace

extern const Rule kLowUtilizationRule;
const Rule kLowUtilizationRule = {
    "low-utilization",
    "The GPUs compute a few percent of what they can",
    "the job's own lines with its model FLOPs utilization (MFU)",
    "Every figure of utilization that the job prints is below 5 %. Usual reasons: so little work per step that "
    "launches "
    "and communication take longer than the computation (a small batch, short sequences, a small model on many ranks), "
    "communication over a slow network, a loader that does not keep up, eager code with many small kernels.",
    "The first steps compile kernels and fill caches and are always low; one higher figure later clears this. A "
    "program that counts too few FLOPs (a wrong peak, LoRA, a mixture of experts) prints too low a figure as well.",
    {"Give a rank more work per step: a larger batch, packed sequences, fewer ranks or less parallelism per model; "
     "check whether the figure rises in proportion.",
     "Find out where the time goes: traces of a few steps (tacet profile) show computation, communication and idle "
     "time.",
     "Measure the network by itself with nccl-tests, and compare with one node: if one node is far better, the path "
     "between nodes is what is slow."},
    {"Note the utilization of a known good run per model and number of nodes, and compare."},
    JudgeLowUtilization};

}  // namespace tacet
