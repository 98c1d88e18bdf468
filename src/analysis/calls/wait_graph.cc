// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/wait_graph.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "analysis/calls/strong_components.h"

namespace tacet {
namespace {

// NCCL runs a few small operations ahead of a slow member thanks to its buffers, and recorders notice ends up to a poll
// interval late. A peer that finished two numbers more cannot be explained by either.
constexpr int64_t kBehindBy = 2;

// Every output depends on every member's input: if one member finished number n + 1, all have finished n.
bool IsSynchronising(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather || kind == OpKind::reduce_scatter ||
         kind == OpKind::barrier || kind == OpKind::all_to_all;
}

bool IsEarlier(const Call& a, const Call& b) {
  if (a.enter_wall_ns == kNoTime || b.enter_wall_ns == kNoTime) return false;
  return a.enter_wall_ns < b.enter_wall_ns;
}

// The highest number that the member may have issued. A file that ends in the middle does not say what came after,
// unless the recorder's own counters do; and these leave out the last call when an abort came before it was counted.
int64_t MayHaveIssued(const MemberCalls& member, GroupIndex group) {
  const CallStream& stream = *member.stream;
  if (!stream.cut) return member.last_enqueued;
  const bool counted = std::any_of(stream.progress.begin(), stream.progress.end(), [&](const GroupProgress& progress) {
    // One that counts sends and receives as well has not been taken over.
    return progress.group == group && progress.last_enqueued >= 0 && progress.last_enqueued <= member.last_enqueued;
  });
  return counted ? member.last_enqueued + 1 : INT64_MAX;
}

// The number up to which a group's operations hold nobody up, since all members have issued them; -1 where that cannot
// be said by numbers alone. A member without a record has issued what the others have gone beyond: it can hold up no
// more than the last operation of all.
int64_t IssuedByAll(const GroupCalls& group) {
  int64_t lowest = INT64_MAX, highest = -1;
  bool silent = false;
  for (const MemberCalls& member : group.members) {
    if (!member.rank.known()) continue;
    silent |= !member.stream;
    if (!member.stream) continue;
    if (member.stream->knows_start) return -1;
    highest = std::max(highest, member.last_enqueued);
    if (!member.stream->ended_by_error) lowest = std::min(lowest, MayHaveIssued(member, group.group));
  }
  return silent ? std::min(lowest, highest - 1) : lowest;
}

class Builder {
 public:
  Builder(const Incident& incident, CallSource source, const std::vector<GroupCalls>& groups,
          const std::vector<P2pLink>& links)
      : incident_(incident), groups_(groups), links_(links) {
    graph_.source = source;
    issued_by_all_.resize(incident.groups.size(), -1);
    for (size_t i = 0; i < groups.size(); ++i) {
      group_at_[static_cast<uint32_t>(groups[i].group)] = i;
      issued_by_all_[static_cast<uint32_t>(groups[i].group)] = IssuedByAll(groups[i]);
    }
    for (size_t i = 0; i < links.size(); ++i) {
      links_of_[links[i].sender.value].push_back(i);
      links_of_[links[i].receiver.value].push_back(i);
    }
  }

  WaitGraph Build() {
    for (const CallStream& stream : incident_.streams) {
      if (stream.source == graph_.source && !stream.stub && stream.rank.known()) FollowRank(stream);
    }
    FindRanksBehind();
    for (auto& [key, operation] : collectives_)
      if (!operation.waiters.empty()) graph_.operations.push_back(std::move(operation));
    FindRoots();
    FindCycles();
    return std::move(graph_);
  }

 private:
  // The unfinished operations of a rank in program order; the first one that somebody else holds up is where it waits.
  void FollowRank(const CallStream& stream) {
    bool first = true;
    for (const Call& call : stream.calls) {
      if (call.group == GroupIndex::none || call.has(kCoalescedMember)) continue;
      if (stream.knows_finish && IsFinished(call)) continue;
      if (!stream.knows_finish && !call.has(kPointToPoint) &&
          static_cast<int64_t>(call.seq) <= issued_by_all_[static_cast<uint32_t>(call.group)])
        continue;
      BlockedOperation* operation = call.has(kPointToPoint) ? FollowP2p(stream, call) : FollowCollective(call);
      const bool held_up = operation && !operation->missing.empty();
      if (!held_up && !stream.knows_finish) continue;  // all have issued it: nothing says that it is unfinished
      if (first) graph_.blocked_in[stream.rank] = &call;
      if (first && !held_up && operation && !call.has(kPointToPoint) &&
          (!graph_.common_stall || call.seq < graph_.common_stall->seq)) {
        graph_.common_stall = &call;
        graph_.common_stream = &stream;
      }
      first = false;
      if (!held_up) continue;
      operation->waiters.push_back(stream.rank);
      if (!operation->call || IsEarlier(call, *operation->call)) {
        operation->call = &call;
        operation->stream = &stream;
      }
      return;
    }
  }

  BlockedOperation* FollowCollective(const Call& call) {
    const auto place = group_at_.find(static_cast<uint32_t>(call.group));
    if (place == group_at_.end()) return nullptr;
    const auto [found, added] = collectives_.try_emplace({call.group, call.seq});
    BlockedOperation& operation = found->second;
    if (!added) return &operation;
    operation.group = call.group;
    operation.seq = call.seq;
    const GroupCalls& group = groups_[place->second];
    bool somebody_started = false;
    for (const MemberCalls& member : group.members) {
      const Call* other = member.stream && member.stream->knows_start ? member.Find(call.seq) : nullptr;
      somebody_started |= other && other->state >= CallState::started && other->start_wall_ns != kNoTime;
    }
    for (const MemberCalls& member : group.members) {
      if (!member.rank.known()) continue;
      if (!member.stream) {
        operation.missing.push_back({member.rank, WaitReason::silent});
      } else if (member.last_enqueued < static_cast<int64_t>(call.seq)) {
        // It stopped because it lost a peer: a victim of whoever that was.
        if (member.stream->ended_by_error || MayHaveIssued(member, group.group) >= static_cast<int64_t>(call.seq))
          continue;
        operation.missing.push_back({member.rank, WaitReason::not_entered});
        operation.somebody_not_entered = true;
      } else if (somebody_started && member.stream->knows_start) {
        const Call* other = member.Find(call.seq);
        if (other && other->state == CallState::enqueued)
          operation.missing.push_back({member.rank, WaitReason::not_started});
      }
    }
    return &operation;
  }

  // Who holds up one send or receive; nothing when its other half is there, or cannot be told.
  std::optional<Missing> MissingHalf(const CallStream& stream, const Call& call, bool* told) const {
    const auto own = links_of_.find(stream.rank.value);
    if (own == links_of_.end()) return std::nullopt;
    const bool sends = call.kind == OpKind::send;
    for (const size_t index : own->second) {
      const P2pLink& link = links_[index];
      if (link.group != call.group || (sends ? link.sender : link.receiver) != stream.rank) continue;
      const Rank peer = sends ? link.receiver : link.sender;
      const auto& members = incident_.groups[static_cast<uint32_t>(call.group)].members;
      if (static_cast<size_t>(call.peer.value) >= members.size() ||
          members[static_cast<size_t>(call.peer.value)] != peer)
        continue;
      *told = true;
      const Call* unmatched = sends ? link.unmatched_send : link.unmatched_recv;
      if (!(sends ? link.recv_stream : link.send_stream)) return Missing{peer, WaitReason::silent};
      if (unmatched && unmatched->seq <= call.seq) return Missing{peer, WaitReason::not_entered};
      if (OnlyOtherGpuIsMissing(link, stream, call)) return Missing{peer, WaitReason::not_started};
      return std::nullopt;
    }
    return std::nullopt;
  }

  // Both halves are issued, this one's GPU is in it, and the other's has not come to it.
  static bool OnlyOtherGpuIsMissing(const P2pLink& link, const CallStream& stream, const Call& call) {
    const bool sends = call.kind == OpKind::send;
    const CallStream& other = sends ? *link.recv_stream : *link.send_stream;
    if (!link.counted_from_start || !stream.knows_start || !other.knows_start) return false;
    if (call.state < CallState::started || call.start_wall_ns == kNoTime || IsFinished(call)) return false;
    const std::vector<uint32_t>& own = sends ? link.sends : link.recvs;
    const std::vector<uint32_t>& others = sends ? link.recvs : link.sends;
    const auto index = static_cast<uint32_t>(&call - stream.calls.data());
    const auto at = std::lower_bound(own.begin(), own.end(), index);
    if (at == own.end() || *at != index || static_cast<size_t>(at - own.begin()) >= others.size()) return false;
    const Call& half = other.calls[others[static_cast<size_t>(at - own.begin())]];
    return half.state == CallState::enqueued && !half.has(kCoalescedMember);
  }

  // The earliest operation that a rank has not finished is one its GPU has not even begun: something else occupies it.
  bool GpuIsElsewhere(Rank rank) const {
    const auto own = graph_.blocked_in.find(rank);
    return own != graph_.blocked_in.end() && own->second->state == CallState::enqueued &&
           !own->second->has(kCoalescedEnd);
  }

  // The earliest operation that a rank has not finished is a send or receive that its GPU has begun: whatever it issued
  // after that stands in the queue behind it.
  bool GpuIsInOtherHalf(Rank rank) const {
    const auto own = graph_.blocked_in.find(rank);
    return own != graph_.blocked_in.end() && own->second->has(kPointToPoint) &&
           own->second->state >= CallState::started && own->second->start_wall_ns != kNoTime;
  }

  // A batch of sends and receives ends when all its halves have met theirs; its closing entry stands behind them.
  BlockedOperation* FollowP2p(const CallStream& stream, const Call& call) {
    std::vector<Missing> missing;
    bool told = false;
    const auto add = [&](const Call& half) {
      if (const auto one = MissingHalf(stream, half, &told)) missing.push_back(*one);
    };
    if (!call.has(kCoalescedEnd)) {
      add(call);
    } else {
      for (const Call* half = &call; half != stream.calls.data();) {
        --half;
        if (half->group != call.group) continue;
        if (!half->has(kCoalescedMember) || half->seq != call.seq) break;
        if (IsPointToPoint(half->kind)) add(*half);
      }
    }
    if (!told) return nullptr;
    BlockedOperation& operation = collectives_[{call.group, p2p_key_--}];
    operation.group = call.group;
    operation.seq = call.seq;
    operation.point_to_point = true;
    operation.missing = std::move(missing);
    return &operation;
  }

  // Whoever finished the operation came to it only when this rank's time limit had already torn it down: a late peer,
  // no GPU that stands still.
  static bool PeersCameTooLate(const GroupCalls& group, const Call& call) {
    if (call.timeout_ms == 0 || call.enter_wall_ns == kNoTime) return false;
    const int64_t limit = call.enter_wall_ns + int64_t{call.timeout_ms} * 1'000'000 / 10 * 9;
    bool late = false;
    for (const MemberCalls& member : group.members) {
      const Call* other = member.Find(call.seq);
      if (!other || !IsFinished(*other)) continue;
      if (other->enter_wall_ns == kNoTime || other->enter_wall_ns < limit) return false;
      late = true;
    }
    return late;
  }

  // NCCL loses kernel events of a communicator that runs many sends and receives, so a box may never see the end of a
  // collective among them. A rank on which nothing open has begun lost no end: its GPU stands before all of it.
  bool MayHaveLostEnds(const GroupCalls& group, const MemberCalls& member) const {
    if (graph_.source != CallSource::black_box) return false;
    const bool mixed =
        std::any_of(links_.begin(), links_.end(), [&](const P2pLink& link) { return link.group == group.group; });
    return mixed && std::any_of(member.stream->calls.begin(), member.stream->calls.end(),
                                [](const Call& call) { return !IsFinished(call) && call.start_wall_ns != kNoTime; });
  }

  void FindRanksBehind() {
    for (const GroupCalls& group : groups_) {
      // Where calls do not fit together some GPUs get further than others, and who disagrees may be the missing one.
      if (std::any_of(group.members.begin(), group.members.end(), [](const auto& m) { return !m.stream; })) continue;
      int64_t best = -1;
      // Of a record that was cut only the counters are known, and not when the rank came.
      for (const MemberCalls& member : group.members)
        if (member.stream && !member.stream->cut) best = std::max(best, member.finished_through);
      for (const MemberCalls& member : group.members) {
        if (!member.stream || !member.stream->knows_finish || member.stream->cut) continue;
        if (behind_.contains(member.rank)) continue;
        const int64_t next = member.finished_through + 1;
        if (best - member.finished_through < kBehindBy || member.last_enqueued < next) continue;
        const Call* call = member.Find(static_cast<uint32_t>(next));
        if (!call || IsFinished(*call) || !IsSynchronising(call->kind) || PeersCameTooLate(group, *call)) continue;
        if (MayHaveLostEnds(group, member)) continue;
        behind_.insert(member.rank);
        graph_.roots.push_back({member.rank, RootKind::gpu_behind, call, member.stream, group.group});
      }
    }
  }

  // A rank that is waited for and waits for nobody itself. One with unfinished operations of its own is not a root
  // merely because its waits could not be told.
  bool EndsTheWait(const BlockedOperation& operation, const Missing& missing, const std::set<Rank>& waiting) const {
    if (waiting.contains(missing.rank) || behind_.contains(missing.rank) || IsInSomethingLost(missing.rank))
      return false;
    const auto own = graph_.blocked_in.find(missing.rank);
    if (missing.reason == WaitReason::not_entered)
      return own == graph_.blocked_in.end() || StandsBeforeReplay(operation, *own->second);
    if (missing.reason == WaitReason::not_started && operation.point_to_point) return GpuIsElsewhere(missing.rank);
    if (missing.reason == WaitReason::not_started) {
      // While somebody has not even issued it, a late GPU start is no cause.
      if (operation.somebody_not_entered) return false;
      return own == graph_.blocked_in.end() ||
             (own->second->group == operation.group && own->second->seq == operation.seq);
    }
    return true;
  }

  // A replay is heard of when the GPU gets to it. The rank's host has issued calls of the same communicator, which
  // stand behind it in the queue, but its GPU has begun none of them.
  bool StandsBeforeReplay(const BlockedOperation& operation, const Call& own) const {
    const uint64_t base = incident_.groups[static_cast<uint32_t>(operation.group)].replays_of;
    return base != 0 && own.group != GroupIndex::none && own.state == CallState::enqueued &&
           incident_.groups[static_cast<uint32_t>(own.group)].comm_id == base;
  }

  // Its record was cut, but its counters tell that something it had issued was open.
  bool IsInSomethingLost(Rank rank) const {
    const CallStream* stream = incident_.StreamOf(rank, graph_.source);
    return stream && stream->cut &&
           std::any_of(stream->progress.begin(), stream->progress.end(),
                       [](const GroupProgress& progress) { return progress.last_enqueued > progress.last_completed; });
  }

  void FindRoots() {
    std::set<Rank> waiting;
    for (const BlockedOperation& operation : graph_.operations)
      waiting.insert(operation.waiters.begin(), operation.waiters.end());
    // A rank whose own GPU has not begun the operation is listed among its waiters too; it does not wait for itself.
    for (const BlockedOperation& operation : graph_.operations) {
      if (operation.point_to_point || operation.somebody_not_entered) continue;
      for (const Missing& missing : operation.missing)
        if (missing.reason == WaitReason::not_started) waiting.erase(missing.rank);
    }
    struct Candidate {
      WaitRoot root;
      size_t waiters = 0;  // in the operation it points at
    };
    std::map<Rank, Candidate> candidates;
    for (const BlockedOperation& operation : graph_.operations) {
      for (const Missing& missing : operation.missing) {
        if (!EndsTheWait(operation, missing, waiting)) continue;
        const auto own = graph_.blocked_in.find(missing.rank);
        const bool issued = missing.reason == WaitReason::not_started ||
                            (own != graph_.blocked_in.end() && StandsBeforeReplay(operation, *own->second));
        const RootKind kind = missing.reason == WaitReason::silent ? RootKind::silent
                              : issued                             ? RootKind::gpu_not_started
                                                                   : RootKind::not_entered;
        auto [found, added] = candidates.try_emplace(
            missing.rank, Candidate{{missing.rank, kind, operation.call, operation.stream, operation.group},
                                    operation.waiters.size()});
        auto& [root, waiters] = found->second;
        // Point at the operation that has been waited in for longest, it is the next one the root owes; of two as old
        // the one with more waiters.
        const bool older = IsEarlier(*operation.call, *root.call);
        const bool as_old = !older && !IsEarlier(*root.call, *operation.call);
        if (!added && (older || (as_old && operation.waiters.size() > waiters))) {
          root.call = operation.call;
          root.stream = operation.stream;
          root.group = operation.group;
          waiters = operation.waiters.size();
        }
      }
    }
    for (const auto& [rank, candidate] : candidates) graph_.roots.push_back(candidate.root);
    std::sort(graph_.roots.begin(), graph_.roots.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }

  // Operations are nodes too: waiter -> operation -> missing rank, so the graph stays linear in the ranks.
  void FindCycles() {
    std::map<Rank, std::vector<Rank>> edges;
    int32_t node = -2;  // negative ranks stand for operations
    for (const BlockedOperation& operation : graph_.operations) {
      for (const Rank waiter : operation.waiters) edges[waiter].push_back({node});
      for (const Missing& missing : operation.missing) {
        // A half that is issued and merely not begun closes a circle only where it stands behind another half.
        const bool issued = operation.point_to_point && missing.reason == WaitReason::not_started;
        if (missing.reason != WaitReason::silent && (!issued || GpuIsInOtherHalf(missing.rank)))
          edges[{node}].push_back(missing.rank);
      }
      --node;
    }
    for (std::vector<Rank>& component : StrongComponents(edges)) {
      std::erase_if(component, [](Rank rank) { return rank.value < 0; });
      if (component.size() > 1) graph_.cycles.push_back(std::move(component));
    }
  }

  const Incident& incident_;
  const std::vector<GroupCalls>& groups_;
  const std::vector<P2pLink>& links_;
  std::unordered_map<uint32_t, size_t> group_at_;
  std::vector<int64_t> issued_by_all_;  // by group
  std::unordered_map<int32_t, std::vector<size_t>> links_of_;
  std::map<std::pair<GroupIndex, uint32_t>, BlockedOperation> collectives_;
  uint32_t p2p_key_ = UINT32_MAX;  // point-to-point operations are numbered downwards, out of the collectives' way
  std::set<Rank> behind_;
  WaitGraph graph_;
};

}  // namespace

bool HasWaiterIn(const BlockedOperation& operation, const std::vector<Rank>& ranks) {
  return std::any_of(operation.waiters.begin(), operation.waiters.end(),
                     [&](Rank waiter) { return std::binary_search(ranks.begin(), ranks.end(), waiter); });
}

WaitGraph BuildWaitGraph(const Incident& incident, CallSource source, const std::vector<GroupCalls>& groups,
                         const std::vector<P2pLink>& links) {
  return Builder(incident, source, groups, links).Build();
}

}  // namespace tacet
