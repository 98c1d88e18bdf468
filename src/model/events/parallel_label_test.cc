// SPDX-License-Identifier: Apache-2.0
#include "model/events/parallel_label.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(ParallelLabel, TheTensorRankIsTheRankOfTheFirstReplicaAndStage) {
  EXPECT_EQ(RankOfParallelLabel("TP3"), 3);
  EXPECT_EQ(RankOfParallelLabel("DP0 TP3"), 3);
  EXPECT_EQ(RankOfParallelLabel("DP0_TP11_EP11"), 11);
}

TEST(ParallelLabel, OfAnotherReplicaOrStageItIsNotKnown) {
  EXPECT_EQ(RankOfParallelLabel("DP1 TP3"), -1);
  EXPECT_EQ(RankOfParallelLabel("PP1 TP3 EP3"), -1);
  EXPECT_EQ(RankOfParallelLabel("DP2"), -1);
}

TEST(ParallelLabel, OtherWordsAreNoName) {
  EXPECT_EQ(RankOfParallelLabel("TP"), -1);
  EXPECT_EQ(RankOfParallelLabel("TP3 done"), -1);
  EXPECT_EQ(RankOfParallelLabel("UTC"), -1);
  EXPECT_EQ(RankOfParallelLabel(""), -1);
}

}  // namespace
}  // namespace tacet
