// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/own_way.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

OwnWay::Kind WayOfRank0(const std::vector<std::pair<int32_t, std::string>>& lines) {
  JobSketch job(3);
  job.GiveOutputs();
  Incident incident = job.Finish();
  LogOutline& outline = incident.outlines.emplace_back();
  const std::hash<std::string> hash;
  for (const auto& [rank, text] : lines)
    outline.own_lines.push_back({rank, false, hash("line"), hash("line"), 1, text, {}, {}, {}});
  RankLife life;
  life.rank = Rank{0};
  return FindOwnWay(ReadPrintedLines(incident), life).kind;
}

TEST(OwnWay, ARankAtTheLineOfAllOthersIsBehindThatLine) {
  EXPECT_EQ(
      WayOfRank0({{0, "00:21:51 reading shard 5"}, {1, "00:21:51 reading shard 5"}, {2, "00:21:52 reading shard 5"}}),
      OwnWay::Kind::same_line);
}

TEST(OwnWay, OneThatPrintedAnotherNumberIsNot) {
  EXPECT_EQ(
      WayOfRank0({{0, "00:21:51 reading shard 4"}, {1, "00:21:51 reading shard 5"}, {2, "00:21:52 reading shard 5"}}),
      OwnWay::Kind::none);
}

}  // namespace
}  // namespace tacet
