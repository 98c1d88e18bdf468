// SPDX-License-Identifier: Apache-2.0
#include "rules/words/message_words.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(MessageWords, TakesTheFirstLineWithoutItsEndMarks) {
  EXPECT_EQ(MessageWords("mat1 and mat2 do not fit.\nmore"), "mat1 and mat2 do not fit");
  EXPECT_EQ(MessageWords("loading shards..."), "loading shards...");
  EXPECT_EQ(MessageWords(""), "");
}

TEST(MessageWords, AddsTheNextLineWhereTheFirstOnlyAnnouncesIt) {
  EXPECT_EQ(MessageWords("Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight.\n\tand more"),
            "Error(s) in loading state_dict for Net: size mismatch for fc.weight");
  EXPECT_EQ(MessageWords("while reading:"), "while reading");
}

TEST(MessageWords, CutsAtAWordAndSaysSo) {
  EXPECT_EQ(MessageWords("cannot open the file, or directory", 24), "cannot open the file, or...");
  EXPECT_EQ(MessageWords("cannot open the file, or directory", 22), "cannot open the file...");
  // A mangled name is longer than what may be shown.
  EXPECT_EQ(MessageWords("no _ZNK2at6Tensor7optionsEvABCDEF", 20), "no _ZNK2at6Tensor7op...");
  EXPECT_EQ(MessageWords("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5), "\xc3\xa9\xc3\xa9...");
}

TEST(LoaderWorkerWords, TellWhoseChildItWasAndHowItEnded) {
  Event event;
  event.Make<Raised>().about = LoaderWorkerEnd{"4161", 9};
  EXPECT_EQ(LoaderWorkerWords(event, "rank 3"), "a data loader worker of rank 3 (pid 4161) was killed (SIGKILL)");
  event.Make<Raised>().about = LoaderWorkerEnd{"4161, 4162", 0};
  EXPECT_EQ(LoaderWorkerWords(event, "a rank"), "data loader workers of a rank (pids 4161, 4162) exited unexpectedly");
}

}  // namespace
}  // namespace tacet
