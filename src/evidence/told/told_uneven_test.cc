// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_uneven.h"

#include <gtest/gtest.h>

#include "evidence/told/told_words.h"

namespace tacet {
namespace {

TEST(ToldUneven, InputOfDifferentSizesIsTold) {
  for (const char* sentence :
       {"so the gpus do not get the same size in an iteration", "sequence lengths vary a lot across ranks",
        "every rank waits for the one with the longest sequences", "each gpu draws images of a different resolution"})
    EXPECT_TRUE(StatesUnevenInput(sentence)) << sentence;
}

TEST(ToldUneven, OtherSizesAndQuestionsAreNone) {
  for (const char* sentence :
       {"all gpus get images of the same size", "could the sequence lengths vary across ranks",
        "busbw differs with the message size across ranks", "the memory of each gpu has a different size",
        "different sizes are logged", "do the gpus get different image sizes?"})
    EXPECT_FALSE(StatesUnevenInput(sentence)) << sentence;
}

TEST(ToldUneven, IsAnEventOfTheTextBesideSlowness) {
  Fragment fragment;
  AddToldWords("Training is slower on two GPUs. Batches have different lengths on each GPU.\n", fragment);
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::told_uneven);
  EXPECT_EQ(fragment.events[1].kind, EventKind::told_slow);
}

}  // namespace
}  // namespace tacet
