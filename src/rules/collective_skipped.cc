// SPDX-License-Identifier: Apache-2.0
#include "analysis/left_replay.h"
#include "rules/hang_finding.h"
#include "rules/order_finding.h"
#include "rules/output_finding.h"
#include "rules/sequence_report.h"
#include "rules/watchdog_mismatch.h"
#include "rules/words.h"

namespace tacet {

static void JudgeReplays(const Case& facts, RuleAnswer& answer) {
  if (!facts.analyses.outcome.hangs()) return;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    const auto left = FindLeftReplay(facts.incident, source.groups);
    if (!left) continue;
    Finding finding = HangFinding("collective-skipped", left->rank, *left->replay, source.waits);
    finding.headline = RankWords({left->rank}) + " skipped a replay of a CUDA graph: it waits in " +
                       OperationWords(facts.incident, *left->waits_in) + ", while its peers wait in " +
                       OperationWords(facts.incident, *left->replay);
    finding.evidence.push_back(CiteCall(facts.incident, *left->stream, *left->replay, "a peer waits in this replay"));
    finding.evidence.push_back(CiteCall(
        facts.incident, *left->own_stream, *left->waits_in,
        RankWords({left->rank}) + " continued with this after " + std::to_string(left->own_replays) + " replays"));
    answer.findings.push_back(std::move(finding));
    return;
  }
}

static RuleAnswer JudgeSkipped(const Case& facts) {
  RuleAnswer answer;
  if (auto finding =
          OrderFinding(facts, Divergence::Kind::skipped, CallDifference::Reading::skipped, "collective-skipped"))
    answer.findings.push_back(std::move(*finding));
  else
    JudgeReplays(facts, answer);
  if (answer.findings.empty()) JudgeSequenceReports(facts, true, "collective-skipped", answer);
  if (answer.findings.empty()) JudgeWatchdogSkip(facts, "collective-skipped", answer);
  if (answer.findings.empty())
    if (auto passed = PassedByOutput(facts)) answer.findings.push_back(std::move(*passed));
  return answer;
}

extern const Rule kCollectiveSkippedRule;
const Rule kCollectiveSkippedRule = {
    "collective-skipped",
    "A rank skipped a collective",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of ranks that run "
    "the same code (the same pipeline and tensor-parallel position); or what the "
    "watchdogs "
    "of all ranks print when they time out",
    "One rank did not issue a collective that its peers issued, and continued. Its later calls pair up with the wrong "
    "calls of its peers; if they look alike, nothing stalls until much later, in an operation that is not the one "
    "that was skipped.",
    "A rank that is stuck on the host has issued nothing since. A rank that issued an extra call is behind its peers, "
    "not "
    "ahead. If one call differs and all later ones agree, it is a mismatch.",
    {"Find the call in the program (a flight record names its line): which condition made this rank skip the call?",
     "Typical causes: `if loss.isnan(): continue`, uneven data (one rank's loader ends earlier), a callback that only "
     "some "
     "ranks run.",
     "Decide together: all_reduce the condition, or use torch's Join context manager for uneven inputs."},
    {"Make sure that every rank reaches every collective.",
     "Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL after changes to the loop."},
    JudgeSkipped};

}  // namespace tacet
