// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_own_mark.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

// Three lines of each of three numbers, in turns.
std::string Interleaved(const std::string& open, const std::string& close) {
  std::string text;
  for (int step = 1; step < 4; ++step)
    for (const int rank : {1, 0, 2})
      text += open + std::to_string(rank) + close + " step " + std::to_string(step) + " fit 0.31 s\n";
  return text;
}

int32_t RankIn(const std::string& text, std::string_view line) { return OwnMark::Find(text, {}).Take(line); }

TEST(OwnMarks, AreWhatReturnsWithEachNumber) {
  EXPECT_EQ(RankIn(Interleaved("(chat ", ")"), "(chat 2) step 4 fit 0.3 s"), 2);
  EXPECT_EQ(RankIn(Interleaved("[gpu", "]"), "[gpu1] step 4 fit 0.3 s"), 1);
  EXPECT_EQ(RankIn(Interleaved("<", ">"), "<1> step 4 fit 0.3 s"), 1);
  EXPECT_EQ(RankIn(Interleaved("replica-", " | "), "replica-0 | step 4 fit 0.3 s"), 0);
  std::string_view line = "(chat 2) step 4";
  EXPECT_EQ(OwnMark::Find(Interleaved("(chat ", ")"), {}).Take(line), 2);
  EXPECT_EQ(line, "step 4");
  EXPECT_EQ(RankIn(Interleaved("(chat ", ")"), "(room 2) step 4"), -1) << "another mark";
}

TEST(OwnMarks, CountersAndListsAreNone) {
  EXPECT_EQ(RankIn(Interleaved("[step ", "]"), "[step 2] fit 0.3 s"), -1);
  EXPECT_EQ(RankIn(Interleaved("worker ", ": "), "worker 2: fit 0.3 s"), -1) << "of a data loader";
  const std::string listed = "  rank      : 0 (local_rank: 0)\n  rank      : 2 (local_rank: 2)\n";
  EXPECT_EQ(RankIn(Interleaved("worker ", ": ") + listed, "worker 2: fit 0.3 s"), 2) << "the launcher names them";
  EXPECT_EQ(RankIn(Interleaved("worker ", ": ") + listed + "  rank      : 5 (local_rank: 5)\n", "worker 2: fit"), -1)
      << "more ranks failed than such workers print";
  std::string rising;
  for (int number = 0; number < 9; ++number) rising += "(part " + std::to_string(number) + ") loss 0.31\n";
  EXPECT_EQ(RankIn(rising, "(part 2) loss 0.3"), -1);
  std::string gap;
  for (int i = 0; i < 4; ++i) gap += "[3] a 0.1\n[7] a 0.1\n";
  EXPECT_EQ(RankIn(gap, "[3] a 0.1"), -1) << "not from 0 on";
  std::string few = Interleaved("(chat ", ")");
  for (int i = 0; i < 40; ++i) few += "loading shard " + std::to_string(i) + "\n";
  EXPECT_EQ(RankIn(few, "(chat 2) step 4"), -1) << "a list among other lines";
}

}  // namespace
}  // namespace tacet
