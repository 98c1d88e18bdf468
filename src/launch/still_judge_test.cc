// SPDX-License-Identifier: Apache-2.0
#include "launch/still_judge.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
using Doing = RankLook::Doing;

RankLook Rank(int rank, Doing doing, uint64_t place) {
  RankLook look;
  look.rank = rank;
  look.pid = 100 + rank;
  look.doing = doing;
  look.place = place;
  look.state = 'S';
  look.io_bytes = 1000;
  return look;
}

// Plays `seconds` of looks, every 5 s; `change` alters the ranks before each. True as soon as a hang is told.
template <typename Change>
bool Play(StillJudge& judge, std::vector<RankLook>& ranks, int64_t& now_s, int64_t seconds, Change change) {
  for (const int64_t until = now_s + seconds; now_s < until; now_s += 5) {
    change(ranks);
    if (judge.Look(ranks, now_s * kSecond)) return true;
  }
  return false;
}
const auto kNothing = [](std::vector<RankLook>&) {};

std::vector<RankLook> OneAsleep() {
  return {Rank(0, Doing::waits, 7), Rank(1, Doing::waits, 7), Rank(2, Doing::user_code, 9)};
}

TEST(StillJudge, TellsARankThatSleepsWhileOthersWait) {
  StillJudge judge;
  auto ranks = OneAsleep();
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 30, kNothing));
  const auto verdict = judge.Look(ranks, 31 * kSecond);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->waiting, (std::vector<int>{0, 1}));
  EXPECT_EQ(verdict->elsewhere, (std::vector<int>{2}));
}

TEST(StillJudge, IsSilentWhileOneComputesAndTheOthersWait) {
  StillJudge judge;
  auto ranks = OneAsleep();
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 3600, [](auto& all) { all[2].cpu_ns += 5 * kSecond; }));
}

TEST(StillJudge, IsSilentWhileOneReadsItsData) {
  StillJudge judge;
  auto ranks = OneAsleep();
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 3600, [](auto& all) { all[2].io_bytes += 100'000; }));
  EXPECT_FALSE(Play(judge, ranks, now_s, 3600, [](auto& all) { all[2].main_io_bytes += 1; }));
}

// NCCL and the store keep their connections alive for as long as a process lives.
TEST(StillJudge, TellsARankThatSleepsThoughItsConnectionsAreKeptAlive) {
  StillJudge judge;
  auto ranks = OneAsleep();
  int64_t now_s = 0;
  EXPECT_TRUE(Play(judge, ranks, now_s, 60, [](auto& all) { all[2].io_bytes += 900; }));
}

TEST(StillJudge, IsSilentWhileAllPauseAndNobodyWaits) {
  StillJudge judge;
  std::vector<RankLook> ranks = {Rank(0, Doing::user_code, 9), Rank(1, Doing::user_code, 9)};
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 3600, kNothing));
}

TEST(StillJudge, DoesNotTakeSpinningInAWaitForWork) {
  StillJudge judge;
  std::vector<RankLook> ranks = {Rank(0, Doing::waits, 7), Rank(1, Doing::waits, 7)};
  int64_t now_s = 0;
  EXPECT_TRUE(Play(judge, ranks, now_s, 60, [](auto& all) {
    for (RankLook& rank : all) rank.cpu_ns += 5 * kSecond;
  }));
}

// backward() of a DDP model: the Python stack ends in PyTorch, whether it computes or waits for its peers.
TEST(StillJudge, TakesARankInsidePyTorchForWaitingOnlyWhenItUsesNoCpu) {
  std::vector<RankLook> ranks = {Rank(0, Doing::library, 7), Rank(1, Doing::library, 7), Rank(2, Doing::user_code, 9)};
  StillJudge idle, busy;
  int64_t now_s = 0;
  EXPECT_TRUE(Play(idle, ranks, now_s, 60, kNothing));
  now_s = 0;
  EXPECT_FALSE(Play(busy, ranks, now_s, 3600, [](auto& all) { all[0].cpu_ns += 5 * kSecond; }));
}

TEST(StillJudge, IsMorePatientAfterALongPauseThatEnded) {
  StillJudge judge;
  auto ranks = OneAsleep();
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 30, kNothing));
  ranks[2].place = 10;
  EXPECT_FALSE(Play(judge, ranks, now_s, 55, kNothing));  // 30 s would have been enough before
  EXPECT_TRUE(Play(judge, ranks, now_s, 30, kNothing));
}

TEST(StillJudge, WaitsLongerWhileAGroupIsMade) {
  StillJudge judge;
  std::vector<RankLook> ranks = {Rank(0, Doing::waits, 7), Rank(1, Doing::waits, 7)};
  for (RankLook& rank : ranks) rank.setting_up = true;
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 115, kNothing));
  EXPECT_TRUE(Play(judge, ranks, now_s, 30, kNothing));
}

TEST(StillJudge, TellsOfAStoppedAndOfAGoneRank) {
  for (const bool gone : {false, true}) {
    StillJudge judge;
    auto ranks = OneAsleep();
    ranks[2].state = gone ? 'Z' : 'T';
    ranks[2].gone = gone;
    int64_t now_s = 0;
    EXPECT_TRUE(Play(judge, ranks, now_s, 60, kNothing)) << gone;
  }
}

TEST(StillJudge, TakesProgressInABoxForMovement) {
  StillJudge judge;
  std::vector<RankLook> ranks = {Rank(0, Doing::user_code, 7), Rank(1, Doing::user_code, 7)};
  for (RankLook& rank : ranks) rank.in_flight = true;
  int64_t now_s = 0;
  EXPECT_FALSE(Play(judge, ranks, now_s, 600, [](auto& all) { ++all[0].progress; }));
  EXPECT_TRUE(Play(judge, ranks, now_s, 1300, kNothing));
}

TEST(StillJudge, KnowsWhetherSomebodyGotOnWhileTheJobWasCaptured) {
  StillJudge judge;
  const std::vector<RankLook> before = OneAsleep();
  judge.Look(before, kSecond);
  EXPECT_FALSE(judge.HaveGotOn(before));
  std::vector<RankLook> now = before;
  now[2].cpu_ns += 5 * kSecond;  // a debugger read its symbols
  now[2].io_bytes += 1 << 20;
  EXPECT_FALSE(judge.HaveGotOn(now));
  now[2].place = 10;
  EXPECT_TRUE(judge.HaveGotOn(now)) << "elsewhere in its program";
  now[0].gone = true;
  EXPECT_FALSE(judge.HaveGotOn(now)) << "hangs end like that";
  now = before;
  ++now[1].progress;
  EXPECT_TRUE(judge.HaveGotOn(now));
  now = before;
  now[2].doing = Doing::unknown;
  now[2].place = 0;
  EXPECT_FALSE(judge.HaveGotOn(now)) << "no stack could be had the second time";
}

}  // namespace
}  // namespace tacet
