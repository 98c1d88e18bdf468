// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/message_counts.h"

#include <algorithm>
#include <map>
#include <set>

namespace tacet {
namespace {

// With fewer collectives at which all counts agreed, nothing tells that they should.
constexpr size_t kMinAgreements = 2;

// How many of `calls` come before the call at `place` in the stream.
size_t CountBefore(const std::vector<uint32_t>& calls, uint32_t place) {
  return static_cast<size_t>(std::lower_bound(calls.begin(), calls.end(), place) - calls.begin());
}

using LinksBySender = std::map<Rank, std::vector<const P2pLink*>>;

class Counter {
 public:
  Counter(const GroupCalls& group, const LinksBySender& by_sender) : group_(group) {
    for (const MemberCalls& member : group.members)
      if (member.stream) members_.emplace(member.rank, &member);
    for (const auto& [rank, member] : members_) {
      const auto own = by_sender.find(rank);
      if (own == by_sender.end()) continue;
      for (const P2pLink* link : own->second)
        if (link->source == group.source && members_.contains(link->receiver)) links_.push_back(link);
    }
  }

  std::optional<ShortExchange> Find() const {
    if (links_.size() < 2 || group_.members.size() < 3) return std::nullopt;
    size_t agreements = 0;
    const MemberCalls& longest =
        *std::max_element(group_.members.begin(), group_.members.end(), [](const MemberCalls& a, const MemberCalls& b) {
          return (a.stream ? a.calls.size() : 0) < (b.stream ? b.calls.size() : 0);
        });
    for (size_t i = 0; longest.stream && i < longest.calls.size(); ++i) {
      const uint32_t seq = longest.At(i).seq;
      std::vector<const P2pLink*> unequal;
      const bool whole = Compare(seq, unequal);
      if (unequal.empty()) {
        agreements += whole;
        continue;
      }
      return agreements >= kMinAgreements ? NameTheShort(seq, unequal) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  // The place of a collective in its rank's stream; none when the rank has not issued it.
  std::optional<uint32_t> PlaceOf(Rank rank, uint32_t seq) const {
    const MemberCalls& member = *members_.at(rank);
    const Call* call = member.Find(seq);
    if (!call) return std::nullopt;
    return static_cast<uint32_t>(call - member.stream->calls.data());
  }

  // Before a collective. Who has not issued it will exchange at least what it has exchanged so far.
  struct Counts {
    size_t sent = 0, received = 0;
    bool whole = true;  // both have issued the collective
  };
  std::optional<Counts> CountsAt(const P2pLink& link, uint32_t seq) const {
    const auto sender = PlaceOf(link.sender, seq), receiver = PlaceOf(link.receiver, seq);
    if (!sender && !receiver) return std::nullopt;
    return Counts{.sent = sender ? CountBefore(link.sends, *sender) : link.sends.size(),
                  .received = receiver ? CountBefore(link.recvs, *receiver) : link.recvs.size(),
                  .whole = sender && receiver};
  }
  // The side that has issued the collective lacks messages that the other has: later ones of its own come too late.
  bool IsUnequal(const P2pLink& link, const Counts& counts, uint32_t seq) const {
    if (counts.whole) return counts.sent != counts.received;
    return PlaceOf(link.sender, seq) ? counts.sent < counts.received : counts.received < counts.sent;
  }

  // False when somebody has not issued it.
  bool Compare(uint32_t seq, std::vector<const P2pLink*>& unequal) const {
    bool whole = true;
    for (const P2pLink* link : links_) {
      const auto counts = CountsAt(*link, seq);
      whole &= counts && counts->whole;
      if (counts && IsUnequal(*link, *counts, seq)) unequal.push_back(link);
    }
    return whole;
  }

  // The one rank that every unequal link has as its shorter side, and that has no equal link.
  std::optional<ShortExchange> NameTheShort(uint32_t seq, const std::vector<const P2pLink*>& unequal) const {
    std::set<Rank> shorter;
    for (const P2pLink* link : unequal) {
      const auto counts = CountsAt(*link, seq);
      shorter.insert(counts->sent < counts->received ? link->sender : link->receiver);
    }
    if (shorter.size() != 1) return std::nullopt;
    const Rank rank = *shorter.begin();
    for (const P2pLink* link : links_)
      if ((link->sender == rank || link->receiver == rank) &&
          std::find(unequal.begin(), unequal.end(), link) == unequal.end()) {
        const auto counts = CountsAt(*link, seq);
        if (counts && counts->whole) return std::nullopt;
      }
    const P2pLink& link = *unequal.front();
    const auto counts = CountsAt(link, seq);
    const bool sends = link.sender == rank;
    ShortExchange found{.rank = rank, .peer = sends ? link.receiver : link.sender};
    const MemberCalls& member = *members_.at(rank);
    found.collective = member.Find(seq);
    found.stream = member.stream;
    found.own = std::min(counts->sent, counts->received);
    found.theirs = std::max(counts->sent, counts->received);
    found.peer_stream = sends ? link.recv_stream : link.send_stream;
    found.message = &found.peer_stream->calls[(sends ? link.recvs : link.sends)[found.own]];
    return found;
  }

  const GroupCalls& group_;
  std::map<Rank, const MemberCalls*> members_;  // of whom there is a record
  std::vector<const P2pLink*> links_;           // between them, whole from the beginning
};

}  // namespace

std::optional<ShortExchange> FindShortExchange(const std::vector<GroupCalls>& groups,
                                               const std::vector<P2pLink>& links) {
  LinksBySender by_sender;
  for (const P2pLink& link : links)
    if (link.counted_from_start && link.send_stream && link.recv_stream) by_sender[link.sender].push_back(&link);
  if (by_sender.empty()) return std::nullopt;
  for (const GroupCalls& group : groups)
    if (auto found = Counter(group, by_sender).Find()) return found;
  return std::nullopt;
}

}  // namespace tacet
