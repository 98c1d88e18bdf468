// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_outline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacet {
namespace {

TEST(LogOutline, KnowsTheHeadsOfUsualLoggers) {
  for (const char* line :
       {"INFO 11-15 08:10:46 [parallel_state.py:1325] rank 1 in world size 2 is assigned as DP rank 0",
        "> 2025-02-27 09:40:54,614 INFO worker.py:1636 -- Connected to Ray cluster.",
        "[2024-09-13 09:20:41,702] [INFO] [checkpointing.py:546:forward] ----Profiling time",
        "2025:05:26-10:00:19:(90949) |CCL_INFO| switch to ATL/OFI",
        "[NeMo I 2025-03-05 10:01:53 megatron_init:426] Rank 0 has data parallel group : [0]",
        "(EngineCore_DP0 pid=1402) (RayWorkerWrapper pid=233, ip=10.8.1.15) INFO 11-15 08:11:13 [cuda.py:417] Using "
        "it.",
        "INFO:torch.distributed.run:text"}) {
    const LogOutline outline = FindOutline(line);
    EXPECT_EQ(outline.shaped, 1) << line;
    EXPECT_EQ(outline.warnings + outline.errors, 0) << line;
  }
  const LogOutline levels = FindOutline(
      "[NeMo W 2025-03-05 10:01:53 nemo_logger:173] one\nERROR 11-15 08:10:46 [a.py:1] two\nWARNING:root:three\n");
  EXPECT_EQ(levels.warnings, 2);
  EXPECT_EQ(levels.errors, 1);
  EXPECT_EQ(levels.first_error, "ERROR 11-15 08:10:46 [a.py:1] two");
}

TEST(LogOutline, OfALongTextTheBeginningAndTheEndAreLookedAt) {
  const auto steps = [](int first, int last) {
    std::string text;
    for (int step = first; step < last; ++step)
      for (int rank = 0; rank < 2; ++rank)
        text += "[rank " + std::to_string(rank) + "] step " + std::to_string(step) + " loss 2.1 fwd 0.2s wait 0.1s\n";
    return text;
  };
  std::string text = steps(0, 10);
  uint32_t lines = 20;
  for (; text.size() < (size_t{9} << 20); ++lines) text += std::string(5000, '.') + "\n";
  text += steps(90, 100) + "[rank 1] stopping here";
  const LogOutline outline = FindOutline(text);
  ASSERT_EQ(outline.steps.size(), 40U);
  EXPECT_EQ(outline.steps.front().source.line, 1U);
  EXPECT_EQ(outline.steps.back().place, 99);
  EXPECT_EQ(outline.steps.back().source.line, lines + 20);
  ASSERT_FALSE(outline.own_lines.empty());
  EXPECT_EQ(outline.own_lines.back().source.line, lines + 21);
  EXPECT_EQ(text.compare(outline.own_lines.back().source.offset, 24, "[rank 1] stopping here"), 0);
  EXPECT_TRUE(outline.cut_end);

  const std::string one_line(size_t{20} << 20, 'x');
  EXPECT_TRUE(FindOutline(one_line).steps.empty()) << "no end of a line anywhere";
}

TEST(LogOutline, WordsOfASentenceAreNoLevel) {
  EXPECT_EQ(FindOutline("I see the INFO lines of every rank, and no ERROR.").shaped, 0);
  EXPECT_EQ(FindOutline("export NCCL_DEBUG=INFO").shaped, 0);
}

TEST(LogOutline, RanksThatPrintAndTheirNumber) {
  const LogOutline horovod = FindOutline(
      "Horovod initialized. Hostname n1, pid 15002, rank 2 / size 4, local rank 0 / local size 1.\n"
      "Horovod initialized. Hostname n2, pid 2210, rank 3 / size 4, local rank 0 / local size 1.\n");
  EXPECT_EQ(horovod.ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(horovod.world, 4);
  EXPECT_EQ(FindOutline("Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8").ranks, std::vector<int32_t>{3});
  EXPECT_EQ(FindOutline("2026-11-19 12:58:27,125 24814 INFO starting rank 3 of 4").joining.size(), 1u);
  EXPECT_TRUE(FindOutline("INFO rank 3 of 4 step 100 loss 0.4").joining.empty());
  EXPECT_EQ(FindOutline("Start running basic DDP example on rank 6.").ranks, std::vector<int32_t>{6});
  EXPECT_TRUE(FindOutline("waiting for data from rank 3").ranks.empty());
  EXPECT_TRUE(FindOutline("[Gloo] Rank 0 is connected to 0 peer ranks.").ranks.empty());
}

TEST(LogOutline, TheLastLineOfARankThatTellsOfItself) {
  const LogOutline outline = FindOutline(
      "2026-03-04 10:00:01,120 INFO train: rank 0/4: pid 4211 on gpu7\n"
      "2026-03-04 10:00:02,120 INFO train: rank 2/4: pid 4213 on gpu7\n"
      "2026-03-04 10:01:16,020 INFO train: rank 2: no more shards\n"
      "2026-03-04 10:01:16,920 INFO train: waits for rank 3: slow\n"
      "2026-03-04 10:01:17,020 ERROR train: rank 2: lost\n");
  ASSERT_EQ(outline.last_of_ranks.size(), 2u);
  EXPECT_EQ(outline.last_of_ranks[0].text, "pid 4211 on gpu7");
  EXPECT_EQ(outline.last_of_ranks[1].text, "no more shards");
  EXPECT_EQ(outline.last_of_ranks[1].source.line, 3u);
  EXPECT_EQ(outline.world, 4);
}

TEST(LogOutline, ALogOfAJobIsOne) {
  EXPECT_TRUE(IsOutlineOfAJob("INFO 11-15 08:11:13 [cuda.py:417] one\nINFO 11-15 08:11:14 [cuda.py:418] two\n"));
  EXPECT_FALSE(
      IsOutlineOfAJob("2025-04-11 09:10:02,114 INFO [main] server started\n"
                      "2025-04-11 09:10:02,519 INFO [main] handler started\n"));
  EXPECT_FALSE(IsOutlineOfAJob("How do I start it on rank 3 of my cluster?\nIt has GPUs.\nThanks\nme\nhere\n"));
}

TEST(LogOutline, HarmlessWarningsAreKnown) {
  const LogOutline outline = FindOutline(
      "[rank0]:[W827 10:11:39.967659278 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not "
      "called before program exit, which can leak resources.\n");
  ASSERT_EQ(outline.harmless.size(), 1u);
  EXPECT_EQ(outline.harmless[0].what, HarmlessWarning::process_group_left);
  EXPECT_EQ(outline.exits, 1);
  EXPECT_EQ(outline.ranks, std::vector<int32_t>{0});
}

TEST(LogOutline, TheLastLineMaySayThatTheWorkIsDone) {
  EXPECT_EQ(FindOutline("10:00:00 INFO: step 9\n10:00:01 train INFO: training finished\n").says_done,
            "training finished");
  EXPECT_EQ(FindOutline("Finished training after 24 steps\n").says_done, "Finished training after 24 steps");
  EXPECT_TRUE(FindOutline("10:00:01 INFO: training finished\n10:00:02 INFO: evaluating\n").says_done.empty());
  EXPECT_TRUE(FindOutline("10:00:01 INFO: waiting until training finished\n").says_done.empty());
  EXPECT_TRUE(
      FindOutline("10:00:01 INFO: training finished its first phase, now the second begins\n").says_done.empty());
}

TEST(LogOutline, ATellerOfAGoodEnd) {
  EXPECT_FALSE(FindOutline("TRAIN_OK steps=3   # exit 0, no hang").ended_well.empty());
  EXPECT_TRUE(FindOutline("exit 0").ended_well.empty());
  EXPECT_TRUE(FindOutline("it is not done although I see exit code 0").ended_well.empty());
}

}  // namespace
}  // namespace tacet
