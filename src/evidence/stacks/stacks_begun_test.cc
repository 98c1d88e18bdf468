// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "evidence/format.h"

namespace tacet {

extern const Format kStacksFormat;

namespace {

TEST(StacksBegun, ADumpThatWasOnlyBegunStillShowsItsProcess) {
  const std::string_view text = "Timeout (0:00:28)!\n";
  EXPECT_EQ(kStacksFormat.recognise(text, "stack_rank3.txt"), Recognition::yes);
  Fragment fragment;
  kStacksFormat.read({"stack_rank3.txt", text}, fragment);
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_TRUE(fragment.threads.empty());
}

TEST(StacksBegun, WordsOfAJobThatLookSimilarAreNone) {
  EXPECT_EQ(kStacksFormat.recognise("Timeout (seconds): 30\n", "stdout_rank3.log"), Recognition::no);
}

Fragment ReadDump(std::string_view text) {
  Fragment fragment;
  kStacksFormat.read({"paste.txt", text}, fragment);
  return fragment;
}

std::string Spy(int pid, std::string_view command) {
  const std::string id = std::to_string(pid);
  return "Process " + id + ": " + std::string(command) + "\nPython v3.10.12 (/usr/bin/python3.10)\n\nThread " + id +
         " (idle): \"MainThread\"\n    train (train.py:274)\n\n";
}

TEST(StacksInOneFile, TheCommandTellsWhichRankAProcessIs) {
  const Fragment job = ReadDump(Spy(10, "python train.py --local_rank=0") + Spy(11, "python train.py --local_rank=1"));
  ASSERT_EQ(job.speakers.size(), 2u);
  EXPECT_EQ(job.speakers[1].rank, Rank{1});
  EXPECT_EQ(job.speakers[1].pid, 11);
  EXPECT_EQ(ReadDump(Spy(10, "env RANK=9 LOCAL_RANK=1 python train.py")).speakers.at(0).rank, Rank{9});
}

TEST(StacksInOneFile, ALocalRankThatTwoProcessesHaveIsNoRankOfTheJob) {
  const Fragment nodes =
      ReadDump(Spy(10, "python train.py --local_rank=0") + Spy(21, "python train.py --local_rank=0"));
  ASSERT_EQ(nodes.speakers.size(), 2u);
  EXPECT_FALSE(nodes.speakers[0].rank.known());
  EXPECT_FALSE(ReadDump(Spy(10, "python t.py --node_rank=1 --local_rank=0")).speakers.at(0).rank.known());
}

TEST(StacksInOneFile, AHeadingTellsWhoseStackFollowsAtOnce) {
  const std::string stack =
      "Thread 0x7FA6E7C01740 (idle): \"MainThread\"\n    get (queue.py:170)\n    main (train.py:16)\n";
  const Fragment two = ReadDump("The stack for rank0:\n```\n" + stack + "```\nrank 3 is here:\n" + stack);
  ASSERT_EQ(two.speakers.size(), 2u);
  EXPECT_EQ(two.speakers[0].rank, Rank{0});
  EXPECT_EQ(two.speakers[1].rank, Rank{3});
  for (const char* above : {"rank 3 failed, rank 4 too:\n", "rank 3:\na\nb\nc\nd\n", "rank 3 hangs\n", "Ranking 3:\n"})
    EXPECT_FALSE(ReadDump(above + stack).speakers.at(0).rank.known()) << above;
}

}  // namespace
}  // namespace tacet
