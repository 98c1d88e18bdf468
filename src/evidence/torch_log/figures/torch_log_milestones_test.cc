// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_milestones.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/torch_log/figures/torch_log_outline.h"

namespace tacet {
namespace {

TEST(RankMark, LoggersMarkTheirLinesInManyWays) {
  for (const char* line :
       {"[rank5] loss 0.1", "[Rank 5] loss 0.1", "[rank 5] loss 0.1", "rank 5: loss 0.1", "Rank 5 | loss 0.1",
        "(RANK 5) loss 0.1", "[rank=5] loss 0.1", "[INFO|RANK=5] loss 0.1", "[rank: 5] loss 0.1",
        "2026-03-03 21:40:00,118 INFO: [rank 5] loss 0.1", "[2026-03-03 21:40:00] [Rank 5] loss 0.1"}) {
    const RankMark mark = FindRankMark(line);
    EXPECT_EQ(mark.rank, 5) << line;
    EXPECT_EQ(mark.rest, "loss 0.1") << line;
  }
}

TEST(RankMark, OthersAreNotTheOneThatPrints) {
  for (const char* line :
       {"waiting for [rank 3] to arrive", "[local_rank 0] loss 0.1", "[PG 1 (dp) Rank 0] text", "[rank3", "[rank x] a",
        "ranks 0: a", "rank 3 is not here", "timeout, rank 3: gone", "[peer rank 2] lost", "", "[rank 1.5] a"})
    EXPECT_EQ(FindRankMark(line).rank, -1) << line;
}

TEST(RankMark, ASentenceMayBeginWithTheRank) {
  EXPECT_EQ(FindRankAtFront("rank=1 finished all 40 steps"), 1);
  EXPECT_EQ(FindRankAtFront("[rank2] finished"), 2);
  EXPECT_EQ(FindRankAtFront("ranks 0 and 1 finished"), -1);
  EXPECT_EQ(FindRankAtFront("finished on rank 1"), -1);
}

TEST(Milestones, ARankIsAtWorkOnceItIsFurtherThanBefore) {
  const std::string one = "[rank0] Scoring:  4%|#  | 210/5000 [05:40<2:10:00,  1.61s/it]\n";
  EXPECT_TRUE(FindOutline(one + one).at_work.empty());
  const LogOutline outline = FindOutline(one + "[rank0] Scoring:  5%|#  | 211/5000 [05:42<2:09:58,  1.61s/it]\n" +
                                         "[rank0] Scoring:  5%|#  | 211/5000 [06:42<2:09:58,  1.61s/it]\n");
  ASSERT_EQ(outline.at_work.size(), 1u);
  EXPECT_EQ(outline.at_work[0].rank, 0);
  EXPECT_EQ(outline.at_work[0].source.line, 2u);
  EXPECT_EQ(outline.ranks, std::vector<int32_t>{0});
}

TEST(Milestones, WhatWasSavedIsNamed) {
  EXPECT_EQ(FindOutline("  successfully saved checkpoint from iteration   18203 to /ck/g [ t 1/8 ]\n").saved.words,
            "the checkpoint of iteration 18203");
  EXPECT_EQ(FindOutline("last_model_checkpoint: /out/v4/checkpoint-486\n").saved.words, "checkpoint-486");
  EXPECT_EQ(FindOutline("Saved model to /out/final\n").saved.words, "checkpoint final");
  for (const char* line : {"could not be saved: checkpoint saved.pt is not complete\n", "Saving checkpoint to /a/b\n",
                           "Loading the model saved in /a/b\n", "checkpoint saved: failed\n"})
    EXPECT_FALSE(FindOutline(line).saved) << line;
}

TEST(Milestones, StepsBehindTheEndOfATrainingTakeItBack) {
  const std::string end = "Training finished\n", full = "100%|####| 640/640 [2:26:51<00:00, 13.77s/it]\n";
  EXPECT_TRUE(FindOutline(end).trained);
  EXPECT_TRUE(FindOutline(end + full).trained);
  EXPECT_FALSE(FindOutline(end + "step 12 loss 0.4\n").trained);
  EXPECT_FALSE(FindOutline(end + "Starting evaluation\n").trained);
}

TEST(Milestones, AServerThatRefusesServesNobody) {
  const std::string up = "(APIServer pid=7) INFO:     Application startup complete.\n";
  const std::string good = "INFO:     10.0.0.9:5 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
  EXPECT_EQ(FindOutline(up).served.words, "Application startup complete");
  EXPECT_EQ(FindOutline(up + good).served.words, "POST /v1/completions 200");
  EXPECT_FALSE(
      FindOutline(good + "INFO:     10.0.0.9:5 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error\n")
          .served);
  EXPECT_TRUE(IsOutlineOfAJob(good));
  EXPECT_FALSE(IsOutlineOfAJob("1.2.3.4 - - \"GET /index.html HTTP/1.1\" 200 512\n"));
}

}  // namespace
}  // namespace tacet
