// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "analysis/printed/replica_values.h"
#include "analysis/printed/training_trend.h"
#include "rules/findings/refusal_finding.h"
#include "rules/rule.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/message_words.h"
#include "rules/words/training_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string FigureWords(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string SinceWords(int64_t step) { return step >= 0 ? " since step " + std::to_string(step) : ""; }

// The scale cannot fall any more, and steps are skipped all the same.
Finding FloorFinding(const LossScaleDrop& scale) {
  Finding finding;
  finding.confidence = Confidence::likely;
  finding.headline = "The loss scale is at its minimum (" + FigureWords(scale.to) + ") and the gradients overflow in " +
                     std::to_string(scale.at_floor) + " steps in a row" +
                     (scale.last_step >= 0 ? " (up to step " + std::to_string(scale.last_step) + ")" : "") +
                     ": every one of them is skipped, so nothing is learned";
  finding.fix = {
      "Use bfloat16, which needs no loss scale, or float32 for the part that overflows; a lower scale would not help: "
      "the gradients, or the loss itself, are not finite before they are scaled.",
      "Find what is not finite: print the loss of each step, and run a few steps with "
      "torch.autograd.set_detect_anomaly(True). Skipped steps leave the weights as they are: if they hold NaN already, "
      "go back to a checkpoint from before the first skipped step."};
  finding.evidence.push_back({scale.last, "loss scale stays at " + FigureWords(scale.to), "the last skipped step"});
  if (scale.first.offset != scale.last.offset)
    finding.evidence.push_back({scale.first, "loss scale " + FigureWords(scale.from), "the first of them"});
  return finding;
}

// Steps went well before the first that was skipped: they, or a checkpoint, are in the text.
bool TrainedBefore(const Incident& incident, const LossScaleDrop& scale) {
  const auto before = [&](const SourceRef& source) {
    return source.file == scale.first.file && source.line > 0 && source.line < scale.first.line;
  };
  return std::any_of(incident.events.begin(), incident.events.end(),
                     [&](const Event& event) { return event.kind == EventKind::progress && before(event.source); }) ||
         std::any_of(incident.outlines.begin(), incident.outlines.end(),
                     [&](const LogOutline& outline) { return before(outline.saved.source); });
}

Finding ScaleFinding(const Incident& incident, const TrainingRecord& record) {
  const LossScaleDrop& scale = record.scale;
  if (scale.at_floor > 0) return FloorFinding(scale);
  Finding finding;
  finding.confidence = scale.values_before > 0 ? Confidence::certain : Confidence::likely;
  const std::string fell = "the loss scale fell " + std::to_string(scale.drops) + " times in a row, from " +
                           FigureWords(scale.from) + " to " + FigureWords(scale.to);
  const bool trained = scale.first_step < 0 && TrainedBefore(incident, scale);
  finding.headline = trained ? "The gradients overflow in steps that follow good ones: " + fell +
                                   ", and each of these steps was skipped"
                             : "No step has produced finite gradients" + SinceWords(scale.first_step) + ": " + fell +
                                   ", and every one of these steps was skipped";
  finding.fix = {
      trained ? "Compare the loss behind the skipped steps with the loss before them: skipped steps leave the weights "
                "as they are, so a loss that is higher comes from the steps before. Continue from the last checkpoint "
                "from before the first skipped step, with a lower learning rate, with gradient clipping, or in "
                "bfloat16, which needs no loss scale."
              : "The steps were skipped, so the weights are unchanged. If the job still runs, stop it; continue from "
                "the last checkpoint with a lower learning rate, with gradient clipping, or in bfloat16, which needs "
                "no loss scale.",
      "Find what overflows: torch.autograd.set_detect_anomaly(True) for a few steps; compare the ranks: if one alone "
      "has "
      "it, suspect its data or its GPU."};
  finding.evidence.push_back({scale.last, "loss scale reduced to " + FigureWords(scale.to), "the last of the drops"});
  finding.evidence.push_back({scale.first, "loss scale " + FigureWords(scale.from), "the first of them"});
  return finding;
}

Finding ValueFinding(const NonFiniteTraining& found) {
  const TrainingValue& value = *found.value;
  const std::string& name = found.name;
  Finding finding;
  finding.confidence = value.run >= 3   ? Confidence::certain
                       : value.run == 2 ? Confidence::likely
                                        : Confidence::possible;
  const std::string word = value.word == "nan" ? "NaN" : value.word;
  const bool lasts = found.processes <= 1 && value.run > 1 && value.run < value.lines && value.run_step >= 0;
  const bool of_program = name != "loss" && name != "gradient norm" && name.find(' ') == std::string::npos;
  const bool told_apart =
      of_program && std::any_of(name.begin(), name.end(), [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
  finding.headline =
      (told_apart ? name : (of_program ? "The value of " : "The ") + name) + (lasts ? " has been " : " is ") + word;
  if (found.processes > 1) {
    // The norm is one number for all ranks: whichever had it first, all print it.
    finding.confidence = Confidence::possible;
    finding.headline += " on " + std::to_string(found.processes) + " processes" +
                        (name == "loss" ? "; these lines do not show which rank had it first"
                                        : ": the norm is one number for all ranks, so these lines do not show which "
                                          "rank had it first");
    finding.fix = {
        "Find the rank and the tensor: check the local gradients of every rank before they are reduced "
        "(torch.isfinite), or set TORCH_NCCL_NAN_CHECK=1, which stops the rank that sends a NaN.",
        "Check whether these steps are skipped (then the weights are unharmed) and how many there are; go back to the "
        "last checkpoint before the first one otherwise.",
        "If it only happens with more nodes: compare the seed, the data and the batch size per rank with the run that "
        "works; a rank without a sample divides by zero."};
  } else if (value.lines == 1) {
    finding.headline += value.run_step >= 0
                            ? " at step " + std::to_string(value.run_step) + ", in the only line that shows it"
                            : " in the only line that shows it";
  } else if (value.run == value.lines)
    finding.headline += value.run_step >= 0
                            ? " in all " + std::to_string(value.lines) + " lines that show it, already at step " +
                                  std::to_string(value.run_step) + ", the first one shown"
                            : " in all " + std::to_string(value.lines) + " lines that show it";
  else if (value.run == 1)
    finding.headline +=
        " in the last line" + (value.run_step >= 0 ? " (step " + std::to_string(value.run_step) + ")" : "");
  else
    finding.headline +=
        (value.run_step >= 0 ? SinceWords(value.run_step) : " up to the end of the text") + " (" +
        std::to_string(value.run) + " lines); before that it was " + FigureWords(value.last) +
        (value.finite_step >= 0 && value.finite_step != value.run_step ? " at step " + std::to_string(value.finite_step)
                                                                       : "");
  if (found.others > 0)
    finding.headline += "; " + std::to_string(found.others) +
                        (found.others == 1 ? " other figure is" : " other figures are") + " not finite either";
  finding.evidence.push_back({value.run_source, name + " " + value.word, "the first line with such a value"});
  if (found.last.line > 0 && found.last.offset != value.run_source.offset)
    finding.evidence.push_back({found.last, "", "the last progress line"});
  return finding;
}

// The next all-reduce carries it from one rank into all others.
void NameTheFirst(const FirstNonFinite& first, Finding& finding) {
  const Rank rank = first.rank;
  const std::string others =
      first.finite == 1 ? "the other rank" : "the other " + std::to_string(first.finite) + " ranks";
  finding.ranks = {rank};
  finding.headline = RankWords({rank}) + " had a loss of " + (first.word == "nan" ? "NaN" : first.word) +
                     " first, at " + first.at + ", when the loss of " + others +
                     " was still finite; the next reduction of the gradients carried it "
                     "to all ranks";
  if (!finding.evidence.empty()) finding.evidence.front() = {first.source, "", "the first such value"};
  finding.fix = {
      "Look at what " + RankWords({rank}) +
          " had in that step and the others had not: its samples (an empty batch, a "
          "label out of range, a division by the number of tokens), or its GPU (nvidia-smi -q -d ECC, dmesg for Xid).",
      "Go back to the last checkpoint before that step: all later ones contain it.",
      "Check the loss and the gradients of every rank before they are reduced (torch.isfinite, or "
      "TORCH_NCCL_NAN_CHECK=1), and skip such a step on all ranks together."};
}

// Who says that it stops because of it. An exception is told as such, whatever it speaks of.
std::vector<const Event*> FindStops(const Case& facts) {
  std::vector<const Event*> stops;
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.exception && SaysThatItStops(*life.exception)) stops.push_back(life.exception);
  if (!stops.empty()) return stops;
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.exception || life.cuda_oom || life.host_memory || life.gpu_error)
      return {};  // they ended of something else
  for (const Event& event : facts.incident.events) {
    const bool stop = event.kind == EventKind::exception && !event.rank.known() && !IsConsequence(event);
    if (stop && !SaysThatItStops(event)) return {};
    if (stop && stops.empty()) stops.push_back(&event);
  }
  return stops;
}

// Megatron ran the step again: what came of it says more than the value itself. The last such line counts.
void AddWhatRepeated(const Case& facts, const Event& first, Finding& finding) {
  const Event* repeated = nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::exception && event.rank == first.rank && IsOfARepeatedStep(event)) repeated = &event;
  if (!repeated) return;
  finding.headline += "; " + RefusalWords(*repeated);
  finding.fix = RefusalSteps(*repeated);
  if (repeated != &first) finding.evidence.push_back(CiteEvent(*repeated, "what came of running the step again"));
}

// The program says itself why it ends: nothing else has to be looked for.
bool JudgeStop(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.outcome.ended_in_order) return false;
  const std::vector<const Event*> stops = FindStops(facts);
  if (stops.empty()) return false;
  const Event& first = *stops.front();
  Finding finding;
  finding.cause = "training-not-finite";
  finding.status = Status::crash;
  finding.severity = Severity::critical;
  finding.confidence =
      first.rank.known() && !first.Means(Meaning::owner_inferred) ? Confidence::certain : Confidence::likely;
  for (const Event* stop : stops)
    // The launcher's list names whoever ended first, and all of them may have stopped for it.
    if (stop->rank.known() && !stop->Means(Meaning::owner_inferred)) finding.ranks.push_back(stop->rank);
  const std::string who = finding.ranks.empty() ? "the program" : RankWords(finding.ranks);
  const std::string message = MessageWords(first.text);
  finding.headline =
      who + " stopped because a loss or a gradient is NaN or infinite" + (message.empty() ? "" : ": " + message);
  for (const Event* stop : stops) {
    if (finding.evidence.size() == 3) break;
    finding.evidence.push_back(CiteEvent(*stop, "the program's own reason to stop"));
  }
  finding.explanation =
      "The program checks its loss and its gradients, and stopped before a NaN got into the weights. Usual reasons: a "
      "learning rate that is too high, float16 where bfloat16 is needed, a bad sample, a division by zero or a "
      "logarithm of zero, damaged data from a GPU or a link.";
  finding.fix = {
      "Go back to the last checkpoint, and lower the learning rate or lengthen its warm-up; clip gradients; with fp16 "
      "look at the loss scale, or use bf16.",
      "Look at the batch in which it happens: empty targets, zero denominators, log of zero. "
      "torch.autograd.set_detect_anomaly(True) shows the operation."};
  if (finding.ranks.size() == 1)
    finding.fix.push_back("Only " + who +
                          " reports it: compare its result for the same batch with another GPU's before trusting that "
                          "GPU.");
  AddWhatRepeated(facts, first, finding);
  for (const Rank rank : facts.standstill.waiters)
    if (std::find(finding.ranks.begin(), finding.ranks.end(), rank) == finding.ranks.end())
      finding.affected_ranks.push_back(rank);
  answer.findings.push_back(std::move(finding));
  return true;
}

// Nobody but whoever pasted the text tells of it, and nothing else is wrong.
void JudgeTold(const Case& facts, RuleAnswer& answer) {
  const Event* told = FindToldWords(facts.incident, EventKind::told_not_finite);
  if (!told || facts.analyses.end.kind != JobEnding::open) return;
  Finding finding;
  finding.cause = "training-not-finite";
  finding.status = Status::corrupt;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::possible;
  finding.headline =
      "The text around the log says that the loss or the gradients are NaN or infinite; no log line shows since "
      "when, or on which rank";
  // One value that is not finite proves nothing by itself; here it shows since when.
  for (const TrainingRecord& record : facts.incident.training)
    for (const auto& [value, name] : {std::pair{&record.loss, "loss"}, std::pair{&record.gradient, "gradient norm"}})
      if (value->run > 0 && finding.evidence.empty()) {
        finding = ValueFinding({&record, value, name, 1, record.source});
        finding.cause = "training-not-finite";
        finding.status = Status::corrupt;
        finding.severity = Severity::warning;
        finding.confidence = Confidence::likely;
        finding.headline += "; the text around the log says that this persists";
      }
  finding.evidence.push_back(CiteEvent(*told, "said in the text around the log"));
  answer.open.push_back({"Since which step, and on which rank first?",
                         "the lines with loss and gradient norm of every rank, from the last good step on"});
  answer.findings.push_back(std::move(finding));
}

RuleAnswer JudgeTrainingNotFinite(const Case& facts) {
  RuleAnswer answer;
  if (JudgeStop(facts, answer)) return answer;
  const auto found = FindNonFiniteTraining(facts.incident);
  if (!found) {
    JudgeTold(facts, answer);
    return answer;
  }
  Finding finding = found->value ? ValueFinding(*found) : ScaleFinding(facts.incident, *found->record);
  if (const auto first = FindFirstNonFinite(facts.incident); first && found->value) NameTheFirst(*first, finding);
  finding.cause = "training-not-finite";
  finding.status = Status::corrupt;
  // A job that ended or stands still has another fault, which this may or may not have to do with.
  const JobEnding end = facts.analyses.end.kind;
  finding.severity = end == JobEnding::crashed || end == JobEnding::hung ? Severity::warning : Severity::critical;
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kTrainingNotFiniteRule;
const Rule kTrainingNotFiniteRule = {
    "training-not-finite",
    "The loss or the gradients are NaN or infinite",
    "the job's own progress lines with loss, gradient norm or loss scale, or the error with which the program stops "
    "for it",
    "The job runs on, but what it computes is lost: a NaN in the loss or in the gradients gets into every weight with "
    "the next update. Usual reasons: a learning rate that is too high, float16 where bfloat16 is needed, a bad sample, "
    "a division by zero or a logarithm of zero in the model or the loss, damaged data from a GPU or a link.",
    "One NaN or infinite gradient norm that finite values follow, especially in the first steps, is mixed precision "
    "searching for its loss scale: it skips those steps. The same is true of a loss scale that falls from 65536 to a "
    "few thousand at the start.",
    {"Stop the job and go back to the last checkpoint before the first such value; later ones contain it.",
     "Find where it comes from: torch.autograd.set_detect_anomaly(True) for a few steps, or check loss and gradients "
     "after "
     "each backward pass. Compare the ranks: if one alone has it first, suspect its data or its GPU.",
     "Lower the learning rate, clip gradients, use bfloat16 instead of float16; skip the samples of that step and see "
     "if it recurs."},
    {"End the job, or skip the update, when the loss or the gradient norm is not finite.",
     "Log loss, gradient norm and skipped steps for every step."},
    JudgeTrainingNotFinite};

}  // namespace tacet
