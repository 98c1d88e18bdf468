// SPDX-License-Identifier: Apache-2.0
// Steps of operations that nobody has marked.
#include <gtest/gtest.h>

#include <map>

#include "analysis/timing/collective_match.h"

namespace tacet {
namespace {

struct Issued {
  int64_t bytes;
  double pause_ms;  // in front of it
};

// Appends one step; four ranks, all at the same time.
void AddStep(const std::vector<Issued>& step, double& at_ms, std::vector<CollectiveRound>& rounds) {
  for (const Issued& one : step) {
    at_ms += one.pause_ms;
    CollectiveRound& round = rounds.emplace_back();
    round.group = static_cast<GroupIndex>(0);
    round.kind = OpKind::all_reduce;
    round.bytes = one.bytes;
    round.group_size = 4;
    for (int32_t r = 0; r < 4; ++r) {
      RoundMember member;
      member.rank = {r};
      member.enter_ns = static_cast<int64_t>(at_ms * 1e6);
      member.duration_ns = 400'000;
      round.members.push_back(member);
    }
  }
}

// Number of operations -> in how many steps.
std::map<size_t, size_t> SizesOfSteps(std::vector<CollectiveRound>& rounds) {
  AssignPeriods(rounds);
  std::map<int64_t, size_t> operations;
  for (const CollectiveRound& round : rounds)
    if (round.step >= 0) ++operations[round.step];
  std::map<size_t, size_t> out;
  for (const auto& [step, count] : operations) ++out[count];
  return out;
}

// Pauses are never exactly alike.
double Jitter(size_t i) { return 1 + 0.1 * static_cast<double>(i * 7919 % 13) / 13; }

TEST(StepPeriods, AMetricEveryTenthStepDoesNotJoinTen) {
  std::vector<CollectiveRound> rounds;
  double at = 0;
  for (size_t s = 0; s < 120; ++s) {
    std::vector<Issued> step = {
        {2 << 20, 5 * Jitter(s)}, {2 << 20, 0.5 * Jitter(s + 1)}, {2 << 20, 0.5 * Jitter(s + 2)}};
    if (s % 10 == 9) step.push_back({32, 4});
    AddStep(step, at, rounds);
  }
  const auto sizes = SizesOfSteps(rounds);
  EXPECT_GE(sizes.at(3), 105u);
  EXPECT_EQ(sizes.count(31), 0u);
}

TEST(StepPeriods, AStepOfLayersAndOneSumIsNotCutIntoItsLayers) {
  std::vector<CollectiveRound> rounds;
  double at = 0;
  for (size_t s = 0; s < 60; ++s) {
    std::vector<Issued> step;
    for (size_t layer = 0; layer < 6; ++layer) {
      step.push_back({1 << 20, (layer == 0 ? 6 : 0.8) * Jitter(s + layer)});
      step.push_back({1 << 20, 0.3 * Jitter(s + layer + 3)});
    }
    step.push_back({4, 0.4});
    AddStep(step, at, rounds);
  }
  const auto sizes = SizesOfSteps(rounds);
  EXPECT_GE(sizes.at(13), 58u);
}

TEST(StepPeriods, LayersThatRepeatBelongToOneStep) {
  std::vector<CollectiveRound> rounds;
  double at = 0;
  for (size_t s = 0; s < 100; ++s) {
    std::vector<Issued> step;
    for (size_t layer = 0; layer < 4; ++layer) {
      step.push_back({1 << 20, (layer == 0 ? 12 : 0.15) * Jitter(s + layer)});
      step.push_back({2048, 0.1 * Jitter(s + layer + 5)});
    }
    AddStep(step, at, rounds);
  }
  const auto sizes = SizesOfSteps(rounds);
  EXPECT_GE(sizes.at(8), 98u);
}

TEST(StepPeriods, ALineThatIsPrintedEveryTenthStepDoesNotJoinTen) {
  std::vector<CollectiveRound> rounds;
  double at = 0;
  for (size_t s = 0; s < 200; ++s)
    AddStep({{1 << 20, 2 * (s % 10 == 0 ? 1.6 : 1) * Jitter(s)}, {2048, 2 * Jitter(s + 4)}}, at, rounds);
  const auto sizes = SizesOfSteps(rounds);
  EXPECT_GE(sizes.at(2), 198u);
}

}  // namespace
}  // namespace tacet
