// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "analysis/printed/training_trend.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "199 s per step", "41 samples per second"; "199 s", where a line tells the time of all steps since the one before
std::string PaceWords(const std::string& unit, const StepTime& time) {
  char text[64];
  if (unit == "report") {
    std::snprintf(text, sizeof text, "%.4g s per progress line", time.seconds);
    return text;
  }
  if (unit == "step") {
    std::snprintf(text, sizeof text, time.seconds < 1 ? "%.3g ms per step" : "%.4g s per step",
                  time.seconds < 1 ? time.seconds * 1e3 : time.seconds);
    return text;
  }
  std::snprintf(text, sizeof text, "%.4g %ss per second", 1 / time.seconds, unit.c_str());
  return text;
}

// "; every 100 steps add 12 ms to a step"; of rates, which are no times, in percent. Of a record of fewer steps it is
// said of one step: what 100 would add was not seen.
std::string RiseWords(const SlowingSteps& found) {
  if (!found.grows || found.per_100_steps <= 0 || found.unit == "report") return "";
  char text[96];
  const bool few = found.after.step - found.before.step < 100;
  const double more = few ? found.per_100_steps / 100 : found.per_100_steps;
  if (found.unit != "step")
    std::snprintf(text, sizeof text, "; a %s takes %.2g %% longer after %s", found.unit.c_str(),
                  100 * more / found.before.seconds, few ? "each step" : "every 100 steps");
  else if (few)
    std::snprintf(text, sizeof text, "; about %.2g %s more with each step", more < 1 ? more * 1e3 : more,
                  more < 1 ? "ms" : "s");
  else
    std::snprintf(text, sizeof text, "; every 100 steps add %.3g %s to a step", more < 1 ? more * 1e3 : more,
                  more < 1 ? "ms" : "s");
  return text;
}

std::string AtStep(const StepTime& time) { return time.step >= 0 ? " at step " + std::to_string(time.step) : ""; }

// Steps that the job reaches again, and that are slow: shortly before the last one that was seen.
std::string StepsToProfile(int64_t last) {
  constexpr int64_t kSteps = 5;
  if (last <= kSteps) return "100-110";
  return std::to_string(last - kSteps - 1) + "-" + std::to_string(last - 1);
}

RuleAnswer JudgeStepsSlowDown(const Case& facts) {
  RuleAnswer answer;
  const auto found = FindSlowingSteps(facts.incident);
  if (!found) return answer;
  constexpr double kMild = 1.2;
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.1f", found->factor());
  Finding finding;
  finding.cause = "steps-slow-down";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = found->grows && (found->count < facts.incident.patience.few_steps || found->factor() < kMild)
                           ? Confidence::possible
                           : Confidence::likely;
  finding.headline =
      std::string(found->grows ? "Steps take longer and longer: " : "Steps became slower and stay slow: ") +
      PaceWords(found->unit, found->before) + AtStep(found->before) + ", " + PaceWords(found->unit, found->after) +
      AtStep(found->after) + ", " + factor + " times as long" + RiseWords(*found);
  const bool traced = found->rank.known();
  finding.evidence.push_back(
      {found->after.source, PaceWords(found->unit, found->after),
       traced ? "the pace at the end of the trace of " + RankWords({found->rank}) : "the pace at the end"});
  // Progress bars that overwrite themselves are one line: it is cited once.
  if (traced || found->before.source.file != found->after.source.file ||
      found->before.source.line != found->after.source.line)
    finding.evidence.push_back({found->before.source, PaceWords(found->unit, found->before),
                                traced ? "the pace at its beginning" : "the pace before that"});
  if (found->grows)
    finding.fix = {
        "Look for what grows with each step: a list that keeps tensors or their graphs, a cache, hooks that are "
        "registered again, a log file that is read in every step. py-spy dump --pid PID in a late step shows where the "
        "time goes.",
        "Plot the memory of the processes over time: memory that rises steadily is a leak.",
        "Check whether it is one rank or all: traces of a few slow steps (tacet profile names the rank that makes the "
        "others "
        "wait)."};
  answer.findings.push_back(std::move(finding));
  answer.open.push_back(
      {"What takes the time?", "traces of a few slow steps from two or more ranks (tacet run --profile-steps " +
                                   StepsToProfile(found->after.step) +
                                   "), and memory and CPU time of the processes over time"});
  return answer;
}

}  // namespace

extern const Rule kStepsSlowDownRule;
const Rule kStepsSlowDownRule = {
    "steps-slow-down",
    "Steps become slower while the job runs",
    "the job's own progress lines with times or rates, or a trace of 16 steps or more",
    "Steps took less time earlier in this job. If the step time grows steadily, something accumulates: a list of "
    "tensors with their graphs, a cache, host memory that swaps, a log that is read again and again. If it became "
    "slower at one moment, something changed there: clocks of a GPU (heat, power), another job on the host or the "
    "network, "
    "storage that no longer keeps up, a link that fell back to a lower speed.",
    "A slow step next to an evaluation, a checkpoint or a profiler does not count; the times before and after decide. "
    "Longer sequences or larger batches later in the run make steps longer too.",
    {"Check whether it is one rank or all: traces of a few slow steps (tacet profile names the rank that makes the "
     "others wait).",
     "Plot the memory of the processes over time: memory that rises steadily is a leak.",
     "Look at clocks, temperature and throttling (nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE), at the storage and "
     "at jobs that started at that time."},
    {"Log the time of every step and alert on it; keep no tensors that need gradients across steps (use .item() or "
     ".detach())."},
    JudgeStepsSlowDown};

}  // namespace tacet
