// SPDX-License-Identifier: Apache-2.0
#include "base/string_table.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(StringTable, GivesTheEmptyStringTheFirstId) {
  StringTable table;
  EXPECT_EQ(table.Intern(""), StringId{});
  EXPECT_EQ(table.Get(StringId{}), "");
  EXPECT_EQ(table.size(), 1u);
}

TEST(StringTable, KeepsEveryStringOnce) {
  StringTable table;
  const StringId a = table.Intern("a"), b = table.Intern("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(table.Intern(std::string("a")), a);
  EXPECT_EQ(table.Get(b), "b");
  EXPECT_EQ(table.size(), 3u);
}

TEST(StringTable, TellsStringsWithZeroBytesApart) {
  StringTable table;
  EXPECT_NE(table.Intern(std::string_view("a\0b", 3)), table.Intern(std::string_view("a\0c", 3)));
  EXPECT_NE(table.Intern("a"), table.Intern(std::string_view("a\0", 2)));
}

TEST(StringTable, KeepsViewsValidWhileItGrowsAndMoves) {
  StringTable table;
  const StringId first = table.Intern("short");
  const std::string_view view = table.Get(first);
  for (int i = 0; i < 10'000; ++i) table.Intern("string " + std::to_string(i));
  EXPECT_EQ(table.Get(first).data(), view.data());
  StringTable moved = std::move(table);
  EXPECT_EQ(moved.Get(first), "short");
  EXPECT_EQ(moved.Intern("short"), first) << "the index moves along with the strings";
  EXPECT_EQ(moved.Intern("string 9999"), static_cast<StringId>(10'001));
}

TEST(StringTable, OwnsWhatItWasGiven) {
  StringTable table;
  StringId id{};
  {
    std::string text = "a string that is longer than any small buffer";
    id = table.Intern(text);
    text.assign(text.size(), 'x');
  }
  EXPECT_EQ(table.Get(id), "a string that is longer than any small buffer");
}

}  // namespace
}  // namespace tacet
