// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/timing/collective_match.h"

namespace tacet {
namespace {

constexpr int64_t kBatchMs = 1'000'000;

// Flight records of ranks that only send and receive.
struct Sketch {
  Incident incident;

  explicit Sketch(int32_t world) {
    Group& group = incident.groups.emplace_back();
    for (int32_t r = 0; r < world; ++r) {
      group.members.push_back({r});
      CallStream& stream = incident.streams.emplace_back();
      stream.rank = {r};
    }
  }

  struct Move {
    bool send;
    int32_t peer;
  };

  void Batch(int32_t rank, const std::vector<Move>& moves, float duration_ms, int64_t elements = 1024) {
    CallStream& stream = incident.streams[static_cast<size_t>(rank)];
    Call call;
    call.group = GroupIndex{0};
    call.seq = static_cast<uint32_t>(stream.calls.size()) + 1;
    call.flags = kPointToPoint | kCoalescedMember;
    call.type = DataType::float32;
    call.in_elements = call.out_elements = elements;
    call.enter_wall_ns = static_cast<int64_t>(stream.calls.size()) * kBatchMs;
    for (const Move& move : moves) {
      call.kind = move.send ? OpKind::send : OpKind::recv;
      call.peer = {move.peer};
      stream.calls.push_back(call);
    }
    call.kind = OpKind::coalesced;
    call.flags = kPointToPoint | kCoalescedEnd;
    call.peer = {};
    call.duration_ms = duration_ms;
    call.in_elements = call.out_elements = -1;
    stream.calls.push_back(call);
  }
};

TEST(TimedBatches, TheLaterPartnerHasTheShorterKernel) {
  Sketch job(2);
  job.Batch(0, {{true, 1}}, 7);
  job.Batch(1, {{false, 0}}, 2);
  const auto rounds = MatchTimedBatches(job.incident);
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_EQ(rounds[0].kind, OpKind::send);
  EXPECT_EQ(rounds[0].bytes, 4096);
  EXPECT_TRUE(rounds[0].whole());
  const RoundTiming timing = TimeRound(rounds[0]);
  EXPECT_EQ(timing.transfer_ns, 2 * kBatchMs);
  EXPECT_EQ(timing.total_wait_ns, 5 * kBatchMs);
}

TEST(TimedBatches, AnExchangeIsOneRound) {
  Sketch job(2);
  for (int i = 0; i < 3; ++i) {
    job.Batch(0, {{true, 1}, {false, 1}}, 4);
    job.Batch(1, {{true, 0}, {false, 0}}, 3);
  }
  EXPECT_EQ(MatchTimedBatches(job.incident).size(), 3u);
}

TEST(TimedBatches, ARingIsOneRoundOfAllItsRanks) {
  Sketch job(4);
  for (int i = 0; i < 2; ++i)
    for (int32_t r = 0; r < 4; ++r) job.Batch(r, {{true, (r + 1) % 4}, {false, (r + 3) % 4}}, r == 2 ? 1.0f : 6.0f);
  const auto rounds = MatchTimedBatches(job.incident);
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].kind, OpKind::coalesced);
  EXPECT_EQ(rounds[0].members.size(), 4u);
  EXPECT_EQ(TimeRound(rounds[0]).total_wait_ns, 15 * kBatchMs);
}

TEST(TimedBatches, WhatARingBufferHasLostIsMatchedFromTheEnd) {
  Sketch job(2);
  for (int i = 0; i < 5; ++i) job.Batch(0, {{true, 1}}, 3);
  for (int i = 0; i < 3; ++i) job.Batch(1, {{false, 0}}, static_cast<float>(i + 1));
  job.incident.streams[1].from_start = false;
  const auto rounds = MatchTimedBatches(job.incident);
  ASSERT_EQ(rounds.size(), 3u);
}

TEST(TimedBatches, UntimedAndUnmatchedBatchesAreLeftOut) {
  Sketch job(3);
  job.Batch(0, {{true, 1}}, -1);
  job.Batch(1, {{false, 0}}, 2);
  job.Batch(0, {{true, 2}}, 2);        // nobody receives it
  job.Batch(1, {{true, 2}}, 2, 1024);  // sizes differ
  job.Batch(2, {{false, 1}}, 2, 2048);
  EXPECT_TRUE(MatchTimedBatches(job.incident).empty());
  EXPECT_TRUE(MatchTimedBatches({}).empty());
}

}  // namespace
}  // namespace tacet
