// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <utility>

#include "rules/findings/straggler_finding.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/words.h"

namespace tacet {

static bool IsStragglerData(const Straggler& straggler) {
  return (straggler.origin == StragglerOrigin::data_loading || straggler.origin == StragglerOrigin::uneven_input) &&
         straggler.pattern == StragglerPattern::persistent;
}

extern const Rule kStragglerDataRule;

// The text says both that the job is slow and that the ranks do not get input of one size: all wait for the largest.
static std::optional<Finding> ToldUnevenFinding(const Case& facts) {
  const Event* slow = FindToldWords(facts.incident, EventKind::told_slow);
  const Event* uneven = FindToldWords(facts.incident, EventKind::told_uneven);
  if (!slow || !uneven || facts.analyses.end.kind == JobEnding::hung || facts.analyses.end.kind == JobEnding::crashed)
    return std::nullopt;
  Finding finding;
  finding.cause = "straggler-data";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::possible;
  finding.headline =
      "the job is slow, and the input of its ranks differs in size, as the text says: in each step all ranks wait for "
      "the one with the largest input";
  finding.evidence.push_back(CiteEvent(*uneven, "said in the text around the log"));
  if (slow->source.line != uneven->source.line)
    finding.evidence.push_back(CiteEvent(*slow, "the text says that the job is slow"));
  finding.fix = {
      "Give all ranks input of one size in the same step: choose the size or the bucket of lengths from the step's "
      "number, so that it is the same on all ranks, or balance batches by tokens.",
      "Check it: run some steps with input of a fixed size. If the job then scales, the sizes are the reason.",
      "Otherwise record a few steps on all ranks with torch.profiler, and read the traces with tacet profile."};
  return finding;
}

static RuleAnswer JudgeStragglerData(const Case& facts) {
  RuleAnswer answer = JudgeStragglers(facts, IsStragglerData, "straggler-data", "its input is larger or arrives late",
                                      "their input is larger or arrives late");
  if (answer.findings.empty())
    if (auto told = ToldUnevenFinding(facts)) answer.findings.push_back(std::move(*told));
  return answer;
}

const Rule kStragglerDataRule = {
    "straggler-data",
    "Input is uneven or late",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less",
    "Ranks wait because batches differ in size (long sequences, ragged shapes), so a different rank is late each time, "
    "or because one rank's loader is late.",
    "A compute straggler is always the same rank, and its input is like that of the others.",
    {"Balance batches by tokens, not by samples; bucket sequences by length.",
     "A late loader: more workers, prefetch, faster storage for that host."},
    {"Log tokens per rank and step."},
    JudgeStragglerData};

}  // namespace tacet
