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

}  // namespace
}  // namespace tacet
