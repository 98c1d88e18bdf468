// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/message_facts.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(MessageFacts, ReadALinkLocalGid) {
  EXPECT_EQ(ReadLinkLocalGidIndex("next state RTR, local GID index 0, local GID fe80::1, remote GID fe80::2"), 0);
  EXPECT_EQ(ReadEmptyGidIndex("local GID index 7, local GID ::, remote GID ::ffff:10.0.0.2"), 7);
  EXPECT_EQ(ReadEmptyGidIndex("local GID index 3, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.0.2"), -1);
  EXPECT_EQ(ReadLinkLocalGidIndex("local GID index 3, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.0.2"), -1);
}

TEST(MessageFacts, ReadHowManyLinesRayLeftOut) {
  EXPECT_EQ(ReadFoldedLines("before timing out. [repeated 6x across cluster] (Ray deduplicates logs by default."), 6);
  EXPECT_EQ(ReadFoldedLines("before timing out."), 0);
}

}  // namespace
}  // namespace tacet
