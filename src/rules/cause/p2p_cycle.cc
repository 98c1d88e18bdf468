// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "rules/findings/parted_finding.h"
#include "rules/findings/stack_only.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {

// Without records: every rank of the job is in a send, or every one in a receive. Nobody is in the other half.
static void JudgeCycleByStacks(const Case& facts, RuleAnswer& answer) {
  if (!OnlyStacksTell(facts)) return;
  const std::vector<StackReading>& stacks = facts.analyses.stacks;
  const std::string_view call = PointToPointCallOf(facts, stacks.front());
  if (call.empty()) return;
  Finding finding;
  for (const StackReading& reading : stacks) {
    if (PointToPointCallOf(facts, reading) != call) return;
    finding.ranks.push_back(reading.rank);
    if (finding.evidence.size() < 3)
      finding.evidence.push_back(
          {reading.thread->source, reading.where, RankWords({reading.rank}) + " is in " + std::string(call)});
  }
  finding.cause = "p2p-cycle";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.headline = RankWords(finding.ranks) + " all wait in " + std::string(call) + " (" + stacks.front().where +
                     "), and none " + (call == "send" ? "receives" : "sends");
  answer.findings.push_back(std::move(finding));
}

// Records without times of the GPU do not show which call it has begun. Where the job hangs, the first call that each
// rank of a circle has not finished is a send to the next one, and the receive that the one before it waits for stands
// behind it, the sends wait for each other. So do receives, whether or not the sends behind them were posted.
static void JudgeCycleWithoutStarts(const Case& facts, const SourceAnalysis& source, RuleAnswer& answer) {
  if (facts.analyses.end.kind != JobEnding::hung || source.source != CallSource::flight_recorder) return;
  std::map<Rank, std::pair<const CallStream*, const Call*>> heads;
  for (const CallStream& stream : facts.incident.streams) {
    if (stream.source != source.source || !stream.rank.known() || stream.knows_start || stream.cut) continue;
    const auto own = source.waits.blocked_in.find(stream.rank);
    if (own == source.waits.blocked_in.end() || !IsPointToPoint(own->second->kind)) continue;
    if (own->second->has(kCoalescedMember) || own->second < stream.calls.data() ||
        own->second >= stream.calls.data() + stream.calls.size())
      continue;
    heads[stream.rank] = {&stream, own->second};
  }
  const auto peer_of = [&](const Call& call) {
    const auto& members = facts.incident.groups[static_cast<uint32_t>(call.group)].members;
    const auto place = static_cast<size_t>(call.peer.value);
    return place < members.size() ? members[place] : Rank{};
  };
  const auto receives_behind = [&](Rank rank, Rank sender) {
    const auto& [stream, head] = heads.at(rank);
    return std::any_of(stream->calls.begin() + (head - stream->calls.data()) + 1, stream->calls.end(),
                       [&, group = head->group](const Call& call) {
                         return call.kind == OpKind::recv && call.group == group && !IsFinished(call) &&
                                peer_of(call) == sender;
                       });
  };
  if (heads.empty()) return;
  const OpKind kind = heads.begin()->second.second->kind;
  const bool sends = kind == OpKind::send;
  for (const auto& [rank, head] : heads) {
    const Rank next = peer_of(*head.second);
    if (head.second->kind != kind || !heads.count(next) || (sends && !receives_behind(next, rank))) return;
  }
  // Who waits for a rank of the circle, and for whom nobody waits, is no part of it.
  const auto is_in_circle = [&](Rank rank) {
    Rank next = peer_of(*heads.at(rank).second);
    for (size_t i = 0; i < heads.size() && next != rank; ++i) next = peer_of(*heads.at(next).second);
    return next == rank;
  };
  Finding finding;
  for (const auto& [rank, head] : heads) {
    const Rank next = peer_of(*head.second);
    if (!is_in_circle(rank)) {
      finding.affected_ranks.push_back(rank);
      continue;
    }
    finding.ranks.push_back(rank);
    if (finding.evidence.size() < 3)
      finding.evidence.push_back(CiteCall(facts.incident, *head.first, *head.second,
                                          RankWords({rank}) + " waits here for " + RankWords({next}) +
                                              ", whose matching call comes after its own " +
                                              (sends ? "send" : "receive")));
  }
  if (finding.ranks.size() < 2) return;
  finding.cause = "p2p-cycle";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.operation = RefOf(*heads.at(finding.ranks[0]).second);
  finding.group = heads.at(finding.ranks[0]).second->group;
  finding.headline = RankWords(finding.ranks) + " wait for each other in " + std::string(Name(kind)) +
                     ": on each, the " + (sends ? "receive" : "send") +
                     " that its peer waits for comes after its own " + (sends ? "send" : "receive");
  answer.findings.push_back(std::move(finding));
}

static RuleAnswer JudgeP2pCycle(const Case& facts) {
  RuleAnswer answer;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    Finding finding;
    bool none_posted = true;
    // A message that went to the wrong rank closes a circle, too: that is another cause.
    const MisdirectedMessage wrong = FindMisdirected(source.links);
    for (const std::vector<Rank>& cycle : source.waits.cycles) {
      if (wrong && std::binary_search(cycle.begin(), cycle.end(), wrong.owner)) continue;
      std::vector<const BlockedOperation*> sends;
      bool pure = true;
      for (const BlockedOperation& operation : source.waits.operations) {
        if (!HasWaiterIn(operation, cycle)) continue;
        pure &= operation.point_to_point;
        sends.push_back(&operation);
      }
      if (!pure || sends.empty()) continue;
      finding.ranks.insert(finding.ranks.end(), cycle.begin(), cycle.end());
      for (const BlockedOperation* operation : sends) {
        const Missing& missing = operation->missing.front();
        const bool queued = missing.reason == WaitReason::not_started;
        none_posted &= !queued;
        if (!finding.operation) {
          finding.operation = RefOf(*operation->call);
          finding.group = operation->group;
        }
        finding.evidence.push_back(CiteCall(facts.incident, *operation->stream, *operation->call,
                                            RankWords(operation->waiters) + " waits here for " +
                                                RankWords({missing.rank}) +
                                                (queued ? ", whose matching call is queued behind its own"
                                                        : ", which has not posted the matching call")));
      }
    }
    if (finding.ranks.empty()) continue;
    std::sort(finding.ranks.begin(), finding.ranks.end());
    finding.cause = "p2p-cycle";
    finding.status = Status::hang;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::certain;
    finding.headline = RankWords(finding.ranks) + " wait for each other in " +
                       std::string(Name(finding.operation->kind)) +
                       (none_posted ? ": each has posted its own call, but not the one that its peer waits for"
                                    : ": on each, the call that its peer waits for is queued behind its own");
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  for (const SourceAnalysis& source : facts.analyses.sources) {
    JudgeCycleWithoutStarts(facts, source, answer);
    if (!answer.findings.empty()) return answer;
  }
  JudgeCycleByStacks(facts, answer);
  if (answer.findings.empty())
    if (auto parted = PartedFinding(facts, "p2p-cycle")) answer.findings.push_back(std::move(*parted));
  return answer;
}

extern const Rule kP2pCycleRule;
const Rule kP2pCycleRule = {
    "p2p-cycle",
    "Sends wait for each other in a circle",
    "flight records, black boxes, NCCL logs with the COLL subsystem, or stacks of all ranks",
    "Each rank of a circle sends before it receives (or receives before it sends). An NCCL send completes only when "
    "the other side receives, so no rank reaches the other half of its exchange. On first use of a pair the calls "
    "block while connecting, and no flight record exists yet.",
    "An unmatched send or receive has no circle: its peer has moved on. Collectives in "
    "opposite order on two groups are another kind of circle.",
    {"Post both halves together: torch.distributed.batch_isend_irecv([...]), or "
     "ncclGroupStart/ncclGroupEnd around them.",
     "Or let even ranks send first and odd ranks receive first."},
    {"Use batch_isend_irecv for every exchange between neighbors."},
    JudgeP2pCycle};

}  // namespace tacet
