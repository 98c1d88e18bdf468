// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/standstill_finding.h"

#include <algorithm>

#include "rules/words/words.h"

namespace tacet {
namespace {

// The last operation of the guilty rank on the group, if it is recorded at all.
void CiteLastOwnCall(const Case& facts, const Standstill& still, Finding& finding) {
  if (!still.root) return;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    for (const GroupCalls& group : source.groups) {
      if (group.group != still.root->group) continue;
      for (const MemberCalls& member : group.members) {
        if (member.rank != still.rank || !member.stream || member.calls.empty()) continue;
        const Call& last = member.At(member.calls.size() - 1);
        finding.evidence.push_back(
            CiteCall(facts.incident, *member.stream, last,
                     (still.kind == StandstillKind::gpu && last.state == CallState::completed
                          ? "the last collective that the GPU of " + RankWords({still.rank}) + " finished on "
                          : "the last collective " + RankWords({still.rank}) + " issued on ") +
                         (still.root->group == facts.standstill.group
                              ? "this group"
                              : facts.incident.groups[static_cast<uint32_t>(still.root->group)].Label())));
        return;
      }
    }
  }
}

// Ranks that stand still for this reason, and owe something else than the operation that the finding names.
std::vector<const Standstill*> OtherRoots(const Case& facts, StandstillKind kind) {
  std::vector<const Standstill*> others;
  const auto alike = std::count_if(facts.standstill.ranks.begin(), facts.standstill.ranks.end(),
                                   [&](const Standstill& still) { return still.kind == kind; });
  if (alike < 2) return others;
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != kind || !still.root || !still.root->call || !still.root->stream) continue;
    const Call& call = *still.root->call;
    if (HasIssued(still.root->kind) || call.group == facts.standstill.group) continue;
    if (facts.standstill.operation && IsPointToPoint(call.kind) != IsPointToPoint(facts.standstill.operation->kind))
      continue;
    others.push_back(&still);
  }
  return others;
}

}  // namespace

std::string OwedWords(const Case& facts, StandstillKind kind) {
  const StandstillView& view = facts.standstill;
  if (!view.operation) return "not issued the next collective";
  const std::string operation = OperationWords(facts.incident, *view.operation);
  const bool messages = IsPointToPoint(view.operation->kind) && view.stream;
  std::vector<Rank> partners;
  if (messages) partners.push_back(view.stream->rank);
  bool alike = true;  // all of them owe an operation of the same name
  for (const Standstill* still : OtherRoots(facts, kind)) {
    alike &= OperationWords(facts.incident, *still->root->call) == operation;
    partners.push_back(still->root->stream->rank);
  }
  // Each rank counts its own batches of sends and receives: the number is of the one that waits.
  if (view.operation->kind == OpKind::coalesced && view.operation->has(kPointToPoint) && view.stream)
    return "not issued the sends and receives for which " + RankWords({view.stream->rank}) + " waits in its " +
           operation;
  if (!messages)
    return alike ? "not issued " + operation : "not issued what their peers wait in, " + operation + " first";
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  const bool receives = view.operation->kind == OpKind::recv, one = partners.size() == 1;
  const std::string verb = receives ? (one ? " waits for" : " wait for") : (one ? " sends" : " send");
  return (receives ? "not sent what " : "not received what ") + RankWords(partners) + verb +
         (alike ? " in " + operation
          : one ? ""
                : ", " + operation + " first");
}

// A rank that lost its peer's connection and raised no longer waits.
static bool FailedAtOnce(const Case& facts, Rank rank) {
  const RankLife* life = facts.analyses.life.Of(rank);
  return life && life->consequence && life->lost_peer && !life->timeout && !life->has_stack;
}

// All who waited failed as soon as a connection closed: the job crashed, and nobody stands still.
static bool AllFailedAtOnce(const Case& facts) {
  const std::vector<Rank>& waiters = facts.standstill.waiters;
  return !waiters.empty() && !facts.analyses.outcome.first_timeout &&
         std::all_of(waiters.begin(), waiters.end(), [&](Rank rank) { return FailedAtOnce(facts, rank); });
}

// All who are left ended with an error, and nobody's time was up: the job broke down, and nobody waits anymore.
static bool HaveAllPeersFailed(const Case& facts, const std::vector<Rank>& gone) {
  if (gone.empty() || facts.analyses.outcome.first_timeout) return false;
  bool any = false;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (std::find(gone.begin(), gone.end(), rank) != gone.end()) continue;
    if (!life.lost_peer && !life.remote_error && !life.shared_gpu_error && !life.consequence) return false;
    any = true;
  }
  return any;
}

std::string WaitWords(const Case& facts, const std::vector<Rank>& gone) {
  const StandstillView& view = facts.standstill;
  if (!view.operation) return "";
  std::vector<Rank> waiting, failed;
  for (const Rank rank : view.waiters) (FailedAtOnce(facts, rank) ? failed : waiting).push_back(rank);
  if (waiting.empty() && !failed.empty()) return RankWords(failed) + " failed when the connection closed";
  const bool broke = HaveAllPeersFailed(facts, gone);
  std::string text = (waiting.empty() ? "its peers" : RankWords(waiting)) + (broke                 ? " failed"
                                                                             : waiting.size() == 1 ? " waits"
                                                                                                   : " wait");
  text += " in " + OperationWords(facts.incident, *view.operation);
  return failed.empty() ? text : text + "; " + RankWords(failed) + " failed with a closed connection";
}

std::optional<Finding> StandstillFinding(const Case& facts, StandstillKind kind, std::string_view cause) {
  const StandstillView& view = facts.standstill;
  Finding finding;
  finding.cause = cause;
  const bool crashed = kind == StandstillKind::dead && AllFailedAtOnce(facts);
  finding.status = crashed ? Status::crash : Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  const Standstill* lead = nullptr;
  for (const Standstill& still : view.ranks) {
    if (still.kind != kind && still.kind != StandstillKind::absent) continue;
    if (still.kind == kind && !lead) lead = &still;
    finding.ranks.push_back(still.rank);
  }
  if (!lead) return std::nullopt;
  const bool broke = kind == StandstillKind::dead && HaveAllPeersFailed(facts, finding.ranks);
  if (view.operation) {
    finding.operation = RefOf(*view.operation);
    finding.group = view.group;
    finding.evidence.push_back(
        CiteCall(facts.incident, *view.stream, *view.operation,
                 RankWords({view.stream->rank}) + (lead->root && lead->root->kind == RootKind::gpu_behind
                                                       ? " is still in this operation"
                                                   : crashed ? " was in this operation when it failed"
                                                   : broke   ? " was in this operation"
                                                             : " waits in this operation")));
  }
  finding.affected_ranks = view.waiters;
  // What is said of several ranks is shown of each.
  constexpr size_t kMostWaits = 3;
  for (const Standstill* still : OtherRoots(facts, kind))
    if (view.operation && finding.evidence.size() < kMostWaits)
      finding.evidence.push_back(
          CiteCall(facts.incident, *still->root->stream, *still->root->call,
                   RankWords({still->root->stream->rank}) + " waits in this for " + RankWords({still->rank})));
  for (const Standstill& still : view.ranks) {
    if (still.kind == kind) CiteLastOwnCall(facts, still, finding);
    if (still.kind == StandstillKind::absent) {
      finding.evidence.push_back(
          CiteAbsence(RankWords({still.rank}) + " left no file of any kind while its peers did"));
      finding.confidence = Confidence::likely;
    }
  }
  return finding;
}

}  // namespace tacet
