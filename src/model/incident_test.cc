// SPDX-License-Identifier: Apache-2.0
#include "model/incident.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

Incident TwoRanks() {
  Incident incident;
  incident.files.resize(2);
  incident.files[0].format = "nccl_log+torch_log";
  incident.files[1].format = "stacks";
  incident.processes.resize(3);
  incident.processes[0].rank = {5};
  incident.processes[0].files = {FileId{0}, FileId{1}};
  incident.processes[1].rank = {2};
  incident.processes[1].files = {FileId{1}};
  incident.processes[2].rank = {3};  // named by a peer only
  incident.process_of = {{{5}, 0}, {{2}, 1}, {{3}, 2}};
  return incident;
}

TEST(Incident, SeesRanksThatSomeFileSpeaksOf) { EXPECT_EQ(TwoRanks().RanksSeen(), (std::vector<Rank>{{2}, {5}})); }

TEST(Incident, CountsAllRanksUpToTheWorldSize) {
  Incident incident = TwoRanks();
  EXPECT_EQ(incident.AllRanks(), incident.RanksSeen()) << "no world size, no others";
  incident.world_size = 4;
  EXPECT_EQ(incident.AllRanks(), (std::vector<Rank>{{0}, {1}, {2}, {3}}));
}

TEST(Incident, BearsAWorldSizeBeyondAllBounds) {
  Incident incident = TwoRanks();
  incident.world_size = INT64_MAX;
  EXPECT_EQ(incident.AllRanks(), incident.RanksSeen());
  incident.world_size = 16384;
  incident.lists_world = false;
  EXPECT_EQ(incident.AllRanks(), incident.RanksSeen());
}

TEST(Incident, FindsAStreamByRankAndSource) {
  Incident incident = TwoRanks();
  for (const auto& [source, rank] :
       {std::pair(CallSource::flight_recorder, 0), std::pair(CallSource::flight_recorder, 2),
        std::pair(CallSource::nccl_log, 2), std::pair(CallSource::inspector, 1)}) {
    CallStream& stream = incident.streams.emplace_back();
    stream.source = source;
    stream.rank = {rank};
  }
  EXPECT_EQ(incident.StreamOf({2}, CallSource::nccl_log), &incident.streams[2]);
  EXPECT_EQ(incident.StreamOf({2}, CallSource::flight_recorder), &incident.streams[1]);
  EXPECT_EQ(incident.StreamOf({1}, CallSource::flight_recorder), nullptr);
  EXPECT_EQ(incident.StreamOf({2}, CallSource::trace), nullptr);
}

TEST(Incident, KnowsWhichFormatsSpeakOfARank) {
  const Incident incident = TwoRanks();
  EXPECT_TRUE(incident.HasFileOf({5}, "stacks"));
  EXPECT_TRUE(incident.HasFileOf({5}, "torch_log")) << "two formats share the file";
  EXPECT_TRUE(incident.HasFileOf({5}, "nccl_log"));
  EXPECT_FALSE(incident.HasFileOf({5}, "log"));
  EXPECT_FALSE(incident.HasFileOf({2}, "nccl_log"));
  EXPECT_FALSE(incident.HasFileOf({9}, "stacks"));
}

}  // namespace
}  // namespace tacet
