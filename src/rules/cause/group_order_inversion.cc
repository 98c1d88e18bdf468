// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

struct Inversion {
  const BlockedOperation* first = nullptr;
  const BlockedOperation* second = nullptr;
};

// Two operations of different groups whose waiters miss each other.
Inversion FindInversion(const WaitGraph& waits, const std::vector<Rank>& cycle) {
  const auto holds_up = [](const BlockedOperation& a, const BlockedOperation& b) {
    return std::any_of(a.missing.begin(), a.missing.end(), [&](const Missing& m) {
      return m.reason == WaitReason::not_entered &&
             std::find(b.waiters.begin(), b.waiters.end(), m.rank) != b.waiters.end();
    });
  };
  for (const BlockedOperation& a : waits.operations) {
    if (a.point_to_point || !HasWaiterIn(a, cycle)) continue;
    for (const BlockedOperation& b : waits.operations) {
      if (b.point_to_point || a.group == b.group || &a == &b) continue;
      if (holds_up(a, b) && holds_up(b, a)) return {&a, &b};
    }
  }
  return {};
}

// A longer circle: 0 waits in {0,1} for 1, 1 in {1,2} for 2, 2 in {2,0} for 0. All its operations are collectives of
// several groups, and no side is the usual one.
std::optional<Finding> CircleFinding(const Case& facts, const WaitGraph& waits, const std::vector<Rank>& cycle) {
  std::vector<const BlockedOperation*> circle;
  std::set<GroupIndex> groups;
  for (const BlockedOperation& operation : waits.operations) {
    if (!HasWaiterIn(operation, cycle)) continue;
    if (operation.point_to_point || !operation.somebody_not_entered) return std::nullopt;
    circle.push_back(&operation);
    groups.insert(operation.group);
  }
  if (groups.size() < 3) return std::nullopt;
  Finding finding;
  finding.confidence = Confidence::likely;
  finding.ranks = cycle;
  finding.group = circle[0]->group;
  finding.operation = RefOf(*circle[0]->call);
  finding.headline = RankWords(cycle) + " wait for each other in a circle of " + std::to_string(groups.size()) +
                     " groups: each entered its own group first and is missing in the next";
  for (const BlockedOperation* operation : circle) {
    if (finding.evidence.size() == 6) break;
    finding.evidence.push_back(
        CiteCall(facts.incident, *operation->stream, *operation->call,
                 RankWords(operation->waiters) + " waits here for " + RankWords({operation->missing.front().rank})));
  }
  return finding;
}

Finding PairFinding(const Case& facts, Inversion inversion) {
  if (inversion.first->waiters.size() < inversion.second->waiters.size()) std::swap(inversion.first, inversion.second);
  const BlockedOperation& usual = *inversion.first;
  const BlockedOperation& odd = *inversion.second;
  const bool majority = usual.waiters.size() > odd.waiters.size();
  Finding finding;
  finding.confidence = majority ? Confidence::certain : Confidence::likely;
  finding.ranks = odd.waiters;
  if (!majority) finding.ranks.insert(finding.ranks.end(), usual.waiters.begin(), usual.waiters.end());
  std::sort(finding.ranks.begin(), finding.ranks.end());
  if (majority) finding.affected_ranks = usual.waiters;
  finding.group = usual.group;
  finding.operation = RefOf(*usual.call);
  finding.headline = RankWords(odd.waiters) + " entered " + OperationWords(facts.incident, *odd.call) + " first, but " +
                     RankWords(usual.waiters) + " entered " + OperationWords(facts.incident, *usual.call) +
                     " first: each side waits for the other";
  finding.evidence.push_back(CiteCall(facts.incident, *odd.stream, *odd.call,
                                      RankWords(odd.waiters) + " waits here for " + RankWords(usual.waiters)));
  finding.evidence.push_back(CiteCall(facts.incident, *usual.stream, *usual.call,
                                      RankWords(usual.waiters) + " wait here for " + RankWords(odd.waiters)));
  return finding;
}

bool SidesAreEqual(const Inversion& inversion) {
  return inversion.first && inversion.first->waiters.size() == inversion.second->waiters.size();
}

bool SomebodyIsMissing(const SourceAnalysis& source, const Inversion& inversion) {
  for (const GroupCalls& group : source.groups) {
    if (group.group != inversion.first->group && group.group != inversion.second->group) continue;
    for (const MemberCalls& member : group.members)
      if (!member.stream) return true;
  }
  return false;
}

// An extra or skipped call also ends in such a cycle: then the order was right and the count wrong.
bool HasOtherCount(const SourceAnalysis& source) {
  const bool by_order = std::any_of(source.divergences.begin(), source.divergences.end(), [](const Divergence& d) {
    return d.kind == Divergence::Kind::extra || d.kind == Divergence::Kind::skipped;
  });
  return by_order || std::any_of(source.differences.begin(), source.differences.end(), [](const CallDifference& d) {
           return d.reading != CallDifference::Reading::substituted && !d.odd.empty();
         });
}

}  // namespace

// Replays of graphs and calls are of one communicator: between them nobody chooses an order.
static bool HasReplay(const Incident& incident, const WaitGraph& waits, const std::vector<Rank>& cycle) {
  return std::any_of(waits.operations.begin(), waits.operations.end(), [&](const BlockedOperation& operation) {
    return incident.groups[static_cast<uint32_t>(operation.group)].replays_of != 0 && HasWaiterIn(operation, cycle);
  });
}

static RuleAnswer JudgeInversion(const Case& facts) {
  RuleAnswer answer;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    if (HasOtherCount(source)) continue;
    for (const std::vector<Rank>& cycle : source.waits.cycles) {
      if (HasReplay(facts.incident, source.waits, cycle)) continue;
      const Inversion inversion = FindInversion(source.waits, cycle);
      std::optional<Finding> finding =
          inversion.first ? PairFinding(facts, inversion) : CircleFinding(facts, source.waits, cycle);
      if (!finding) continue;
      finding->cause = "group-order-inversion";
      finding->status = Status::hang;
      if (SidesAreEqual(inversion) && SomebodyIsMissing(source, inversion)) {
        // Of the ranks that are here as many do it one way as the other; which is the usual one the missing would tell.
        finding->affected_ranks = std::exchange(finding->ranks, {});
        finding->status = Status::undetermined;
        answer.open.push_back(
            {"Which side has the order that the others have?", "the records of all ranks of the two groups"});
      }
      finding->severity = Severity::critical;
      answer.findings.push_back(std::move(*finding));
      return answer;
    }
  }
  return answer;
}

extern const Rule kGroupOrderInversionRule;
const Rule kGroupOrderInversionRule = {
    "group-order-inversion",
    "Ranks use two groups in opposite order",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of ranks on both sides",
    "Some ranks issue a collective of group A and then one of group B, others B and then A. Each side waits in its "
    "first operation for the other: a "
    "cycle. No rank is slow and no network is at fault.",
    "An extra or skipped call can also end in a cycle, but then the ranks' orders differ by one call. A send-receive "
    "cycle involves point-to-point calls.",
    {"Make all ranks issue the operations of the two groups in one fixed order.",
     "If they come from different threads or streams: serialize them, or set NCCL_LAUNCH_ORDER_IMPLICIT=1 (NCCL 2.26+, "
     "CUDA 12.3+)."},
    {"Issue the collectives of several groups from one thread, in one documented order.",
     "Do not order groups by local events such as gradient readiness."},
    JudgeInversion};

}  // namespace tacet
