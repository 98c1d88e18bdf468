// SPDX-License-Identifier: Apache-2.0
#include "base/byte_cursor.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(ByteCursor, ReadsBothByteOrders) {
  ByteCursor cursor(std::string_view(
      "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x40\x09\x21\xfb\x54\x44\x2d\x18", 23));
  EXPECT_EQ(cursor.U8(), 1u);
  EXPECT_EQ(cursor.U16Le(), 0x0302u);
  EXPECT_EQ(cursor.U32Le(), 0x07060504u);
  EXPECT_EQ(cursor.U64Le(), 0x0f0e0d0c0b0a0908u);
  EXPECT_DOUBLE_EQ(cursor.F64Be(), 3.141592653589793);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_TRUE(cursor.ok());
}

TEST(ByteCursor, GivesZeroForEverythingPastTheEnd) {
  ByteCursor cursor("abc");
  EXPECT_EQ(cursor.U32Le(), 0u);
  EXPECT_FALSE(cursor.ok());
  EXPECT_EQ(cursor.U8(), 0u) << "one failed read ends all reading";
  EXPECT_EQ(cursor.Bytes(1), "");
}

TEST(ByteCursor, RefusesALengthThatWrapsAround) {
  ByteCursor cursor("abc");
  cursor.U8();
  EXPECT_EQ(cursor.Bytes(UINT64_MAX), "");
  EXPECT_FALSE(cursor.ok());
}

TEST(ByteCursor, HandsOutBytesAndCountsWhatIsLeft) {
  ByteCursor cursor("abcdef");
  EXPECT_EQ(cursor.Bytes(4), "abcd");
  EXPECT_EQ(cursor.left(), 2u);
  EXPECT_EQ(cursor.offset(), 4u);
  EXPECT_EQ(cursor.Bytes(0), "");
  EXPECT_TRUE(cursor.ok());
}

}  // namespace
}  // namespace tacet
