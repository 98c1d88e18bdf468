// SPDX-License-Identifier: Apache-2.0
#include "base/digit_groups.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(DigitGroups, GroupsFromTenThousandOn) {
  EXPECT_EQ(GroupDigits("0"), "0");
  EXPECT_EQ(GroupDigits("9999"), "9999");
  EXPECT_EQ(GroupDigits("10000"), "10,000");
  EXPECT_EQ(GroupDigits("65535"), "65,535");
  EXPECT_EQ(GroupDigits("123456"), "123,456");
  EXPECT_EQ(GroupDigits("1234567"), "1,234,567");
}

}  // namespace
}  // namespace tacet
