// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_places.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

uint64_t Place(std::string_view text, int32_t rank) { return PlaceOf(text, rank).place; }
uint64_t Shape(std::string_view text, int32_t rank) { return PlaceOf(text, rank).shape; }

TEST(Places, MeasuredFiguresAndTheRankDoNotCount) {
  EXPECT_EQ(Place("[r3] step 13 grad 0.0493", 3), Place("[r1] step 13 grad 0.0512", 1));
  EXPECT_EQ(Place("20:24:16 rank 2 batch 7 mse 1e-05", 2), Place("20:24:17 rank 0 batch 7 mse 0.003", 0));
  EXPECT_EQ(Place("worker 1 | loss nan", 1), Place("worker 0 | loss -0.25", 0));
}

TEST(Places, WholeNumbersTellHowFarARankIs) {
  EXPECT_NE(Place("[r3] step 13 grad 0.0493", 3), Place("[r3] step 14 grad 0.0493", 3));
  EXPECT_EQ(Shape("[r3] step 13 grad 0.0493", 3), Shape("[r3] step 14 grad 0.0493", 3));
  EXPECT_NE(Shape("[r3] step 13 grad 0.0493", 3), Shape("[r3] drawing 64 maps", 3));
}

TEST(Places, ANumberThatIsTheRanksByChanceCounts) { EXPECT_NE(Place("step 2 done", 2), Place("step 3 done", 3)); }

TEST(Places, MarksThatProgramsMakeUpNameTheRank) {
  EXPECT_EQ(RankOfOwnMark("20:24:16 [r3] step 13"), 3);
  EXPECT_EQ(RankOfOwnMark("20:24:53 | 1 | index loaded"), 1);
  EXPECT_EQ(RankOfOwnMark("worker 2 | iteration 7"), 2);
  EXPECT_EQ(RankOfOwnMark("2026-11-18 20:24:30.297 rank 2: batch 10 is here"), 2);
  EXPECT_EQ(RankOfOwnMark("INFO:root:rank 1: epoch 0 train loss 0.1"), 1);
  EXPECT_EQ(RankOfOwnMark("[2] waiting for /a/b"), 2);
  EXPECT_EQ(RankOfOwnMark("step 13 of 20"), -1);
  EXPECT_EQ(RankOfOwnMark("[13/20] loss 0.1"), -1);
}

LogOutline Read(const std::vector<std::string_view>& lines) {
  PlaceReader reader;
  uint32_t number = 0;
  for (const std::string_view line : lines) reader.Read(line, -1, false, {FileId{}, ++number, 0});
  LogOutline outline;
  reader.Finish(outline);
  return outline;
}

TEST(Places, LinesOfTheLibrariesAndTracebacksAreNotTheProgram) {
  const LogOutline outline =
      Read({"[0] step 1", "frame #3: c10d::Work() + 0x80",
            "Traceback (most recent call last):", "  File \"a.py\", line 3, in f", "ValueError: no", "[0] step 2"});
  ASSERT_EQ(outline.own_lines.size(), 2u);
  EXPECT_EQ(outline.own_lines.back().text, "[0] step 2");
}

TEST(Places, TheLineOfCodeBelowAWarningIsNotTheProgram) {
  const LogOutline outline = Read({"[0] saved a.pt", "/venv/c10d_logger.py:83: UserWarning: barrier(): no device",
                                   "  return func(*args, **kwargs)", "  [0] an indented line of the program"});
  ASSERT_EQ(outline.own_lines.size(), 2u);
  EXPECT_EQ(outline.own_lines[0].text, "[0] saved a.pt");
  EXPECT_EQ(outline.own_lines[1].text, "[0] an indented line of the program");
}

TEST(Places, ALineThatIsPrintedAgainIsCounted) {
  const LogOutline outline = Read({"[1] waiting for /w/a.json", "[1] waiting for /w/a.json", "[0] wrote /w/b.json"});
  ASSERT_EQ(outline.own_lines.size(), 2u);
  EXPECT_EQ(outline.own_lines[0].times, 2);
  EXPECT_EQ(outline.own_lines[0].awaited, "/w/a.json");
  EXPECT_EQ(outline.own_lines[1].written, "/w/b.json");
}

TEST(Places, NumbersThatTakeTurnsAtTheFrontAreRanks) {
  const LogOutline outline = Read({"[ep1] capacity 64", "[ep0] capacity 96", "[ep0] step 0", "[ep1] step 0"});
  std::vector<int32_t> ranks;
  for (const OwnLine& line : outline.own_lines)
    if (line.rank >= 0) ranks.push_back(line.rank);
  EXPECT_EQ(ranks, (std::vector<int32_t>{1, 0, 0, 1}));
  ASSERT_EQ(outline.first_lines.size(), 8u);  // once as those of their marks, once as those of the file
}

TEST(Places, NumbersThatFollowEachOtherAreEpochs) {
  const LogOutline outline = Read({"[epoch0] begins", "[epoch0] ends", "[epoch1] begins", "[epoch1] ends"});
  for (const OwnLine& line : outline.own_lines) EXPECT_EQ(line.rank, -1);
}

TEST(Places, LinesThatComeAgainAreNoFirstLines) {
  const LogOutline outline =
      Read({"[0] batch 16", "[0] step 1", "[0] step 2", "[1] batch 8", "[1] step 1", "[1] step 2"});
  ASSERT_EQ(outline.first_lines.size(), 2u);
  EXPECT_EQ(outline.first_lines[0].text, "[0] batch 16");
}

TEST(Places, AWarningOfPyTorchTellsOfABarrierAndOfAnOutsider) {
  const LogOutline outline =
      Read({"rank 0: saved", "c10d_logger.py:83: UserWarning: barrier(): using the device under current context.",
            "  return func(*args, **kwargs)",
            "UserWarning: Running all_reduce on global rank 2 which does not belong to the given group."});
  ASSERT_EQ(outline.own_lines.size(), 1u);
  EXPECT_EQ(outline.barriers.size(), 1u);
  ASSERT_EQ(outline.outsiders.size(), 1u);
  EXPECT_EQ(outline.outsiders[0].rank, 2);
}

TEST(Places, WordsTellOfCommunicationAndOfNoGpu) {
  const LogOutline outline = Read({"[0] aligning the ranks first", "[1] torch sees 0 GPU(s), device = cpu",
                                   "[2] torch sees 2 GPU(s), device = cuda", "[3] cuda available: False"});
  ASSERT_EQ(outline.own_lines.size(), 4u);
  EXPECT_TRUE(outline.own_lines[0].communicates);
  EXPECT_TRUE(outline.own_lines[1].no_gpu);
  EXPECT_FALSE(outline.own_lines[2].no_gpu);
}

}  // namespace
}  // namespace tacet
