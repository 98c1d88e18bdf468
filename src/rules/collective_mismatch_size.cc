// SPDX-License-Identifier: Apache-2.0
#include "rules/mismatch_finding.h"

namespace tacet {

static RuleAnswer JudgeCollectiveMismatchSize(const Case& facts) {
  return JudgeMismatch(facts, CallAspect::size, "collective-mismatch-size");
}

extern const Rule kCollectiveMismatchSizeRule;
const Rule kCollectiveMismatchSizeRule = {
    "collective-mismatch-size",
    "Ranks pass different sizes to one collective",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of at least two members",
    "At one number of a group's order some rank passed another number of elements. NCCL does not check: the data is "
    "misplaced, later collectives shift, the job stalls much later or ends with wrong numbers.",
    "all_to_all with uneven splits and gathers of unequal shards are legal and not reported. A wrong data type of the "
    "same size is another cause.",
    {"Look at the cited call site: uneven last batch, padding, a parameter that exists on one rank only, another "
     "configuration file?",
     "Pad or drop the last batch (drop_last=True), or gather the sizes first.",
     "Discard results computed after this point: they may be wrong even if the job went on."},
    {"Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL after changes.",
     "Assert equal shapes across ranks once at start."},
    JudgeCollectiveMismatchSize};

}  // namespace tacet
