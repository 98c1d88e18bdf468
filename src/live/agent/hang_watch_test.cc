// SPDX-License-Identifier: Apache-2.0
#include "live/agent/hang_watch.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A job of some ranks on one communicator, played second by second.
class Play {
 public:
  explicit Play(int ranks, uint64_t finished = 100) {
    boxes_.resize(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      BoxState& box = boxes_[static_cast<size_t>(rank)];
      box.name = "job/" + std::to_string(rank);
      box.job = "job";
      box.rank = rank;
      box.sight = ProcessSight::running;
      CommState& comm = box.comms.emplace_back();
      comm.id = 7;
      comm.size = ranks;
      comm.name = "default_pg";
      comm.issued = comm.finished = finished;
    }
  }
  BoxState& Box(int rank) { return boxes_[static_cast<size_t>(rank)]; }

  // The rank issues its next operation; `normal_ns` is what its kind usually takes.
  void Issue(int rank, int64_t normal_ns = kSecond / 100, bool begun = true, uint64_t comm = 7) {
    OperationState op;
    op.comm = comm;
    op.kind = OpKind::all_reduce;
    op.seq = ++Box(rank).comms[0].issued;
    op.normal_ns = normal_ns;
    op.channels_started = begun ? 2 : 0;
    Box(rank).operations.push_back(op);
  }
  void FinishAll() {
    for (BoxState& box : boxes_) {
      box.comms[0].finished = box.comms[0].issued;
      box.operations.clear();
    }
  }
  // Lets time pass; gives the seconds until the first suspicion, or -1.
  int Pass(int seconds) {
    int first = -1;
    for (int s = 1; s <= seconds; ++s) {
      now_ += kSecond;
      for (BoxState& box : boxes_)
        for (OperationState& op : box.operations) op.age_ns += kSecond;
      std::vector<const BoxState*> shown;
      for (const BoxState& box : boxes_) shown.push_back(&box);
      suspicions = watch_.Look(shown, now_, now_);
      if (first < 0 && !suspicions.empty()) first = s;
    }
    return first;
  }
  // Healthy steps of a second each.
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      for (size_t rank = 0; rank < boxes_.size(); ++rank) Issue(static_cast<int>(rank));
      FinishAll();
      EXPECT_EQ(Pass(1), -1);
    }
  }

  std::vector<HangSuspicion> suspicions;

 private:
  HangWatch watch_;
  std::vector<BoxState> boxes_;
  int64_t now_ = 1000 * kSecond;
};

TEST(HangWatch, SeesARankThatDoesNotComeWithinSeconds) {
  Play play(4);
  play.Train(3);
  for (const int rank : {0, 2, 3}) play.Issue(rank);
  const int seen = play.Pass(20);
  EXPECT_GE(seen, 4);
  EXPECT_LE(seen, 6);
  ASSERT_EQ(play.suspicions.size(), 1u);
  EXPECT_EQ(play.suspicions[0].waiting, 3);
  EXPECT_EQ(play.suspicions[0].members_seen, 4);
  EXPECT_EQ(play.suspicions[0].seq, 104u);
  EXPECT_EQ(play.suspicions[0].job, "job");
}

TEST(HangWatch, SaysNothingOnceItGoesOn) {
  Play play(2);
  play.Train(2);
  play.Issue(0);
  EXPECT_NE(play.Pass(10), -1);
  play.FinishAll();
  EXPECT_EQ(play.Pass(5), -1);
  EXPECT_TRUE(play.suspicions.empty());
}

TEST(HangWatch, APauseOfAllRanksAlikeIsNone) {
  Play play(4);
  play.Train(3);
  EXPECT_EQ(play.Pass(1200), -1);  // checkpoint, evaluation: nothing in flight anywhere
  play.Train(3);
}

TEST(HangWatch, TheFirstOperationAfterALongPauseIsFresh) {
  Play play(2);
  play.Train(2);
  play.Pass(100);
  play.Issue(0);
  EXPECT_EQ(play.Pass(3), -1);
}

TEST(HangWatch, AGroupThatWarmsUpGetsMinutes) {
  Play play(4, 0);
  for (const int rank : {0, 1, 2}) play.Issue(rank, -1);  // rank 3 still compiles
  EXPECT_EQ(play.Pass(100), -1);
  const int seen = play.Pass(60);
  EXPECT_NE(seen, -1) << "a hang in the first step must be seen, too, only later";
}

TEST(HangWatch, AnOperationNeverSeenBeforeGetsLonger) {
  Play play(2);
  play.Train(2);
  play.Issue(0, -1);
  EXPECT_EQ(play.Pass(25), -1);
  EXPECT_NE(play.Pass(10), -1);
}

TEST(HangWatch, SlowOperationsAreNormalWhereTheyAlwaysWereSlow) {
  Play play(2);
  play.Train(2);
  play.Issue(0, 5 * kSecond);
  play.Issue(1, 5 * kSecond);
  EXPECT_EQ(play.Pass(38), -1);
  EXPECT_NE(play.Pass(5), -1);
}

TEST(HangWatch, AnOperationThatGetsOnIsNone) {
  Play play(2);
  play.Train(2);
  play.Issue(0);
  play.Issue(1);
  for (int i = 0; i < 30; ++i) {
    play.Box(0).operations[0].progress += 1;  // network steps
    EXPECT_EQ(play.Pass(2), -1);
  }
}

TEST(HangWatch, LearnsFromPausesThatEnded) {
  Play play(2);
  play.Train(2);
  play.Issue(0);  // rank 1 saves a checkpoint meanwhile
  EXPECT_NE(play.Pass(20), -1);
  play.FinishAll();
  play.Train(2);
  play.Issue(0);
  EXPECT_EQ(play.Pass(55), -1) << "it paused for 20 s before and went on";
  EXPECT_NE(play.Pass(10), -1);
}

TEST(HangWatch, AReceivePostedAheadByABusyProcessIsNone) {
  Play play(2);
  for (BoxState* box : {&play.Box(0), &play.Box(1)})
    box->comms.push_back({.id = 9, .size = 2, .issued = 50, .finished = 50});
  play.Train(2);
  OperationState receive;
  receive.comm = 9;
  receive.kind = OpKind::recv;
  receive.seq = 51;
  receive.normal_ns = kSecond;
  receive.channels_started = 1;
  for (int i = 0; i < 60; ++i) {
    play.Box(0).operations.push_back(receive);
    receive.age_ns += kSecond;
    play.Train(1);  // the other group goes on
  }
}

TEST(HangWatch, GpusThatAllComputeAlikeAreNone) {
  Play play(4);
  play.Train(2);
  for (int rank = 0; rank < 4; ++rank)
    play.Issue(rank, kSecond / 100, false);  // queued behind a long kernel everywhere
  EXPECT_EQ(play.Pass(25), -1);
  EXPECT_NE(play.Pass(10), -1);
}

TEST(HangWatch, OneGpuThatDoesNotBeginIsSeenAsFast) {
  Play play(4);
  play.Train(2);
  for (int rank = 0; rank < 4; ++rank) play.Issue(rank, kSecond / 100, rank != 2);
  const int seen = play.Pass(10);
  EXPECT_GE(seen, 4);
  EXPECT_LE(seen, 6);
}

TEST(HangWatch, ADeadMemberIsSeenSooner) {
  Play play(4);
  play.Train(2);
  for (const int rank : {0, 1, 3}) play.Issue(rank);
  play.Box(2).sight = ProcessSight::gone;
  const int seen = play.Pass(10);
  EXPECT_GE(seen, 2);
  EXPECT_LE(seen, 4);
  ASSERT_EQ(play.suspicions.size(), 1u);
  EXPECT_EQ(play.suspicions[0].lost_ranks, std::vector<int32_t>{2});
}

TEST(HangWatch, AJobThatIsBeingKilledIsNone) {
  Play play(4);
  play.Train(2);
  for (int rank = 0; rank < 4; ++rank) play.Issue(rank);
  for (const int rank : {0, 1}) play.Box(rank).sight = ProcessSight::gone;
  for (const int rank : {2, 3}) play.Box(rank).sight = ProcessSight::uninterruptible;  // the driver takes its time
  EXPECT_EQ(play.Pass(30), -1);
}

TEST(HangWatch, AJobThatEndedIsNone) {
  Play play(3);
  play.Train(2);
  for (int rank = 0; rank < 3; ++rank) {
    play.Issue(rank);  // what an abort left in the table
    play.Box(rank).ended = rank != 0;
    play.Box(rank).sight = ProcessSight::gone;
  }
  EXPECT_EQ(play.Pass(100), -1);
}

TEST(HangWatch, WhatNeverTellsItsEndIsNone) {
  Play play(2);
  play.Train(2);
  play.Issue(0);
  play.Box(0).operations[0].tells_end = false;  // copy engines
  EXPECT_EQ(play.Pass(700), -1);
}

TEST(HangWatch, BoxesThatCannotBeReadAreLeftAlone) {
  Play play(2);
  play.Train(2);
  play.Issue(0);
  play.Box(0).trouble = play.Box(1).trouble = "bad-layout";
  EXPECT_EQ(play.Pass(100), -1);
}

}  // namespace
}  // namespace tacet
