// SPDX-License-Identifier: Apache-2.0
#include "model/rank_room.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/assembly/assembly.h"

namespace tacet {
namespace {

TEST(RankRoom, HasRoomForOneLogOfAVeryLargeJobAndNotForAMadeUpOne) {
  RankRoom room(500);
  EXPECT_TRUE(room.TakeRanks(16384));
  EXPECT_TRUE(room.TakeMembers(16384));
  EXPECT_FALSE(room.TakeRanks(10'000'000));
  EXPECT_FALSE(room.TakeMembers(INT32_MAX));
  EXPECT_FALSE(room.TakeMembers(-1));
  EXPECT_TRUE(room.TakeMembers(16384)) << "what was refused costs nothing";
}

TEST(RankRoom, GrowsWithTheInput) {
  RankRoom room(uint64_t{16} << 30);
  EXPECT_TRUE(room.TakeRanks(1'000'000));
  EXPECT_TRUE(RankRoom(UINT64_MAX).TakeRanks(1'000'000));
}

// One file of `bytes` that knows place 3 of a communicator of `size`.
Fragment FileOf(int32_t size, uint64_t bytes) {
  Fragment fragment;
  fragment.path = "rank3.log";
  fragment.format = "nccl_log";
  fragment.bytes = {bytes, bytes, 0, 0};
  fragment.speakers.push_back({.rank = {3}, .rank_certainty = Certainty::stated, .world_size = size});
  Group group;
  group.comm_id = 7;
  group.size = size;
  group.places = {{{3}, {3}}};
  fragment.groups.push_back(group);
  return fragment;
}

Incident Joined(std::vector<Fragment> fragments) {
  auto jobs = Assemble(std::move(fragments));
  EXPECT_EQ(jobs.size(), 1u);
  return std::move(jobs.at(0));
}

TEST(Assembly, WritesOutTheMembersOfATruthfulJob) {
  std::vector<Fragment> fragments;
  fragments.push_back(FileOf(16384, 400));
  const Incident incident = Joined(std::move(fragments));
  EXPECT_EQ(incident.world_size, 16384);
  EXPECT_EQ(incident.AllRanks().size(), 16384u);
  ASSERT_EQ(incident.groups.at(0).members.size(), 16384u);
  EXPECT_EQ(incident.groups[0].members[3], Rank{3});
  EXPECT_EQ(incident.groups[0].members[16383], Rank{16383});
  EXPECT_TRUE(incident.diagnostics.empty());
}

TEST(Assembly, JoinsThePlacesThatSeveralFilesKnow) {
  std::vector<Fragment> fragments;
  for (const int32_t rank : {4, 6}) {
    fragments.push_back(FileOf(2, 400));
    fragments.back().path = "rank" + std::to_string(rank) + ".log";
    fragments.back().speakers[0].rank = {rank};
    fragments.back().speakers[0].world_size = 8;
    fragments.back().groups[0].places = {{{rank == 4 ? 0 : 1}, {rank}}};
  }
  const Incident incident = Joined(std::move(fragments));
  EXPECT_EQ(incident.groups.at(0).members, (std::vector<Rank>{{4}, {6}}));
  EXPECT_TRUE(incident.groups[0].places.empty());
}

TEST(Assembly, KeepsTheNumberAndListsWhomItSawWhereTheClaimIsTooLargeForTheInput) {
  for (const int32_t size : {10'000'000, INT32_MAX}) {
    std::vector<Fragment> fragments;
    fragments.push_back(FileOf(size, 562));
    const Incident incident = Joined(std::move(fragments));
    EXPECT_EQ(incident.world_size, size);
    EXPECT_EQ(incident.AllRanks(), (std::vector<Rank>{{3}}));
    EXPECT_TRUE(incident.groups.at(0).members.empty());
    EXPECT_EQ(incident.groups[0].size, size);
    ASSERT_EQ(incident.diagnostics.size(), 2u);
    EXPECT_EQ(incident.diagnostics[0].code, "claimed-ranks");
    EXPECT_EQ(incident.diagnostics[1].code, "claimed-members");
  }
}

TEST(Assembly, SharesTheRoomBetweenTheJobsOfOneInput) {
  std::vector<Fragment> fragments;
  for (int job = 0; job < 100; ++job) {
    fragments.push_back(FileOf(16384, 400));
    fragments.back().path = "run" + std::to_string(job) + "/rank3.log";
    fragments.back().groups[0].comm_id = static_cast<uint64_t>(job) + 1;
  }
  size_t listed = 0;
  for (const Incident& job : Assemble(std::move(fragments))) listed += job.lists_world ? 1 : 0;
  EXPECT_GE(listed, 1u);
  EXPECT_LT(listed, 10u);
}

}  // namespace
}  // namespace tacet
