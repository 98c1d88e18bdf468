// SPDX-License-Identifier: Apache-2.0
#include "launch/lab/benchmark_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "launch/command_run.h"

namespace tacet {
namespace {

TEST(PairRounds, MeetEveryPairOnceAndEveryHostAtMostOnceARound) {
  for (const size_t hosts : {2u, 3u, 4u, 5u, 8u, 9u, 16u}) {
    std::set<std::pair<size_t, size_t>> met;
    for (const auto& round : PairRounds(hosts)) {
      std::set<size_t> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_LT(b, hosts);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << hosts;
        EXPECT_TRUE(met.insert({a, b}).second) << hosts;
      }
    }
    EXPECT_EQ(met.size(), hosts * (hosts - 1) / 2) << hosts;
  }
  EXPECT_TRUE(PairRounds(1).empty());
}

// A bad host slows all its pairs. After so many rounds no other host was slow in all of its own.
TEST(PairRounds, TwoOrThreeRoundsIsolateAnyOneHost) {
  for (const size_t hosts : {4u, 5u, 6u, 7u, 8u, 15u, 64u})
    for (size_t bad = 0; bad < hosts; ++bad) {
      std::vector<size_t> slow(hosts), all(hosts);
      const auto rounds = PairRounds(hosts);
      for (size_t r = 0; r < static_cast<size_t>(RoundsToIsolate(hosts)) && r < rounds.size(); ++r)
        for (const auto& [a, b] : rounds[r])
          for (const size_t one : {a, b}) ++all[one], slow[one] += a == bad || b == bad;
      for (size_t one = 0; one < hosts; ++one) {
        EXPECT_GE(all[one], 2u);
        EXPECT_EQ(one == bad, slow[one] == all[one]) << hosts << " hosts, bad " << bad << ", host " << one;
      }
    }
}

TEST(ParseHosts, UnderstandsWhatLaunchersWrite) {
  auto hosts = ParseHosts("gpu1 slots=8\n# none\n\ngpu2:4 # two\ngpu3\n");
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[0].slots, 8);
  EXPECT_EQ((*hosts)[1].name, "gpu2");
  EXPECT_EQ((*hosts)[1].slots, 4);
  EXPECT_EQ((*hosts)[2].slots, 1);
  EXPECT_FALSE(ParseHosts("-oProxyCommand=evil\n"));
  EXPECT_FALSE(ParseHosts("gpu1 slots=0\n"));
}

TEST(PlanBenchmarks, GivesOneRunForEachOperationRankCountAndWay) {
  BenchmarkWish wish;
  wish.launcher = BenchmarkLauncher::mpirun;
  wish.hosts = {{"a", 8}, {"b", 8}};
  wish.operations = {"all_reduce", "all_gather"};
  wish.ranks = {8, 16};
  wish.ways = {{"Ring", "LL"}};
  auto rounds = PlanBenchmarks(wish);
  ASSERT_TRUE(rounds);
  EXPECT_EQ(rounds->size(), 8u);
  const std::string eight = ShowCommand(rounds->at(0).at(0).command), forced = ShowCommand(rounds->at(3).at(0).command);
  EXPECT_NE(eight.find("mpirun -np 8 --host a:8 "), std::string::npos) << eight;
  EXPECT_NE(forced.find("-np 16 --host a:8,b:8"), std::string::npos) << forced;
  EXPECT_NE(forced.find("NCCL_ALGO=Ring"), std::string::npos) << forced;
  EXPECT_NE(forced.find("all_reduce_perf -b 8 -e 1G -f 2 -g 1"), std::string::npos) << forced;
  wish.ranks = {32};
  EXPECT_FALSE(PlanBenchmarks(wish));
}

TEST(PlanBenchmarks, PairsHaveAServerAndNameTheirHosts) {
  BenchmarkWish wish;
  wish.tool = BenchmarkTool::perftest;
  wish.launcher = BenchmarkLauncher::srun;
  wish.operations = {"ib_write_bw"};
  wish.hosts = {{"a"}, {"b"}, {"c"}, {"d"}};
  auto rounds = PlanBenchmarks(wish);
  ASSERT_TRUE(rounds);
  ASSERT_EQ(rounds->size(), 2u);
  for (const BenchmarkRound& round : *rounds) {
    ASSERT_EQ(round.size(), 2u);
    EXPECT_FALSE(round[0].server.empty());
    EXPECT_EQ(round[0].head.rfind("# pair ", 0), 0u);
  }
  wish.hosts.resize(1);
  EXPECT_FALSE(PlanBenchmarks(wish));
}

TEST(PlanBenchmarks, NothingToRunIsSaid) {
  BenchmarkWish wish;
  wish.launcher = BenchmarkLauncher::srun;
  wish.operations = {"all_reduce"};
  auto rounds = PlanBenchmarks(wish);
  ASSERT_FALSE(rounds);
  EXPECT_NE(rounds.error().message.find("number of ranks"), std::string::npos);
}

}  // namespace
}  // namespace tacet
