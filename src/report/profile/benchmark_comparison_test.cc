// SPDX-License-Identifier: Apache-2.0
#include "report/profile/benchmark_comparison.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tacet {
namespace {

// A sweep with noise; `factor` tells how much slower a size is.
BenchmarkRun SweepOf(std::mt19937& random, const std::function<double(int64_t)>& factor, double noise = 0.02) {
  std::normal_distribution<double> normal(1, noise);
  BenchmarkRun run;
  run.operation = "all_reduce";
  run.ranks = 8;
  run.concluded = true;
  for (int64_t bytes = 1024; bytes <= 256 << 20; bytes *= 2) {
    BenchmarkLine& line = run.lines.emplace_back();
    line.bytes = bytes;
    line.type = DataType::float32;
    const double time = (20 + static_cast<double>(bytes) / 2e5) * factor(bytes);
    line.out_of_place.time_us = time * normal(random);
    line.in_place.time_us = time * normal(random);
  }
  return run;
}

double Same(int64_t) { return 1; }
double SlowAboveFourMiB(int64_t bytes) { return bytes > 4 << 20 ? 1.2 : 1; }

BenchmarkSide Runs(std::mt19937& random, int count, const std::function<double(int64_t)>& factor) {
  BenchmarkSide side;
  for (int i = 0; i < count; ++i) side.runs.push_back(SweepOf(random, factor));
  return side;
}

const ComparisonLine* Find(const ProfileComparison& comparison, std::string_view words) {
  for (const ComparisonLine& line : comparison.lines)
    if (line.name.find(words) != std::string::npos) return &line;
  return nullptr;
}

TEST(BenchmarkComparison, FindsTheClassThatBecameSlower) {
  std::mt19937 random(3);
  for (const int runs : {1, 4}) {
    auto comparison = CompareBenchmarks(Runs(random, runs, Same), Runs(random, runs, SlowAboveFourMiB), {});
    ASSERT_TRUE(comparison.ok());
    EXPECT_EQ(Find(*comparison, "above 4 MiB")->kind, ChangeKind::slower) << runs;
    EXPECT_EQ(Find(*comparison, "to 32 KiB")->kind, ChangeKind::none) << runs;
    EXPECT_TRUE(comparison->Regressed(false));
    EXPECT_NEAR(Find(*comparison, "above 4 MiB")->change, 0.2, 0.03);
    auto back = CompareBenchmarks(Runs(random, runs, SlowAboveFourMiB), Runs(random, runs, Same), {});
    EXPECT_FALSE(back->Regressed(true));
    EXPECT_GT(back->faster, 0u);
  }
}

TEST(BenchmarkComparison, RunsOfDifferentRanksAreNeverPooled) {
  std::mt19937 random(5);
  BenchmarkSide before = Runs(random, 3, Same), after = Runs(random, 3, Same);
  for (BenchmarkSide* side : {&before, &after}) {
    BenchmarkSide larger = Runs(random, 3, side == &before ? Same : SlowAboveFourMiB);
    for (BenchmarkRun& run : larger.runs) {
      run.ranks = 16;
      side->runs.push_back(std::move(run));
    }
  }
  auto comparison = CompareBenchmarks(before, after, {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(Find(*comparison, "16 ranks, above 4 MiB")->kind, ChangeKind::slower);
  EXPECT_EQ(Find(*comparison, "8 ranks, above 4 MiB")->kind, ChangeKind::none);
}

// Of many comparisons of the same with itself hardly any may raise an alarm.
TEST(BenchmarkComparison, CallsNoiseNoise) {
  std::mt19937 random(17);
  for (const int runs : {1, 3}) {
    int alarms = 0;
    for (int round = 0; round < 60; ++round) {
      auto comparison = CompareBenchmarks(Runs(random, runs, Same), Runs(random, runs, Same), {});
      alarms += comparison->Regressed(true);
    }
    EXPECT_LE(alarms, 6) << runs << " runs a side";
  }
}

TEST(BenchmarkComparison, AShiftOfAWholeLaunchIsNoChangeOfASingleRun) {
  std::mt19937 random(5);
  const auto shifted = [](int64_t) { return 1.07; };
  EXPECT_FALSE(CompareBenchmarks(Runs(random, 1, Same), Runs(random, 1, shifted), {})->differs());
  EXPECT_TRUE(CompareBenchmarks(Runs(random, 5, Same), Runs(random, 5, shifted), {})->differs());
}

TEST(BenchmarkComparison, SeesASingleSizeOnlyWithRepeatedRuns) {
  std::mt19937 random(9);
  const auto one = [](int64_t bytes) { return bytes == 1 << 20 ? 1.5 : 1; };
  auto repeated = CompareBenchmarks(Runs(random, 4, Same), Runs(random, 4, one), {});
  EXPECT_EQ(Find(*repeated, "all_reduce 1 MiB, in-place")->kind, ChangeKind::slower);
  EXPECT_EQ(Find(*repeated, "all_reduce 2 MiB, in-place")->kind, ChangeKind::none);
  auto single = CompareBenchmarks(Runs(random, 1, Same), Runs(random, 1, one), {});
  EXPECT_EQ(Find(*single, "all_reduce 1 MiB, in-place")->kind, ChangeKind::untested);
  EXPECT_FALSE(single->differs());
}

TEST(BenchmarkComparison, IterationsAreSamplesWhereThereIsOneRun) {
  std::mt19937 random(21);
  std::normal_distribution<double> normal(1, 0.02);
  const auto with_iterations = [&](double factor) {
    BenchmarkSide side = Runs(random, 1, Same);
    for (BenchmarkLine& line : side.runs[0].lines)
      for (int i = 0; i < 20; ++i)
        line.in_place.iterations_us.push_back(line.in_place.time_us * factor * normal(random));
    return side;
  };
  auto comparison = CompareBenchmarks(with_iterations(1), with_iterations(1.3), {});
  EXPECT_EQ(Find(*comparison, "all_reduce 1 MiB, in-place")->kind, ChangeKind::slower);
}

TEST(BenchmarkComparison, FaultsOfBFailIt) {
  std::mt19937 random(2);
  BenchmarkSide good = Runs(random, 2, Same), bad = Runs(random, 2, Same);
  bad.runs[1].lines[4].in_place.wrong = 12;
  EXPECT_TRUE(CompareBenchmarks(good, bad, {})->Regressed(false));
  EXPECT_FALSE(CompareBenchmarks(bad, good, {})->Regressed(false));
  bad = Runs(random, 2, Same);
  bad.runs[0].failure = "unhandled cuda error";
  EXPECT_TRUE(CompareBenchmarks(good, bad, {})->Regressed(false));
}

TEST(BenchmarkComparison, RefusesWhatHasNothingInCommon) {
  std::mt19937 random(1);
  BenchmarkSide a = Runs(random, 1, Same), b = Runs(random, 1, Same);
  b.runs[0].operation = "broadcast";
  EXPECT_FALSE(CompareBenchmarks(a, b, {}).ok());
  EXPECT_FALSE(CompareBenchmarks({}, {}, {}).ok());
}

TEST(BenchmarkComparison, TellsOtherSettings) {
  std::mt19937 random(1);
  BenchmarkSide a = Runs(random, 1, Same), b = Runs(random, 1, Same);
  b.runs[0].ranks = 16;
  auto comparison = CompareBenchmarks(a, b, {});
  EXPECT_NE(
      std::find(comparison->remarks.begin(), comparison->remarks.end(), "the numbers of ranks differ: 8 in A; 16 in B"),
      comparison->remarks.end());
  EXPECT_EQ(comparison->headline.find("ranks"), std::string::npos) << "nothing changed";
}

TEST(BenchmarkComparison, TellsOtherMachinesBesideTheAnswer) {
  std::mt19937 random(1);
  BenchmarkSide a = Runs(random, 5, Same), b = Runs(random, 5, [](int64_t) { return 1.5; });
  for (BenchmarkRun& run : b.runs) run.ranks = 16;
  auto comparison = CompareBenchmarks(a, b, {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_NE(comparison->headline.find("; but the numbers of ranks (8; 16) differ"), std::string::npos)
      << comparison->headline;
}

}  // namespace
}  // namespace tacet
