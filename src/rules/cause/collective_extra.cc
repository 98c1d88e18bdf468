// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/lone_caller.h"
#include "rules/findings/order_finding.h"
#include "rules/findings/sequence_report.h"

namespace tacet {

static RuleAnswer JudgeExtra(const Case& facts) {
  RuleAnswer answer;
  if (auto finding = OrderFinding(facts, Divergence::Kind::extra, CallDifference::Reading::extra, "collective-extra"))
    answer.findings.push_back(std::move(*finding));
  else
    JudgeSequenceReports(facts, false, "collective-extra", answer);
  if (answer.findings.empty())
    if (auto lone = LoneCallerFinding(facts)) answer.findings.push_back(std::move(*lone));
  return answer;
}

extern const Rule kCollectiveExtraRule;
const Rule kCollectiveExtraRule = {
    "collective-extra",
    "A rank issued collectives that its peers did not",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of ranks that run "
    "the same code (the same pipeline and tensor-parallel position)",
    "One rank issued a collective that its peers did not, once or in every step. It pairs up with their next one, and "
    "so on, until the counts "
    "no longer match: the stall appears much later, often in another group.",
    "A rank that skipped a call is ahead of its peers; one that issued an extra call is behind. Counts alone cannot "
    "show which it was; the order of calls across groups and the call sites of ranks that run the same code do.",
    {"Find the call in the program (a flight record names its line): why is this rank the only one that issues it "
     "(an evaluation, a metric, a retry, a logging hook)?",
     "Remove it, or let all members of the group issue it."},
    {"Keep collectives out of code that only some ranks run.",
     "Give all ranks the same number of batches (drop_last=True, DistributedSampler), or use torch's Join context "
     "manager.",
     "Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL after changes to the loop."},
    JudgeExtra};

}  // namespace tacet
