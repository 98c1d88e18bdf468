// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/mismatch_finding.h"

namespace tacet {

static RuleAnswer JudgeCollectiveMismatchDtype(const Case& facts) {
  return JudgeMismatch(facts, CallAspect::type, "collective-mismatch-dtype");
}

extern const Rule kCollectiveMismatchDtypeRule;
const Rule kCollectiveMismatchDtypeRule = {
    "collective-mismatch-dtype",
    "Ranks pass different data types to one collective",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of at least two members",
    "At one place in a group's sequence a rank passed a different data type. With equal byte counts the collective "
    "completes, with garbage in the result; otherwise it stalls, often many collectives later.",
    "A different element count is a separate cause. Mixed precision is fine as long as all ranks use the same type at "
    "the same place.",
    {"Find the call in the program (a flight record names its line): autocast on one rank only, a different default "
     "dtype, a parameter loaded in a different precision?",
     "Discard results computed after this point."},
    {"Assert equal dtypes across ranks once at start.",
     "Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL after changes."},
    JudgeCollectiveMismatchDtype};

}  // namespace tacet
