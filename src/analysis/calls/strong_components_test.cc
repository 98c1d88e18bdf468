// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/strong_components.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tacet {
namespace {

using Edges = std::map<Rank, std::vector<Rank>>;
using Sets = std::vector<std::vector<Rank>>;

// Two nodes belong together when each is reached from the other.
Sets ByReachability(const Edges& edges, int nodes) {
  std::vector<std::vector<bool>> reach(static_cast<size_t>(nodes), std::vector<bool>(static_cast<size_t>(nodes)));
  for (const auto& [from, targets] : edges)
    for (const Rank to : targets) reach[static_cast<size_t>(from.value)][static_cast<size_t>(to.value)] = true;
  for (size_t k = 0; k < reach.size(); ++k)
    for (size_t i = 0; i < reach.size(); ++i)
      for (size_t j = 0; j < reach.size(); ++j)
        if (reach[i][k] && reach[k][j]) reach[i][j] = true;
  Sets sets;
  std::vector<bool> done(reach.size());
  for (size_t i = 0; i < reach.size(); ++i) {
    if (done[i]) continue;
    std::vector<Rank> set;
    for (size_t j = 0; j < reach.size(); ++j)
      if (i == j || (reach[i][j] && reach[j][i])) set.push_back(Rank{static_cast<int32_t>(j)}), done[j] = true;
    if (set.size() > 1) sets.push_back(std::move(set));
  }
  return sets;
}

TEST(StrongComponents, AChainAndALoopOnOneselfHaveNone) {
  EXPECT_TRUE(StrongComponents({}).empty());
  EXPECT_TRUE(StrongComponents({{Rank{0}, {Rank{1}}}, {Rank{1}, {Rank{2}}}}).empty());
  EXPECT_TRUE(StrongComponents({{Rank{4}, {Rank{4}}}}).empty());
}

TEST(StrongComponents, ACircleIsOneSet) {
  const Edges edges = {{Rank{3}, {Rank{1}}}, {Rank{1}, {Rank{2}}}, {Rank{2}, {Rank{3}, Rank{9}}}, {Rank{0}, {Rank{1}}}};
  EXPECT_EQ(StrongComponents(edges), Sets({{Rank{1}, Rank{2}, Rank{3}}}));
}

TEST(StrongComponents, AgreeWithPlainReachabilityOnRandomGraphs) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 400; ++trial) {
    const int nodes = 2 + static_cast<int>(random() % 24);
    const auto count = random() % static_cast<uint32_t>(3 * nodes);
    Edges edges;
    for (uint32_t e = 0; e < count; ++e)
      edges[Rank{static_cast<int32_t>(random() % static_cast<uint32_t>(nodes))}].push_back(
          Rank{static_cast<int32_t>(random() % static_cast<uint32_t>(nodes))});
    Sets found = StrongComponents(edges);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, ByReachability(edges, nodes)) << "trial " << trial;
  }
}

TEST(StrongComponents, AVeryLongCircleNeedsNoRecursion) {
  constexpr int32_t kNodes = 200'000;
  Edges edges;
  for (int32_t i = 0; i < kNodes; ++i) edges[Rank{i}] = {Rank{(i + 1) % kNodes}};
  const Sets sets = StrongComponents(edges);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].size(), static_cast<size_t>(kNodes));
}

}  // namespace
}  // namespace tacet
