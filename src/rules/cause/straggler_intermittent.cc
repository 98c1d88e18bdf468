// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/shifted_wait_finding.h"
#include "rules/findings/straggler_finding.h"

namespace tacet {

static bool IsStragglerIntermittent(const Straggler& straggler) {
  return straggler.pattern == StragglerPattern::intermittent;
}

static RuleAnswer JudgeStragglerIntermittent(const Case& facts) {
  RuleAnswer answer = JudgeStragglers(facts, IsStragglerIntermittent, "straggler-intermittent",
                                      "it stalls now and then", "they stall now and then");
  if (answer.findings.empty()) TellPrintedStraggler(facts, "straggler-intermittent", answer);
  if (answer.findings.empty()) TellShiftedWait(facts, "straggler-intermittent", answer);
  return answer;
}

extern const Rule kStragglerIntermittentRule;
const Rule kStragglerIntermittentRule = {
    "straggler-intermittent",
    "A rank stalls now and then",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less",
    "Most steps take equally long, but now and then one rank is late by a large part of a step: garbage collection, "
    "checkpointing, data loader refills, a throttling or retrying device.",
    "A persistent straggler is late in its ordinary step too. If a different rank is late each time, the input is "
    "uneven.",
    {"Look at the late steps alone: what did the rank do just before (garbage collection, saving, logging, cache "
     "flush)?",
     "Python's garbage collection: gc.disable(), and gc.collect() in the same step on all ranks.",
     "Are the late steps evenly spaced? Then look for what the program does every N steps: logging, saving, "
     "evaluation."},
    {"Let all ranks do periodic work in the same step."},
    JudgeStragglerIntermittent};

}  // namespace tacet
