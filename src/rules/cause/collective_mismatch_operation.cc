// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/mismatch_finding.h"
#include "rules/findings/parted_finding.h"
#include "rules/findings/parted_stacks.h"
#include "rules/findings/told_stacks.h"

namespace tacet {

static RuleAnswer JudgeCollectiveMismatchOperation(const Case& facts) {
  RuleAnswer answer = JudgeMismatch(facts, CallAspect::operation, "collective-mismatch-operation");
  if (answer.findings.empty())
    if (auto parted = PartedFinding(facts, "collective-mismatch-operation"))
      answer.findings.push_back(std::move(*parted));
  if (answer.findings.empty())
    if (auto parted = PartedStacksFinding(facts)) answer.findings.push_back(std::move(*parted));
  if (answer.findings.empty())
    if (auto told = ToldStacksFinding(facts)) answer.findings.push_back(std::move(*told));
  return answer;
}

extern const Rule kCollectiveMismatchOperationRule;
const Rule kCollectiveMismatchOperationRule = {
    "collective-mismatch-operation",
    "Ranks issue different operations at the same position",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of at least two members",
    "At one place in a group's sequence a rank issued a different collective from its peers. NCCL does not compare "
    "calls: it "
    "may hang at once, run on for many collectives and stall much later, or never stall. The first difference is the "
    "cause, the stall its consequence.",
    "A skipped or extra call also shows different operations, but then the rank continues one collective ahead or "
    "behind, "
    "and that is reported instead. A timeout report names the stalled operation, which is usually a later one.",
    {"Find the call in the program (a flight record names its line): which condition makes this rank take the other "
     "branch?",
     "Decide such branches on values that are equal on all ranks (broadcast the condition first)."},
    {"Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL after changes to the training loop: PyTorch then compares "
     "every collective.",
     "Never call a collective under a condition that depends on local data."},
    JudgeCollectiveMismatchOperation};

}  // namespace tacet
