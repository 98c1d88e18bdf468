// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <utility>

#include "analysis/printed/runaway_loss.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string OddStep(int64_t step) { return step >= 0 ? " (step " + std::to_string(step) + ")" : ""; }

std::string ZeroWords(const OddValue& zero) {
  char before[48];
  std::snprintf(before, sizeof before, ", after %.6g in the report before", zero.before);
  return "the loss is exactly " + zero.word +
         (zero.lines == 1 ? " in the last report" : " in the last " + std::to_string(zero.lines) + " reports") +
         OddStep(zero.step) + before;
}

std::string RepeatWords(const OddValue& same) {
  return "the gradient norm is " + same.word + " in " + (same.lines == 2 ? "two" : std::to_string(same.lines)) +
         " reports in a row, identical to the last digit";
}

std::string Number(double value) {
  char digits[48];
  std::snprintf(digits, sizeof digits, "%.4g", value);
  return digits;
}

void JudgeRunawayLoss(const Case& facts, RuleAnswer& answer) {
  const auto found = FindRunawayLoss(facts.incident);
  if (!found) return;
  const FigureSeries& series = *found->series;
  const TrainingValue& value = series.value;
  Finding finding;
  finding.cause = "training-degenerate";
  finding.status = Status::corrupt;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.headline = "training diverges: " + series.name + " rose from " + Number(value.least) + " at its lowest to " +
                     Number(value.last) + " in the last line, and has not fallen back" +
                     (found->ranks > 1 ? " (" + std::to_string(found->ranks) + " ranks)" : "");
  finding.evidence.push_back({value.far_source, "", "from here on it is at least ten times its lowest value"});
  finding.evidence.push_back({series.last, "", "the last line that shows it"});
  finding.explanation =
      "A loss that grows by orders of magnitude and stays there will overflow to inf or NaN soon. The usual reasons "
      "are "
      "a learning rate that is too high, no warm-up, no clipping of gradients, or low precision.";
  finding.fix = {
      "Go back to a checkpoint from before the rise, and lower the learning rate or lengthen its warm-up.",
      "Clip the gradients (torch.nn.utils.clip_grad_norm_), and log their norm: does it rise before the loss "
      "does?",
      "If it rises on one rank first, look at the data and the GPU of that rank."};
  answer.findings.push_back(std::move(finding));
}

// Every answer got the reward 0, so no answer is better than another one, and nothing is learned.
struct NoReward {
  const FigureSeries *reward = nullptr, *spread = nullptr;
};
NoReward FindNoReward(const Incident& incident) {
  for (const LogOutline& outline : incident.outlines) {
    NoReward found;
    for (const FigureSeries& one : outline.series) {
      if (one.kind == FigureSeries::Kind::no_reward && one.value.run == 0) found.reward = &one;
      if (one.kind == FigureSeries::Kind::no_spread && one.value.run == 0) found.spread = &one;
    }
    if (found.reward && found.spread && found.reward->value.lines == found.spread->value.lines) return found;
  }
  return {};
}

Finding NoRewardFinding(const NoReward& found) {
  constexpr int64_t kFewReports = 3;
  const int64_t lines = found.reward->value.lines;
  Finding finding;
  finding.confidence = lines >= kFewReports ? Confidence::likely : Confidence::possible;
  finding.headline = "The reward is 0 for every answer, and so is its standard deviation, in " +
                     (lines == 1 ? std::string("the only report shown") : "all " + std::to_string(lines) + " reports") +
                     ": no answer is better than another, so nothing is learned";
  finding.evidence.push_back({found.spread->last, "reward 0, standard deviation 0", "the last of these reports"});
  finding.fix = {
      "Print a few answers next to the parts of their reward: does the reward function find the answer in the format "
      "that the model writes (tags, boxes, language)? Are answers cut at the length limit before they end?",
      "Check the prompt and its chat template against the ones of the model's supervised training, and that the "
      "checkpoint is the one that you intend to use.",
      "If the tasks are too hard: begin with easier ones, or with more answers per prompt."};
  return finding;
}

// No weight changes where every gradient is exactly 0. The loss of some methods is 0 all along, their gradients are
// not.
void JudgeZeroGradients(const Case& facts, RuleAnswer& answer) {
  constexpr int64_t kFewReports = 3;
  for (const TrainingRecord& record : facts.incident.training) {
    const TrainingValue& norm = record.gradient;
    if (norm.lines < kFewReports || norm.run > 0 || norm.first != 0 || norm.most != 0) continue;
    Finding finding;
    finding.cause = "training-degenerate";
    finding.status = Status::corrupt;
    finding.severity = Severity::warning;
    finding.confidence = Confidence::likely;
    finding.headline =
        "the gradient norm is exactly 0 in all " + std::to_string(norm.lines) + " reports, so nothing is learned";
    finding.evidence.push_back({record.source, "", "the last progress line"});
    finding.fix = {"Look at the labels of a batch: are all of them masked (-100), or cut off by the maximum length?",
                   "Check that the parameters to be trained require gradients and are passed to the optimizer, and "
                   "that the loss depends on them (detach, no_grad, frozen adapters).",
                   "Reinforcement learning: rewards that are equal within each group give no gradient."};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

RuleAnswer JudgeTrainingDegenerate(const Case& facts) {
  RuleAnswer answer;
  if (const NoReward none = FindNoReward(facts.incident); none.reward) {
    Finding finding = NoRewardFinding(none);
    finding.cause = "training-degenerate";
    finding.status = Status::corrupt;
    finding.severity = Severity::warning;
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  for (const TrainingRecord& record : facts.incident.training) {
    const OddValue &zero = record.zero_loss, &same = record.same_gradient;
    if (zero.lines == 0 && same.lines == 0) continue;
    Finding finding;
    finding.cause = "training-degenerate";
    finding.status = Status::corrupt;
    finding.severity = Severity::warning;
    // A loss of 0 may be right, two equal norms may be one report that was printed twice; both at once are neither.
    const bool both = zero.lines > 0 && same.lines > 0;
    finding.confidence = both || zero.lines > 2 || same.lines > 3 ? Confidence::likely : Confidence::possible;
    if (zero.lines > 0) {
      finding.headline = ZeroWords(zero);
      finding.evidence.push_back({zero.source, "loss " + zero.word, "the first of these reports"});
    }
    if (same.lines > 0) {
      finding.headline += (both ? "; " : "") + RepeatWords(same);
      finding.evidence.push_back({same.source, "gradient norm " + same.word, "the same norm as in the report before"});
    }
    answer.findings.push_back(std::move(finding));
    break;
  }
  if (answer.findings.empty()) JudgeZeroGradients(facts, answer);
  if (answer.findings.empty()) JudgeRunawayLoss(facts, answer);
  return answer;
}

}  // namespace

extern const Rule kTrainingDegenerateRule;
const Rule kTrainingDegenerateRule = {
    "training-degenerate",
    "The loss, the rewards or the gradient norm cannot be right",
    "the job's own progress lines with loss, gradient norm or reward",
    "A loss does not become exactly 0 from one report to the next, and two steps do not have the same gradient norm to "
    "the last digit. Usual reasons: all labels of the batch are masked, the loss is not filled in on the rank that "
    "prints it, gradients are not updated or not reduced, an overflow that is replaced by 0, damaged weights or data. "
    "A loss that grows by orders of magnitude and stays there diverges. In reinforcement learning, nothing is learned "
    "from rewards that are all 0: usually the reward function does not find the answers.",
    "A loss that is already small is rounded to 0; with some methods the loss is 0 from the first step. A norm that is "
    "clipped before it is printed is a round number. A peak in the loss that falls again is normal. None of these "
    "counts here.",
    {"Look at the batch and the labels of that step: are there tokens or samples that count?",
     "Print loss and gradient norm of every rank for a few steps: all ranks, or one?",
     "Compare the weights before and after a step; if they do not change, look at the optimizer and at the loss "
     "scale."},
    {"Log loss and gradient norm of every step, and alert when one is exactly 0 or does not change."},
    JudgeTrainingDegenerate};

}  // namespace tacet
