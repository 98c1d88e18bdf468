// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "rules/findings/output_finding.h"
#include "rules/findings/standstill_finding.h"
#include "rules/findings/store_wait_finding.h"
#include "rules/findings/told_stacks.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {

static std::string InsideWords(HostStage stage) {
  switch (stage) {
    case HostStage::in_group: return "between ncclGroupStart and ncclGroupEnd";
    case HostStage::in_group_end: return "inside ncclGroupEnd";
    default: return "inside the launch of NCCL's kernel";
  }
}

static constexpr std::string_view kDataOfSeveralRanks =
    "If they load data: check the storage and the worker processes of their hosts; DataLoader(timeout=...) turns the "
    "wait into an error.";
static constexpr std::string_view kOfSeveralRanks =
    "If only these ranks run the code (evaluation, logging, saving): let all ranks run it, or let the others wait for "
    "them at a barrier with a long enough timeout.";

extern const Rule kRankStuckOnHostRule;

// Gloo keeps no record of calls: that the others wait is told by the error with which they gave up.
static void CiteGlooTimeouts(const Case& facts, Finding& finding) {
  const Event* first = nullptr;
  std::vector<Rank> ranks;
  for (const Rank rank : finding.affected_ranks) {
    const RankLife* life = facts.analyses.life.Of(rank);
    if (!life || !life->consequence || !life->consequence->Means(Meaning::gloo_timeout)) continue;
    ranks.push_back(rank);
    if (!first) first = life->consequence;
  }
  if (first)
    finding.evidence.push_back(CiteEvent(*first, RankWords(ranks) + " waited for a peer until gloo timed out"));
}

static RuleAnswer JudgeStuckOnHost(const Case& facts) {
  RuleAnswer answer;
  auto finding = StandstillFinding(facts, StandstillKind::host, "rank-stuck-on-host");
  if (!finding) {
    if (auto told = FindingByOutput(facts)) {
      answer.findings.push_back(std::move(told->finding));
      if (told->open) answer.open.push_back(std::move(*told->open));
    } else if (auto awaited = AwaitedStackFinding(facts)) {
      answer.findings.push_back(std::move(*awaited));
    } else if (auto writer = AwaitedWriterFinding(facts)) {
      answer.findings.push_back(std::move(*writer));
    }
    return answer;
  }
  std::string where;
  bool by_stack = false, by_calls = false;
  const InFlight* inside = nullptr;
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != StandstillKind::host) continue;
    by_calls |= still.root != nullptr;
    if (still.inside) {
      inside = still.inside;
      finding->evidence.push_back({still.inside->source, InsideWords(still.inside->host),
                                   "the host of " + RankWords({still.rank}) + " called NCCL and did not return"});
    }
    if (!still.stack) continue;
    by_stack = true;
    if (where.empty()) where = still.stack->where;
    // The frame is the best evidence: it goes first.
    finding->evidence.insert(finding->evidence.begin(), CiteStack(facts.incident, *still.stack->thread,
                                                                  RankWords({still.rank}) + " is not in a collective"));
  }
  if (!by_stack || !by_calls || !facts.analyses.outcome.hangs()) finding->confidence = Confidence::likely;
  // The job was ended before a wait for something done for the first time could be told from one for ever.
  if (!by_stack && !facts.analyses.outcome.hangs()) finding->confidence = Confidence::possible;
  const bool one = finding->ranks.size() == 1;
  const std::string whom = one ? "it" : "them";
  finding->headline = RankWords(finding->ranks) + (finding->ranks.size() == 1 ? " is" : " are") + " stuck on the host" +
                      (where.empty() ? inside ? " " + InsideWords(inside->host) : "" : " in " + where) + " and " +
                      (finding->ranks.size() == 1 ? "has " : "have ") +
                      (inside && facts.standstill.operation
                           ? "not launched " + OperationWords(facts.incident, *facts.standstill.operation)
                           : OwedWords(facts, StandstillKind::host)) +
                      "; " + RankWords(finding->affected_ranks) +
                      (finding->affected_ranks.size() == 1 ? " waits for " : " wait for ") + whom;
  if (finding->affected_ranks.empty())
    finding->headline = finding->headline.substr(0, finding->headline.rfind(';')) + "; " +
                        (finding->ranks.size() == 1 ? "its" : "their") + " peers wait for " + whom;
  finding->fix.assign(kRankStuckOnHostRule.fix.begin(), kRankStuckOnHostRule.fix.end());
  if (!one) {
    finding->fix[1] = kDataOfSeveralRanks;
    finding->fix[2] = kOfSeveralRanks;
  }
  finding->fix.front() = where.empty() ? "Check what " + RankWords(finding->ranks) + (one ? " does" : " do") +
                                             ": py-spy dump --native --pid PID " +
                                             (one ? "on its host" : "on their hosts") + ", or gdb -p PID."
                                       : "Look at " + where + " on " + RankWords(finding->ranks) +
                                             ": what does it wait for (storage, a lock, another process, user input)?";
  CiteGlooTimeouts(facts, *finding);
  if (!by_stack)
    answer.open.push_back(
        {(one ? "What is " : "What are ") + RankWords(finding->ranks) + " doing on the host?" +
             (inside ? ""
              : one  ? " It may also be waiting for its own GPU (a synchronizing call before the collective)."
                     : " They may also be waiting for their own GPUs (a synchronizing call before the collective)."),
         NamePlaces(facts.incident, finding->ranks,
                    std::string(one ? "its stack" : "their stacks") +
                        ", taken while the job hangs (py-spy), or by faulthandler.dump_traceback_later() in the job")});
  answer.findings.push_back(std::move(*finding));
  return answer;
}

const Rule kRankStuckOnHostRule = {
    "rank-stuck-on-host",
    "A rank is stuck on the host",
    "flight records, black boxes or NCCL logs (which rank has not issued what), and stacks (where it is)",
    "The process is alive, but its Python or C++ code has not reached the collective that all the others are in. It "
    "loads data, evaluates, writes a checkpoint, waits for a lock or for I/O, or is in a branch that the others did "
    "not take. The others wait until their watchdog ends the job; the rank that reports the timeout is a victim.",
    "A frozen rank leaves nothing at all: no dump, no stack. A dead one leaves closed connections. With a stalled GPU "
    "the host has issued the collective and only the device does not start it. A skipped collective shows the rank "
    "waiting in a later one.",
    {"Find where it is (the named frame, or py-spy dump --native --pid PID) and what it waits for: storage, a lock, "
     "another process, user input.",
     "If it loads data: check the storage and the worker processes of that host; DataLoader(timeout=...) "
     "turns the wait into an error.",
     "If only this rank runs the code (evaluation, logging or saving on one rank): let all ranks run it, or let the "
     "others wait for it at a barrier with a long enough timeout.",
     "Kill and restart the job once the cause is removed. Raising the timeout helps only where that code is merely "
     "slow."},
    {"Keep work that only one rank does short, or outside the training loop.",
     "Call faulthandler.dump_traceback_later(300, repeat=True), so that the next hang shows the stack by itself.",
     "Set a timeout on every external wait (queues, HTTP, locks)."},
    JudgeStuckOnHost};

}  // namespace tacet
