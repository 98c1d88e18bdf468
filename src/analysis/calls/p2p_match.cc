// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/p2p_match.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/calls/group_calls.h"

namespace tacet {
namespace {

void FindUnmatched(P2pLink& link) {
  if (!link.send_stream || !link.recv_stream) return;
  const auto& sends = link.send_stream->calls;
  const auto& recvs = link.recv_stream->calls;
  if (link.counted_from_start) {
    if (link.sends.size() > link.recvs.size()) link.unmatched_send = &sends[link.sends[link.recvs.size()]];
    if (link.recvs.size() > link.sends.size()) link.unmatched_recv = &recvs[link.recvs[link.sends.size()]];
  } else {
    // The beginning was overwritten: what is finished was matched, so pending ones pair up in order.
    std::vector<const Call*> open_sends, open_recvs;
    for (const uint32_t i : link.sends)
      if (!IsFinished(sends[i])) open_sends.push_back(&sends[i]);
    for (const uint32_t i : link.recvs)
      if (!IsFinished(recvs[i])) open_recvs.push_back(&recvs[i]);
    if (open_sends.size() > open_recvs.size()) link.unmatched_send = open_sends[open_recvs.size()];
    if (open_recvs.size() > open_sends.size()) link.unmatched_recv = open_recvs[open_sends.size()];
  }
  // Where the other side's file ends early, its half may have stood in what is lost.
  if (link.recv_stream->cut) link.unmatched_send = nullptr;
  if (link.send_stream->cut) link.unmatched_recv = nullptr;
  // A send may finish without its receive: small messages are buffered. Then nobody waits.
  if (link.unmatched_send && IsFinished(*link.unmatched_send)) link.unmatched_send = nullptr;
  if (link.unmatched_recv && IsFinished(*link.unmatched_recv)) link.unmatched_recv = nullptr;
}

// Of a receive some tools fill in only what comes out.
int64_t HalfBytes(const Call& call) { return std::max(call.in_elements, call.out_elements) * BytesOf(call.type); }

void FindUnequal(P2pLink& link) {
  if (!link.counted_from_start) return;
  for (size_t i = 0; i < std::min(link.sends.size(), link.recvs.size()); ++i) {
    const Call& send = link.send_stream->calls[link.sends[i]];
    const Call& recv = link.recv_stream->calls[link.recvs[i]];
    const int64_t sent = HalfBytes(send), taken = HalfBytes(recv);
    if (sent <= 0 || taken <= 0 || sent == taken) continue;
    link.unequal_send = &send;
    link.unequal_recv = &recv;
    return;
  }
}

}  // namespace

MisdirectedMessage FindMisdirected(const std::vector<P2pLink>& links) {
  constexpr size_t kMany = 3;
  for (const P2pLink& stray : links)
    for (const bool receives : {false, true}) {
      if (!stray.send_stream || !stray.recv_stream || stray.sender == stray.receiver) continue;
      if ((receives ? stray.recvs : stray.sends).size() != 1 || !(receives ? stray.sends : stray.recvs).empty())
        continue;
      const Rank owner = receives ? stray.receiver : stray.sender;
      for (const P2pLink& missed : links) {
        if (&missed == &stray || missed.group != stray.group || !missed.counted_from_start) continue;
        if ((receives ? missed.receiver : missed.sender) != owner) continue;
        const Call* open = receives ? missed.unmatched_send : missed.unmatched_recv;
        const size_t done = (receives ? missed.recvs : missed.sends).size();
        if (open && done >= kMany && (receives ? missed.sends : missed.recvs).size() == done + 1)
          return {owner, &stray, &missed, receives};
      }
    }
  return {};
}

std::vector<P2pLink> MatchPointToPoint(const Incident& incident, CallSource source) {
  std::map<std::tuple<GroupIndex, Rank, Rank>, P2pLink> links;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != source || stream.stub || !stream.rank.known()) continue;
    for (uint32_t i = 0; i < stream.calls.size(); ++i) {
      const Call& call = stream.calls[i];
      if (!IsPointToPoint(call.kind) || call.group == GroupIndex::none || !call.peer.known()) continue;
      const auto& members = incident.groups[static_cast<uint32_t>(call.group)].members;
      if (static_cast<size_t>(call.peer.value) >= members.size()) continue;
      const Rank peer = members[static_cast<size_t>(call.peer.value)];
      if (!peer.known()) continue;
      const bool sends = call.kind == OpKind::send;
      P2pLink& link = links[{call.group, sends ? stream.rank : peer, sends ? peer : stream.rank}];
      link.group = call.group;
      link.source = source;
      link.sender = sends ? stream.rank : peer;
      link.receiver = sends ? peer : stream.rank;
      (sends ? link.sends : link.recvs).push_back(i);
    }
  }
  std::vector<P2pLink> out;
  for (auto& [key, link] : links) {
    link.send_stream = incident.StreamOf(link.sender, source);
    link.recv_stream = incident.StreamOf(link.receiver, source);
    const auto whole = [](const CallStream* stream) {
      return stream && stream->from_start && !stream->only_active && !stream->stub;
    };
    link.counted_from_start = whole(link.send_stream) && whole(link.recv_stream);
    FindUnmatched(link);
    FindUnequal(link);
    out.push_back(std::move(link));
  }
  return out;
}

}  // namespace tacet
