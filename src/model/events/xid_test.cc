// SPDX-License-Identifier: Apache-2.0
#include "model/events/xid.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacet {
namespace {

TEST(Xid, TheTableIsSortedWithoutDoublesAndComplete) {
  const auto all = AllXids();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.code < b.code; }));
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(i == 0 || all[i].code != all[i - 1].code);
    EXPECT_FALSE(all[i].name.empty() || all[i].meaning.empty() || all[i].advice.empty()) << all[i].code;
    EXPECT_TRUE(all[i].meaning.ends_with('.') && all[i].advice.ends_with('.')) << all[i].code;
    EXPECT_EQ(FindXid(all[i].code), &all[i]);
  }
}

TEST(Xid, KnowsWhoIsToBlame) {
  EXPECT_EQ(FindXid(79)->origin, XidOrigin::hardware);
  EXPECT_EQ(FindXid(45)->origin, XidOrigin::consequence);
  EXPECT_EQ(FindXid(43)->origin, XidOrigin::application);
  EXPECT_EQ(FindXid(119)->origin, XidOrigin::driver);
  EXPECT_EQ(FindXid(31)->origin, XidOrigin::either);
  EXPECT_FALSE(FindXid(63)->ends_process);
  EXPECT_FALSE(FindXid(92)->ends_process);
}

TEST(Xid, UnknownNumbersHaveNoMeaning) {
  EXPECT_EQ(FindXid(0), nullptr);
  EXPECT_EQ(FindXid(-1), nullptr);
  EXPECT_EQ(FindXid(33), nullptr);
  EXPECT_EQ(FindXid(99999), nullptr);
}

}  // namespace
}  // namespace tacet
