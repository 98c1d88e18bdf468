// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/stack.h"

namespace tacet {
namespace {

Frame At(uint32_t function, uint32_t line) { return {static_cast<StringId>(function), static_cast<StringId>(1), line}; }

TEST(StackTable, GivesTheEmptyStackTheFirstId) {
  StackTable table;
  EXPECT_EQ(table.Intern({}), StackId{});
  EXPECT_TRUE(table.Get(StackId{}).empty());
  EXPECT_EQ(table.size(), 1u);
}

TEST(StackTable, KeepsEveryStackOnce) {
  StackTable table;
  const StackId a = table.Intern({At(1, 10), At(2, 20)});
  const StackId b = table.Intern({At(2, 20), At(1, 10)});
  EXPECT_NE(a, b) << "order matters";
  EXPECT_EQ(table.Intern({At(1, 10), At(2, 20)}), a);
  EXPECT_NE(table.Intern({At(1, 10)}), a);
  EXPECT_NE(table.Intern({At(1, 11), At(2, 20)}), a) << "another line is another place";
  EXPECT_EQ(table.Get(b)[0].line, 20u);
}

TEST(StackTable, StaysExactWithManyStacks) {
  StackTable table;
  std::vector<StackId> ids;
  for (uint32_t i = 0; i < 20'000; ++i) ids.push_back(table.Intern({At(i % 100, i), At(7, i / 3)}));
  EXPECT_EQ(table.size(), 20'001u);
  for (uint32_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(table.Get(ids[i])[0], At(i % 100, i));
    EXPECT_EQ(table.Intern({At(i % 100, i), At(7, i / 3)}), ids[i]);
  }
}

TEST(StackTable, MovesWithItsIndex) {
  StackTable table;
  const StackId a = table.Intern({At(1, 10)});
  StackTable moved = std::move(table);
  EXPECT_EQ(moved.Intern({At(1, 10)}), a);
  EXPECT_EQ(moved.Get(a)[0], At(1, 10));
}

}  // namespace
}  // namespace tacet
