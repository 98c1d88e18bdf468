// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/mismatch_finding.h"

namespace tacet {

static RuleAnswer JudgeCollectiveMismatchRoot(const Case& facts) {
  return JudgeMismatch(facts, CallAspect::root, "collective-mismatch-root");
}

extern const Rule kCollectiveMismatchRootRule;
const Rule kCollectiveMismatchRootRule = {
    "collective-mismatch-root",
    "Ranks name different roots in one rooted collective",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of at least two members",
    "Ranks disagree about which rank broadcasts, reduces or gathers. Data comes from the wrong place, or two sides "
    "wait for each other.",
    "A different operation at the same position is a separate cause. Group ranks and global ranks are often mixed up: "
    "torch.distributed wants the global rank as src/dst, NCCL logs show the group rank.",
    {"Compare how the two call sites compute the root (src=, dst=): group rank against global rank?",
     "Use torch.distributed.get_global_rank(group, group_rank) where a group is involved."},
    {"Keep the root in one named constant per group."},
    JudgeCollectiveMismatchRoot};

}  // namespace tacet
