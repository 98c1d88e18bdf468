// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(TextScan, TakesOnlyWhatIsThere) {
  std::string_view text = "rank 3 of 8";
  EXPECT_FALSE(TakeLiteral(text, "node"));
  EXPECT_EQ(text, "rank 3 of 8");
  EXPECT_TRUE(TakeLiteral(text, "rank "));
  int32_t rank = -1;
  EXPECT_TRUE(TakeNumber(text, &rank));
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(text, " of 8");
  EXPECT_FALSE(TakeNumber(text, &rank)) << "a number does not begin with a blank";
  EXPECT_EQ(TakeWord(text), "of");
  EXPECT_EQ(TakeWord(text), "8");
  EXPECT_EQ(TakeWord(text), "");
}

TEST(TextScan, LeavesTheTextAloneWhenANumberDoesNotFit) {
  std::string_view text = "99999999999";
  int32_t value = 5;
  EXPECT_FALSE(TakeNumber(text, &value));
  EXPECT_EQ(value, 5);
  EXPECT_EQ(text, "99999999999");
  uint8_t small = 0;
  std::string_view negative = "-1";
  EXPECT_FALSE(TakeNumber(negative, &small));
}

TEST(TextScan, TakesHexWithAndWithoutPrefix) {
  uint64_t value = 0;
  for (std::string_view text : {"0x1fz", "1fz", "0X1Fz"}) {
    EXPECT_TRUE(TakeHex(text, &value));
    EXPECT_EQ(value, 0x1fu);
    EXPECT_EQ(text, "z");
  }
  std::string_view none = "0xz";
  EXPECT_FALSE(TakeHex(none, &value));
  EXPECT_EQ(none, "0xz");
  std::string_view wide = "ffffffffffffffffff";
  EXPECT_FALSE(TakeHex(wide, &value));
}

TEST(TextScan, TakesTheRestWhereThereIsNoStop) {
  std::string_view text = "a:b";
  EXPECT_EQ(TakeUntil(text, ':'), "a");
  EXPECT_EQ(text, ":b");
  EXPECT_EQ(TakeUntil(text, '#'), ":b");
  EXPECT_TRUE(text.empty());
}

TEST(TextScan, FindsNumbersAfterKeys) {
  EXPECT_EQ(IntAfter("comm 0x1 nranks 8 cudaDev 0", "nranks "), 8);
  EXPECT_EQ(IntAfter("comm 0x1f", "0x", 16), 0x1f);
  EXPECT_FALSE(IntAfter("nranks x", "nranks ").has_value());
  EXPECT_FALSE(IntAfter("", "nranks ").has_value());
  EXPECT_EQ(After("rank 3 of 8", "rank "), "3 of 8");
  EXPECT_FALSE(After("rank", "ranks").has_value());
}

TEST(TextScan, TrimsBlanksAndReturnsOnly) {
  EXPECT_EQ(Trim(" \t a b \r"), "a b");
  EXPECT_EQ(Trim(" \t"), "");
}

}  // namespace
}  // namespace tacet
