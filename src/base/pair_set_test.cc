// SPDX-License-Identifier: Apache-2.0
#include "base/pair_set.h"

#include <gtest/gtest.h>

#include <string>

namespace tacet {
namespace {

TEST(PairSet, HoldsEveryPartOfItsText) {
  const std::string text = "rank 3 hangs in all_reduce \xe5\x8d\xa1\xe4\xbd\x8f, and nothing more is printed";
  const PairSet pairs(text);
  for (size_t begin = 0; begin < text.size(); ++begin)
    for (size_t size = 0; begin + size <= text.size(); ++size)
      EXPECT_TRUE(pairs.MayHold(std::string_view(text).substr(begin, size))) << begin << ", " << size;
}

TEST(PairSet, HoldsWhatItsTextHolds) {
  const PairSet pairs("epoch 3: all gradients of rank 2 are reduced");
  EXPECT_TRUE(pairs.Holds("rank 2"));
  EXPECT_FALSE(pairs.Holds("rank 3"));
  EXPECT_FALSE(pairs.Holds("gradients are")) << "all of its pairs are there, and it is not";
  EXPECT_TRUE(pairs.HoldsAny({"step", "epoch"}));
  EXPECT_FALSE(pairs.HoldsAny({"step", "batch"}));
  EXPECT_FALSE(pairs.HoldsAny({}));
}

TEST(PairSet, RefusesWordsOfOtherPairs) {
  const PairSet pairs("rank 3 hangs in all_reduce");
  for (const char* word : {"stuck", "freezes", "deadlock", "zz", "stalls"}) EXPECT_FALSE(pairs.MayHold(word)) << word;
  EXPECT_FALSE(PairSet("").MayHold("ab"));
  EXPECT_TRUE(PairSet("").MayHold(""));
  EXPECT_TRUE(PairSet("").MayHold("a"));  // one character says nothing
}

}  // namespace
}  // namespace tacet
