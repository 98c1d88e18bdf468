// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(Utf8SequenceLength, MeasuresWellFormedSequences) {
  EXPECT_EQ(Utf8SequenceLength("a", 0), 1u);
  EXPECT_EQ(Utf8SequenceLength("é", 0), 2u);
  EXPECT_EQ(Utf8SequenceLength("€", 0), 3u);
  EXPECT_EQ(Utf8SequenceLength("😀", 0), 4u);
  EXPECT_EQ(Utf8SequenceLength("a€", 1), 3u);
  EXPECT_EQ(Utf8SequenceLength("\xc2\xa0", 0), 2u) << "the first one past the C1 controls";
  EXPECT_EQ(Utf8SequenceLength("\xf4\x8f\xbf\xbf", 0), 4u) << "the last code point";
}

TEST(Utf8SequenceLength, RefusesMalformedOnes) {
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80",
                          "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                          "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
                          "\xc3"
                          "a",
                          "\xe2\x82"
                          "a"})
    EXPECT_EQ(Utf8SequenceLength(bad, 0), 0u) << testing::PrintToString(std::string(bad));
}

TEST(Utf8SequenceLength, RefusesC1ControlCharacters) {
  EXPECT_EQ(Utf8SequenceLength("\xc2\x9b", 0), 0u);
  EXPECT_EQ(Utf8SequenceLength("\xc2\x80", 0), 0u);
}

TEST(EscapeForTerminal, LeavesNothingATerminalObeys) {
  EXPECT_EQ(EscapeForTerminal("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(EscapeForTerminal("a\nb\r"), "a\\x0ab\\x0d");
  EXPECT_EQ(EscapeForTerminal("\x7f"), "\\x7f");
  EXPECT_EQ(EscapeForTerminal("\xc2\x9b"
                              "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(EscapeForTerminal(std::string_view("\0", 1)), "\\x00");
}

TEST(EscapeForTerminal, KeepsTextAndTurnsATabIntoABlank) {
  EXPECT_EQ(EscapeForTerminal("Größe\t€ 😀"), "Größe € 😀");
  EXPECT_EQ(EscapeForTerminal(""), "");
}

TEST(EscapeForTerminal, ShowsEachByteOfAMalformedSequence) {
  EXPECT_EQ(EscapeForTerminal("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(EscapeForTerminal("\xff"
                              "a"),
            "\\xffa");
}

TEST(EscapeForTerminal, ShowsCharactersThatTurnTheReadingOrder) {
  EXPECT_EQ(EscapeForTerminal("a\xe2\x80\xae"
                              "b"),
            "a\\u202e"
            "b")
      << "right-to-left override";
  EXPECT_EQ(EscapeForTerminal("\xe2\x81\xa6"), "\\u2066") << "isolate";
  EXPECT_EQ(EscapeForTerminal("a\xc2\xad\xe2\x80\x8b\xef\xbb\xbf"), "a\\u00ad\\u200b\\ufeff") << "nothing to see";
  EXPECT_EQ(EscapeForTerminal("\xf3\xa0\x81\x81"), "\\u{e0041}") << "a tag";
}

}  // namespace
}  // namespace tacet
