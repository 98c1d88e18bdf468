// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/calls/left_replay.h"
#include "analysis/calls/stalled_flow.h"
#include "rules/findings/stack_only.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {

static std::string_view WaitWords(FlowWait wait) {
  switch (wait) {
    case FlowWait::network: return "the sender waits for the network";
    case FlowWait::peer_credit: return "the sender waits for the receiver to be ready";
    default: return "the receiver waits for data";
  }
}

// The boxes tell how far each way between two ranks got.
static bool NameFlow(const Case& facts, Finding& finding) {
  const auto flow = FindStalledFlow(facts.incident, finding.group, static_cast<uint32_t>(finding.operation->seq));
  if (!flow) return false;
  const std::string way = RankWords({flow->from}) + " -> " + RankWords({flow->to});
  const std::string progress = std::to_string(flow->steps_done) + " of " + std::to_string(flow->steps_total) + " steps";
  if (flow->suspect.known()) {
    finding.ranks = {flow->suspect};
    std::erase(finding.affected_ranks, flow->suspect);
  }
  finding.headline += "; least from " + way + " (" + progress + ", " + std::string(WaitWords(flow->waiting)) + ")";
  finding.evidence.push_back({flow->flight->source,
                              way + ": " + progress + ", " + std::string(WaitWords(flow->waiting)),
                              "the transfer with the least progress"});
  return true;
}

// Without records: the stacks of all ranks stand in one line of the user, inside communication or PyTorch.
static const StackReading* FindCommonLine(const Case& facts) {
  if (!OnlyStacksTell(facts)) return nullptr;
  const StackReading& first = facts.analyses.stacks.front();
  for (const StackReading& reading : facts.analyses.stacks) {
    if (!WaitsByStack(reading) || reading.innermost_user.line == 0) return nullptr;
    if (reading.innermost_user != first.innermost_user || reading.call != first.call) return nullptr;
  }
  // Sends that wait for each other stand in one line, too.
  return PointToPointCallOf(facts, first).empty() ? &first : nullptr;
}

static void JudgeByStacks(const Case& facts, RuleAnswer& answer) {
  const StackReading* line = FindCommonLine(facts);
  if (!line || !facts.standstill.ranks.empty()) return;
  Finding finding;
  finding.cause = "transport-stalled";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  for (const auto& [rank, life] : facts.analyses.life.ranks) finding.affected_ranks.push_back(rank);
  finding.headline =
      "all ranks wait in " + line->where + ", none makes progress, and no fault is recorded: the data does not move";
  finding.evidence.push_back({line->thread->source, line->where, "every rank's stack ends here"});
  answer.findings.push_back(std::move(finding));
  answer.open.push_back(
      {"Do all ranks make the same call there, and which link carries no data?",
       "TORCH_DISTRIBUTED_DEBUG=DETAIL (tacet run --full), and network counters of both hosts taken twice"});
}

static RuleAnswer JudgeTransportStalled(const Case& facts) {
  RuleAnswer answer;
  if (!facts.analyses.outcome.stands()) return answer;
  // Nothing moves to or from a process that is dead or frozen.
  if (std::any_of(facts.standstill.ranks.begin(), facts.standstill.ranks.end(),
                  [](const Standstill& still) { return still.silence != nullptr; }))
    return answer;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    const WaitGraph& waits = source.waits;
    if (!waits.common_stall || !waits.roots.empty() || !waits.cycles.empty() || !source.differences.empty()) continue;
    if (FindLeftReplay(facts.incident, source.groups)) continue;
    // Every member must be on record, or the missing ones may be the reason.
    const auto group = std::find_if(source.groups.begin(), source.groups.end(),
                                    [&](const auto& g) { return g.group == waits.common_stall->group; });
    if (group == source.groups.end()) continue;
    bool all_recorded = true, all_started = true, somebody_finished = false;
    for (const MemberCalls& member : group->members) {
      const Call* call = member.Find(waits.common_stall->seq);
      all_recorded &= call != nullptr;
      somebody_finished |= call && IsFinished(*call);
      all_started &= call && member.stream->knows_start && call->state >= CallState::started;
    }
    if (!all_recorded || somebody_finished) continue;
    if (!all_started) {
      answer.open.push_back({"Did every GPU start " + OperationWords(facts.incident, *waits.common_stall) + "?",
                             "flight records with TORCH_NCCL_ENABLE_TIMING=1, or black boxes of the Tacet plugin"});
      continue;
    }
    Finding finding;
    finding.cause = "transport-stalled";
    finding.status = Status::hang;
    finding.severity = Severity::critical;
    finding.confidence = facts.analyses.outcome.hangs() ? Confidence::likely : Confidence::possible;
    finding.group = waits.common_stall->group;
    finding.operation = RefOf(*waits.common_stall);
    for (const MemberCalls& member : group->members) finding.affected_ranks.push_back(member.rank);
    finding.headline = "all ranks issued and started " + OperationWords(facts.incident, *waits.common_stall) +
                       ", none finishes it, and no fault is recorded: the data does not move";
    finding.evidence.push_back(CiteCall(facts.incident, *waits.common_stream, *waits.common_stall,
                                        "started by all members, finished by none"));
    if (!NameFlow(facts, finding))
      answer.open.push_back(
          {"Which flow makes the least progress?",
           "black boxes of the Tacet plugin (per-peer progress), or NIC counters taken twice a few seconds apart"});
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  JudgeByStacks(facts, answer);
  return answer;
}

extern const Rule kTransportStalledRule;
const Rule kTransportStalledRule = {
    "transport-stalled",
    "All ranks are in the collective and the data does not move",
    "flight records with timing, or black boxes, of all members",
    "Every rank has issued the collective and every GPU has started it, but none finishes it and nothing is logged. A "
    "path between two GPUs is blocked: broken peer-to-peer "
    "access (ACS, IOMMU), a dead link that no timeout has noticed yet, a library bug.",
    "With a missing rank, a stalled GPU or a mismatch, at least one rank has not issued or not started it, or issued "
    "something else. A network fault leaves an error in a log.",
    {"First collective of the job on this machine type: try NCCL_P2P_DISABLE=1, then NCCL_IB_DISABLE=1; if one of them "
     "helps, that path is broken (ACS, IOMMU, virtual machine).",
     "Read NIC counters twice: a port whose counters stop while its peers wait is the suspect.",
     "Update NCCL and the driver; search the release notes for the operation."},
    {"Run nccl-tests on all nodes before the job.",
     "Record with the Tacet plugin: its black boxes show which transfer has made the least progress."},
    JudgeTransportStalled};

}  // namespace tacet
