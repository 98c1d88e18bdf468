// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/wait_ends.h"

#include <cstdint>
#include <set>

namespace tacet {
namespace {

struct RootView {
  const WaitRoot* root = nullptr;
  bool silent_only = true;
};

// Another source shows that the rank issued what it is waited for, and more: the one that names it ends early.
bool WentBeyond(const Incident& incident, const Analyses& analyses, const WaitRoot& root) {
  if (root.kind != RootKind::not_entered || !root.call || root.call->has(kPointToPoint)) return false;
  const auto members = [&](GroupIndex group) { return incident.groups[static_cast<uint32_t>(group)].members; };
  for (const SourceAnalysis& source : analyses.sources) {
    if (root.stream && source.source == root.stream->source) continue;
    for (const GroupCalls& group : source.groups) {
      // A process group and its communicator may be listed apart.
      if (group.group != root.group && members(group.group) != members(root.group)) continue;
      for (const MemberCalls& member : group.members)
        // Sources may count differently by one or two.
        if (member.rank == root.rank && member.stream && member.last_enqueued >= int64_t{root.call->seq} + 3)
          return true;
    }
  }
  return false;
}

}  // namespace

std::map<Rank, const WaitRoot*> FindWaitEnds(const Incident& incident, const Analyses& analyses) {
  std::map<Rank, RootView> roots;
  for (const SourceAnalysis& source : analyses.sources) {
    for (const WaitRoot& root : source.waits.roots) {
      RootView& view = roots[root.rank];
      const bool silent = root.kind == RootKind::silent;
      if (!view.root || (view.silent_only && !silent)) view.root = &root;
      view.silent_only &= silent;
    }
  }
  // Whoever a better record shows waiting is a victim, even if its log stops early because its last call failed. A call
  // that was only issued, as far as that record tells, may well be the one the rank's GPU does not get to.
  const auto only_issued = [&](const WaitRoot& root, const Call& call) {
    return root.kind == RootKind::gpu_not_started && call.state == CallState::enqueued;
  };
  for (const SourceAnalysis& source : analyses.sources) {
    std::set<Rank> own_roots;
    for (const WaitRoot& root : source.waits.roots) own_roots.insert(root.rank);
    for (const auto& [rank, call] : source.waits.blocked_in) {
      const auto found = roots.find(rank);
      if (found == roots.end() || own_roots.contains(rank)) continue;
      if (call == nullptr || !only_issued(*found->second.root, *call)) roots.erase(found);
    }
  }
  std::erase_if(roots, [&](const auto& root) { return WentBeyond(incident, analyses, *root.second.root); });
  // A rank that lost one kind of record but keeps up, or waits itself, in another is no root.
  for (const SourceAnalysis& source : analyses.sources) {
    std::set<Rank> own_roots;
    for (const WaitRoot& root : source.waits.roots) own_roots.insert(root.rank);
    for (const GroupCalls& group : source.groups) {
      for (const MemberCalls& member : group.members) {
        if (!member.stream || own_roots.contains(member.rank)) continue;
        const auto found = roots.find(member.rank);
        if (found != roots.end() && found->second.silent_only) roots.erase(found);
      }
    }
  }
  std::map<Rank, const WaitRoot*> ends;
  for (const auto& [rank, view] : roots) ends.emplace(rank, view.root);
  return ends;
}

}  // namespace tacet
