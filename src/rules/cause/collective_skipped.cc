// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/calls/left_replay.h"
#include "analysis/timeouts/timeout_census.h"
#include "rules/findings/guarded_call.h"
#include "rules/findings/hang_finding.h"
#include "rules/findings/lone_caller.h"
#include "rules/findings/order_finding.h"
#include "rules/findings/output_finding.h"
#include "rules/findings/sequence_report.h"
#include "rules/findings/watchdog_mismatch.h"
#include "rules/words/words.h"

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

// PyTorch leaves a call out on a rank that is no member of the group, and warns. That is harmless where a program calls
// for all groups on all ranks; where members then wait for the same kind of call, these ranks most likely took the
// wrong group.
static void JudgeOutsiders(const Case& facts, RuleAnswer& answer) {
  if (!facts.analyses.sources.empty()) return;
  const TimeoutCensus census = CountTimeouts(facts.incident);
  std::vector<Rank> ranks, waiters;
  const OwnLine* first = nullptr;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const OwnLine& line : outline.outsiders) {
      if (std::find(ranks.begin(), ranks.end(), Rank{line.rank}) == ranks.end()) ranks.push_back(Rank{line.rank});
      if (!first) first = &line;
    }
  // They wait in another group than all others do.
  if (ranks.empty() || census.calls.size() < 2) return;
  for (const TimedOutCall& call : census.calls) {
    const bool theirs = std::any_of(call.ranks.begin(), call.ranks.end(), [&](Rank rank) {
      return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    });
    const bool only = std::all_of(call.ranks.begin(), call.ranks.end(), [&](Rank rank) {
      return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    });
    if (theirs != only) return;
    if (!theirs) waiters.insert(waiters.end(), call.ranks.begin(), call.ranks.end());
  }
  if (waiters.empty()) return;
  std::sort(ranks.begin(), ranks.end());
  std::sort(waiters.begin(), waiters.end());
  Finding finding;
  finding.cause = "collective-skipped";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = ranks;
  finding.affected_ranks = waiters;
  finding.headline = RankWords(ranks) + " called a collective on a group of which " +
                     (ranks.size() == 1 ? "it is not a member" : "they are not members") +
                     ", so PyTorch skipped it with a warning; " + RankWords(waiters) +
                     (waiters.size() == 1 ? " waits" : " wait") + " in such a call until the timeout";
  finding.evidence.push_back({first->source, first->text, "the call was skipped on this rank"});
  for (const TimedOutCall& call : census.calls)
    if (finding.evidence.size() < 4 && call.first)
      finding.evidence.push_back(CiteEvent(*call.first, RankWords(call.ranks) + " waited here"));
  finding.fix = {"Look at how " + RankWords(ranks) + (ranks.size() == 1 ? " chooses" : " choose") +
                 " the group of that call: the index of the group is most likely computed differently from when the "
                 "groups were created (rank % n instead of rank // n)."};
  answer.findings.push_back(std::move(finding));
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
  if (answer.findings.empty()) JudgeOutsiders(facts, answer);
  if (answer.findings.empty())
    if (auto guarded = GuardedCallFinding(facts)) answer.findings.push_back(std::move(*guarded));
  if (answer.findings.empty())
    if (auto went_on = WentOnFinding(facts)) answer.findings.push_back(std::move(*went_on));
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
