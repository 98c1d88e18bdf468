// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"

namespace tacet {

// Sends and receives of one ordered pair of ranks in one group.
struct P2pLink {
  GroupIndex group = GroupIndex::none;
  CallSource source{};
  Rank sender, receiver;
  const CallStream* send_stream = nullptr;  // null: nothing recorded of that side
  const CallStream* recv_stream = nullptr;
  std::vector<uint32_t> sends, recvs;  // indices into the streams' calls, in order
  bool counted_from_start = false;  // both sides are complete from their beginning: the i-th send is the i-th receive

  // The first send without receive or receive without send that is not finished; null when all are matched.
  const Call* unmatched_send = nullptr;
  const Call* unmatched_recv = nullptr;
  // The first send that meets a receive of another size; null when all agree or the beginning is lost.
  const Call* unequal_send = nullptr;
  const Call* unequal_recv = nullptr;
};

// A message that went to the wrong rank: its partner posts no other half, ever, and at the same time the rank with
// which its owner exchanges them otherwise lacks one.
struct MisdirectedMessage {
  Rank owner;
  const P2pLink* stray = nullptr;
  const P2pLink* missed = nullptr;
  bool receives = false;  // the owner posted a receive, and the missing half is its receive
  explicit operator bool() const { return stray != nullptr; }
};
MisdirectedMessage FindMisdirected(const std::vector<P2pLink>& links);

std::vector<P2pLink> MatchPointToPoint(const Incident& incident, CallSource source);

}  // namespace tacet
