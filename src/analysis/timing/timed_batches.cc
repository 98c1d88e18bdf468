// SPDX-License-Identifier: Apache-2.0
// Rounds from sends and receives that a Flight Recorder timed by the batch:
//   nccl:send 1->2 (scheduled), nccl:recv 1<-2 (scheduled), nccl:coalesced (completed, 30.06 ms)
// A batch is one kernel: it begins when the rank comes and ends when all its transfers are done. Batches joined by a
// transfer form one round; the last to come has the shortest kernel, and what the others took longer they waited.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/timing/collective_match.h"

namespace tacet {
namespace {

struct BatchTransfer {
  GroupIndex group;
  Rank sender, receiver;
  int64_t bytes = 0;
  uint32_t batch = 0;
};

struct Batch {
  Rank rank;
  const Call* closing = nullptr;  // that has the times
};

// All transfers of one direction between two ranks of a group, as one of them issued them.
struct Link {
  std::vector<BatchTransfer> sent, received;
  bool sent_from_start = true, received_from_start = true;
};
using LinkKey = std::tuple<GroupIndex, Rank, Rank>;  // sender, receiver

class BatchJoin {
 public:
  explicit BatchJoin(const Incident& incident) : incident_(incident) {}

  std::vector<CollectiveRound> Run() {
    for (const CallStream& stream : incident_.streams)
      if (stream.source == CallSource::flight_recorder && stream.rank.known()) TakeStream(stream);
    parent_.resize(batches_.size());
    std::iota(parent_.begin(), parent_.end(), 0u);
    for (auto& [key, link] : links_) JoinLink(link);
    return Rounds();
  }

 private:
  void TakeStream(const CallStream& stream) {
    std::vector<const Call*> open;
    for (const Call& call : stream.calls) {
      if (call.group == GroupIndex::none || !call.has(kPointToPoint)) continue;
      if (call.has(kCoalescedMember)) {
        open.push_back(&call);
        continue;
      }
      if (!call.has(kCoalescedEnd)) {
        AddBatch(stream, call, {&call});
        continue;
      }
      std::erase_if(open, [&](const Call* one) { return one->group != call.group || one->seq != call.seq; });
      AddBatch(stream, call, open);
      open.clear();
    }
  }

  void AddBatch(const CallStream& stream, const Call& closing, const std::vector<const Call*>& members) {
    const auto batch = static_cast<uint32_t>(batches_.size());
    batches_.push_back({stream.rank, &closing});
    const Group& group = incident_.groups[static_cast<uint32_t>(closing.group)];
    for (const Call* one : members) {
      if (!IsPointToPoint(one->kind) || !one->peer.known() ||
          static_cast<size_t>(one->peer.value) >= group.members.size())
        continue;
      const Rank peer = group.members[static_cast<size_t>(one->peer.value)];
      const bool send = one->kind == OpKind::send;
      const Rank sender = send ? stream.rank : peer, receiver = send ? peer : stream.rank;
      Link& link = links_[{one->group, sender, receiver}];
      (send ? link.sent : link.received)
          .push_back({one->group, sender, receiver, std::max<int64_t>(0, one->Bytes()), batch});
      bool& whole = send ? link.sent_from_start : link.received_from_start;
      whole = stream.from_start;
    }
  }

  // The n-th send is the n-th receive. Where a ring has lost the beginning, both lists end at the same transfer.
  void JoinLink(Link& link) {
    const size_t n = std::min(link.sent.size(), link.received.size());
    const bool front = link.sent_from_start && link.received_from_start;
    for (size_t i = 0; i < n; ++i) {
      const BatchTransfer& sent = front ? link.sent[i] : link.sent[link.sent.size() - 1 - i];
      const BatchTransfer& received = front ? link.received[i] : link.received[link.received.size() - 1 - i];
      if (sent.bytes != received.bytes) continue;
      Unite(sent.batch, received.batch);
      joined_.push_back(sent);
    }
  }

  uint32_t Find(uint32_t batch) {
    while (parent_[batch] != batch) batch = parent_[batch] = parent_[parent_[batch]];
    return batch;
  }
  void Unite(uint32_t a, uint32_t b) { parent_[Find(a)] = Find(b); }

  std::vector<CollectiveRound> Rounds() {
    std::map<uint32_t, CollectiveRound> rounds;
    for (uint32_t batch = 0; batch < batches_.size(); ++batch) {
      const Call& call = *batches_[batch].closing;
      CollectiveRound& round = rounds[Find(batch)];
      const auto duration = static_cast<int64_t>(static_cast<double>(call.duration_ms) * 1e6);
      if (call.duration_ms < 0 || call.has(kEndedByAbort)) round.step = -2;  // not all of it was timed
      round.members.push_back({batches_[batch].rank, call.enter_wall_ns, kNoTime, kNoTime, duration});
    }
    for (const BatchTransfer& one : joined_) {
      CollectiveRound& round = rounds[Find(one.batch)];
      round.group = one.group;
      round.bytes = std::max(round.bytes, one.bytes);
      round.coalesced = true;
    }
    std::vector<CollectiveRound> out;
    for (auto& [root, round] : rounds) {
      if (round.step == -2 || round.group == GroupIndex::none || round.members.size() < 2 || HasRankTwice(round))
        continue;
      round.kind = round.members.size() == 2 ? OpKind::send : OpKind::coalesced;
      round.group_size = static_cast<int32_t>(round.members.size());
      out.push_back(std::move(round));
    }
    return out;
  }

  // Batches of one rank that hang together through others ran one after the other: no round.
  static bool HasRankTwice(CollectiveRound& round) {
    std::sort(round.members.begin(), round.members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return std::adjacent_find(round.members.begin(), round.members.end(),
                              [](const auto& a, const auto& b) { return a.rank == b.rank; }) != round.members.end();
  }

  const Incident& incident_;
  std::vector<Batch> batches_;
  std::map<LinkKey, Link> links_;
  std::vector<uint32_t> parent_;
  std::vector<BatchTransfer> joined_;
};

}  // namespace

std::vector<CollectiveRound> MatchTimedBatches(const Incident& incident) { return BatchJoin(incident).Run(); }

}  // namespace tacet
