// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/mismatch_finding.h"

namespace tacet {

static RuleAnswer JudgeCollectiveMismatchReduction(const Case& facts) {
  return JudgeMismatch(facts, CallAspect::reduction, "collective-mismatch-reduction");
}

extern const Rule kCollectiveMismatchReductionRule;
const Rule kCollectiveMismatchReductionRule = {
    "collective-mismatch-reduction",
    "Ranks use different reductions in one collective",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of at least two members",
    "One rank used a different reduction (sum, max, average ...) from its peers. Nothing hangs and no error is raised; "
    "the results are mixed and wrong. Only NCCL's log with the COLL subsystem (or a black box) "
    "records the reduction: flight records do not.",
    "All other mismatches can stall the job; this one never does.",
    {"Find the call in the program (a flight record names its line): which ReduceOp does this rank pass, and why?",
     "Discard all results since that step."},
    {"Write the reduction as a constant at the call, not as a setting.",
     "Compare a checksum of the gradients across ranks now and then."},
    JudgeCollectiveMismatchReduction};

}  // namespace tacet
