// SPDX-License-Identifier: Apache-2.0
#include "model/group.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(Group, FindsItsMembers) {
  Group group;
  group.members = {{4}, {0}, {7}};
  EXPECT_EQ(group.IndexOf({7}).value, 2);
  EXPECT_TRUE(group.HasMember({0}));
  EXPECT_FALSE(group.HasMember({1}));
}

TEST(Group, DoesNotTakeAnUnknownPlaceForAnUnknownRank) {
  Group group;
  group.members = {{4}, {}};
  EXPECT_FALSE(group.HasMember(Rank{}));
  EXPECT_FALSE(group.IndexOf(Rank{}).known());
}

TEST(Group, IsCalledByTheBestNameItHas) {
  Group group;
  EXPECT_EQ(group.Label(), "group");
  group.comm_id = 0xabc;
  EXPECT_EQ(group.Label(), "communicator 0xabc");
  group.hidden_id = true;  // no log prints it
  group.size = 2;
  EXPECT_EQ(group.Label(), "communicator of 2 ranks");
  group.members = {{4}, {}};
  EXPECT_EQ(group.Label(), "communicator of 2 ranks") << "one of them is not known";
  group.members = {{4}, {6}};
  EXPECT_EQ(group.Label(), "communicator of ranks 4, 6");
  group.ordinal = 2;
  EXPECT_EQ(group.Label(), "communicator 2 of ranks 4, 6") << "another one has the same members";
  group.name = "3";
  EXPECT_EQ(group.Label(), "group 3");
  group.name = "71994ac1cc1bb1ff";
  EXPECT_EQ(group.Label(), "group 71994ac1") << "a hash is long enough with eight digits";
  group.description = "undefined";
  EXPECT_EQ(group.Label(), "group 71994ac1") << "PyTorch's word for no description";
  group.description = "mesh_dp";
  EXPECT_EQ(group.Label(), "mesh_dp");
}

}  // namespace
}  // namespace tacet
