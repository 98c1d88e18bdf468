// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_title.h"

#include <gtest/gtest.h>

#include "evidence/told/told_words.h"

namespace tacet {
namespace {

TEST(ToldTitle, HeadsOfFormsAreTakenOff) {
  EXPECT_EQ(TitleWords("# [Bug]: it hangs"), "it hangs");
  EXPECT_EQ(TitleWords("### Question: slow on two hosts"), "slow on two hosts");
  EXPECT_EQ(TitleWords("\xF0\x9F\x90\x9B [BUG][NCCL] it hangs"), "it hangs");
  EXPECT_EQ(TitleWords("Reduce hangs"), "Reduce hangs");
}

TEST(ToldTitle, AVerbSaysThatItHappened) {
  for (const char* title :
       {"# NCCL test hangs between GPU2 and GPU3", "[Bug]: Two cards hang without NCCL_P2P_DISABLE=1 and --no-graph",
        "[BUG] server hang", "Help: training gets stuck after the first epoch", "Broadcast stuck at 100 %"})
    EXPECT_TRUE(TitleSaysItHangs(title)) << title;
  for (const char* title :
       {"# Add a hang detection test", "Fix a hang in the data loader", "Why does it hang?", "step=10 hang=0 stuck=0",
        "[Feature] watchdog that tells which rank hangs if a collective does not end"})
    EXPECT_FALSE(TitleSaysItHangs(title)) << title;
}

TEST(ToldTitle, ALineThatOtherLinesFollowIsNone) {
  EXPECT_EQ(TitleOf("it hangs\n\nstep 1\n"), "it hangs");
  EXPECT_EQ(TitleOf("it hangs\n```\nstep 1\n```\n"), "it hangs");
  EXPECT_EQ(TitleOf("it hangs\nstep 1\n"), "");
}

TEST(ToldTitle, OnlyTheReasonIsSought) {
  EXPECT_TRUE(SaysItHangs("I am unable to figure out why the process is hanging after this message."));
  EXPECT_TRUE(SaysItHangs("Does anybody know why it gets stuck at the barrier?"));
  EXPECT_FALSE(SaysItHangs("I want to know why it does not hang on the other machine"));
  EXPECT_FALSE(SaysItHangs("Why does it hang with two nodes?"));
}

TEST(ToldTitle, LessThanExpectedIsSlow) {
  EXPECT_TRUE(SaysItIsSlow("It seems that the average bandwidth is not as good as expected here"));
  EXPECT_FALSE(SaysItIsSlow("the bandwidth is as good as expected on these machines"));
}

TEST(ToldTitle, ACollectiveThatGivesWrongResults) {
  EXPECT_TRUE(SaysItIsWrong("the result shows \"Out of bounds values : 248 FAILED\", and I have no idea about it"));
  EXPECT_TRUE(SaysItIsWrong("On these two hosts the all_reduce gives wrong results for large sizes"));
  for (const char* line :
       {"# Out of bounds values : 248 FAILED", "Out of bounds values : 0 OK, as it should be on all of them",
        "Does the all_reduce give wrong results on your hosts?", "The model gives wrong results in the evaluation",
        "A missing barrier may lead to wrong results of the all_reduce"})
    EXPECT_FALSE(SaysItIsWrong(line)) << line;
}

}  // namespace
}  // namespace tacet
