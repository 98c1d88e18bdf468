// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/straggler_finding.h"

namespace tacet {

static bool IsStragglerStage(const Straggler& straggler) {
  return straggler.origin == StragglerOrigin::stage && straggler.pattern == StragglerPattern::persistent;
}

static RuleAnswer JudgeStragglerStage(const Case& facts) {
  RuleAnswer answer =
      JudgeStragglers(facts, IsStragglerStage, "straggler-stage", "its pipeline stage has more work than the others",
                      "their pipeline stage has more work than the others");
  if (answer.findings.empty()) TellPrintedStraggler(facts, "straggler-stage", answer);
  return answer;
}

extern const Rule kStragglerStageRule;
const Rule kStragglerStageRule = {
    "straggler-stage",
    "A pipeline stage has more work than the others",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less",
    "The named ranks form a pipeline stage whose forward and backward passes take longer. The other stages wait for "
    "it in every microbatch, and the whole pipeline runs at its pace.",
    "A single slow rank among equals is a compute straggler. The bubble of a balanced pipeline is not a fault.",
    {"Move layers from the named stage to others until the stage times are equal; count embedding and loss as work "
     "too.",
     "More microbatches make the bubble smaller; the imbalance remains."},
    {"Balance stages by measured time, not by number of layers."},
    JudgeStragglerStage};

}  // namespace tacet
