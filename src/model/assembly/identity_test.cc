// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/identity.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

Speaker Stated(int32_t rank, std::string host = "", int64_t pid = -1) {
  return {.rank = {rank}, .rank_certainty = Certainty::stated, .host = std::move(host), .pid = pid};
}
Speaker Assumed(int32_t rank, std::string host = "", int64_t pid = -1) {
  return {.rank = {rank}, .rank_certainty = Certainty::assumed, .host = std::move(host), .pid = pid};
}
Speaker Nameless(std::string host, int64_t pid) { return {.host = std::move(host), .pid = pid}; }

// Every speaker in a file of its own.
struct Joined {
  explicit Joined(const std::vector<Speaker>& speakers) {
    for (const Speaker& speaker : speakers) {
      Fragment& fragment = fragments.emplace_back();
      fragment.path = "file" + std::to_string(fragments.size());
      fragment.speakers = {speaker};
      members.push_back(fragments.size() - 1);
    }
    map = JoinSpeakers(fragments, members, incident);
  }
  int32_t RankOf(size_t file) const { return incident.processes[map[file][0]].rank.value; }
  std::vector<Fragment> fragments;
  std::vector<size_t> members;
  Incident incident;
  SpeakerMap map;
};

TEST(Identity, FilesOfOneStatedRankAreOneProcess) {
  const Joined joined({Stated(3, "node1", 77), Stated(3), Stated(4)});
  EXPECT_EQ(joined.incident.processes.size(), 2u);
  EXPECT_EQ(joined.map[0], joined.map[1]);
  EXPECT_EQ(joined.incident.processes[joined.map[1][0]].pid, 77);
}

TEST(Identity, AProcessIsKnownByHostAndPid) {
  const Joined joined({Stated(3, "node1", 77), Nameless("node1", 77)});
  EXPECT_EQ(joined.RankOf(1), 3);
  EXPECT_EQ(joined.incident.processes.size(), 1u);
}

TEST(Identity, EqualPidsOnTwoHostsAreTwoProcesses) {
  const Joined joined({Stated(0, "node1", 77), Stated(8, "node2", 77), Nameless("node2", 77), Nameless("node1", 77)});
  EXPECT_EQ(joined.RankOf(2), 8);
  EXPECT_EQ(joined.RankOf(3), 0);
  EXPECT_EQ(FindByPid(joined.incident, 77, ""), kNobody) << "a pid alone names neither of them";
  EXPECT_EQ(FindByPid(joined.incident, 77, "node2"), joined.map[1][0]);
}

TEST(Identity, APidUnderTheNamesOfHostAndPodIsThatOfTheRank) {
  const Joined joined({Stated(1, "node1", 77), Nameless("train-worker-1", 77)});
  EXPECT_EQ(FindByPid(joined.incident, 77, ""), joined.map[0][0]);
}

TEST(Identity, HostNamesAreComparedUpToTheFirstDot) {
  const Joined joined({Stated(5, "node1", 77), Nameless("node1.cluster.example", 77)});
  EXPECT_EQ(joined.RankOf(1), 5);
}

TEST(Identity, AnAddressMayBeAnyHost) {
  const Joined joined({Stated(5, "node1", 77), Nameless("10.0.0.7", 77)});
  EXPECT_EQ(joined.RankOf(1), 5);
}

TEST(Identity, WhatTheContentStatesBeatsTheFileName) {
  // A launcher numbers its files by local rank: the file called 1 holds the process of rank 9.
  const Joined joined({Stated(9, "node2", 500), Assumed(1, "node2", 500), Stated(1, "node1", 400)});
  EXPECT_EQ(joined.RankOf(1), 9);
  EXPECT_EQ(joined.map[0], joined.map[1]);
  EXPECT_NE(joined.map[1], joined.map[2]);
}

TEST(Identity, AFileNameIsGoodEnoughWhereNothingElseSpeaks) {
  const Joined joined({Assumed(2), Assumed(2), Assumed(3)});
  EXPECT_EQ(joined.incident.processes.size(), 2u);
  EXPECT_EQ(joined.incident.processes[joined.map[0][0]].rank_certainty, Certainty::assumed);
}

TEST(Identity, ANamelessProcessStaysOneOfItsOwn) {
  const Joined joined({Stated(0, "node1", 77), Nameless("node1", 78), Nameless("node1", 78)});
  EXPECT_EQ(joined.incident.processes.size(), 2u);
  EXPECT_EQ(joined.RankOf(1), -1);
  EXPECT_EQ(joined.map[1], joined.map[2]);
}

TEST(Identity, TheLargestToldWorldSizeCounts) {
  Speaker a = Stated(0), b = Stated(1);
  a.world_size = 8;
  b.world_size = 16;
  EXPECT_EQ(Joined({a, b}).incident.world_size, 16);
}

TEST(Identity, APidOfAnotherAddressIsAnotherProcess) {
  const Joined joined({Stated(9, "10.44.3.17", 5120)});
  EXPECT_EQ(FindByPid(joined.incident, 5120, "10.44.3.29"), kNobody);
  EXPECT_EQ(FindByPid(joined.incident, 5120, "10.44.3.17"), joined.map[0][0]);
  EXPECT_EQ(FindByPid(joined.incident, 5120, "0.0.0.0"), joined.map[0][0]) << "every host has it";
  EXPECT_EQ(FindByPid(joined.incident, 5120, "node4"), joined.map[0][0]) << "a name and an address may be one host";
}

TEST(Identity, AnUnknownPidIsNobody) {
  const Joined joined({Stated(0), Stated(1)});
  EXPECT_EQ(FindByPid(joined.incident, -1, ""), kNobody);
  EXPECT_EQ(FindByPid(joined.incident, 5, ""), kNobody);
}

}  // namespace
}  // namespace tacet
