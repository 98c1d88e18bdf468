// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/printed_steps.h"

#include <gtest/gtest.h>

#include <functional>

namespace tacet {
namespace {

// One line per rank and step.
using Fill = std::function<void(StepShare&, int step, int rank)>;
Incident Printed(int ranks, int steps, const Fill& fill) {
  Incident incident;
  LogOutline& outline = incident.outlines.emplace_back();
  for (int step = 0; step < steps; ++step)
    for (int rank = 0; rank < ranks; ++rank) {
      StepShare share{-1, step, 0.7, -1, {}, rank};
      fill(share, step, rank);
      outline.steps.push_back(share);
    }
  return incident;
}
Fill Work(std::vector<double> work) {
  return
      [work](StepShare& share, int step, int rank) { share.work = step == 0 ? 3.5 : work[static_cast<size_t>(rank)]; };
}
Fill Data(std::vector<double> data) {
  return [data](StepShare& share, int, int rank) { share.data = data[static_cast<size_t>(rank)]; };
}

TEST(PrintedSteps, OneRankThatComputesWhileTheOthersWait) {
  const auto odd = FindPrintedLaggard(Printed(4, 6, Work({0.01, 0.5, 0.02, 0.1})));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->ranks, std::vector{Rank{1}});
  EXPECT_EQ(odd->part, PrintedLaggard::Part::work);
  EXPECT_TRUE(odd->persistent());
  EXPECT_DOUBLE_EQ(odd->own, 0.5);
  EXPECT_DOUBLE_EQ(odd->others, 0.1);
  EXPECT_FALSE(FindPrintedLaggard(Printed(4, 6, Work({0.5, 0.55, 0.6, 0.5})))) << "some percent more";
  EXPECT_FALSE(FindPrintedLaggard(Printed(4, 6, Work({0.5, 0.01, 0.5, 0.02})))) << "two alike";
  EXPECT_FALSE(FindPrintedLaggard(Printed(4, 6, Work({0.001, 0.03, 0.001, 0.002})))) << "little of the step";
  EXPECT_FALSE(FindPrintedLaggard(Printed(1, 6, Work({0.5})))) << "nobody to compare with";
}

TEST(PrintedSteps, OneRankThatLoadsWhileTheOthersWait) {
  const auto odd = FindPrintedLaggard(Printed(4, 6, Data({0.01, 0.0, 0.6, 0.02})));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->ranks, std::vector{Rank{2}});
  EXPECT_EQ(odd->part, PrintedLaggard::Part::data);
  EXPECT_FALSE(FindPrintedLaggard(Printed(4, 6, Data({0.6, 0.6, 0.6, 0.6})))) << "all load slowly";
  EXPECT_FALSE(FindPrintedLaggard(Printed(4, 6, Data({0.3, 0.3, 0.4, 0.2})))) << "nobody stands out";
}

TEST(PrintedSteps, TheOthersMustWaitForIt) {
  const auto with_waits = [](double of_others) {
    return Printed(3, 8, [=](StepShare& share, int, int rank) {
      share.work = rank == 1 ? 0.5 : 0.1;
      share.wait = rank == 1 ? 0.01 : of_others;
    });
  };
  const auto odd = FindPrintedLaggard(with_waits(0.42));
  ASSERT_TRUE(odd);
  EXPECT_DOUBLE_EQ(odd->wait, 0.42);
  EXPECT_FALSE(FindPrintedLaggard(with_waits(0.02))) << "nobody waits";
}

// Stages before the slow one do not see their wait: their lines leave out most of the step.
TEST(PrintedSteps, WhatLinesLeaveOutOfAStepIsAWaitToo) {
  const auto stages = [](bool told) {
    return Printed(3, 8, [=](StepShare& share, int, int rank) {
      share.stage = rank;
      share.work = rank == 1 ? 0.31 : 0.03;
      share.wait = std::vector<double>{0.03, 0.09, 0.40}[static_cast<size_t>(rank)];
      share.whole = share.work + share.wait;
      share.told = told;
    });
  };
  const auto odd = FindPrintedLaggard(stages(false));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->stage, 1);
  EXPECT_FALSE(FindPrintedLaggard(stages(true))) << "steps that short are not one step of all";
}

TEST(PrintedSteps, OneRankThatIsLongNowAndThen) {
  const auto steps = [](int every) {
    return Printed(4, 24, [=](StepShare& share, int step, int rank) {
      share.work = rank == 2 && step > 0 && step % every == 0 ? 0.9 : 0.005;
      share.whole = share.work + 0.1;
    });
  };
  const auto odd = FindPrintedLaggard(steps(6));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->ranks, std::vector{Rank{2}});
  EXPECT_EQ(odd->long_steps, 3u);
  EXPECT_EQ(odd->steps, 23u);
  EXPECT_FALSE(odd->persistent());
  EXPECT_FALSE(FindPrintedLaggard(steps(23))) << "a checkpoint";
}

TEST(PrintedSteps, AMeanThatASlowStartSpoilsFades) {
  const Incident means =
      Printed(3, 15, [](StepShare& share, int step, int rank) { share.data = rank == 0 ? 6.0 / (step + 1) : 0.01; });
  EXPECT_FALSE(FindPrintedLaggard(means));
}

TEST(PrintedSteps, StagesDoDifferentWork) {
  const auto stages = [](double third) {
    return Printed(4, 8, [=](StepShare& share, int, int rank) {
      share.stage = rank;
      share.work = rank == 2 ? third : 0.15;
    });
  };
  const auto odd = FindPrintedLaggard(stages(0.6));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->stage, 2);
  EXPECT_EQ(odd->ranks, std::vector{Rank{2}});
  EXPECT_FALSE(FindPrintedLaggard(stages(0.25))) << "embedding, loss: by design";
  const Incident replicated = Printed(6, 8, [](StepShare& share, int, int rank) {
    share.stage = rank / 2;
    share.work = rank / 2 == 1 ? 0.6 : 0.15;
  });
  const auto both = FindPrintedLaggard(replicated);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->stage, 1);
  EXPECT_EQ(both->ranks, (std::vector{Rank{2}, Rank{3}}));
}

TEST(PrintedSteps, AStepThatTwoFilesHoldCountsOnce) {
  Incident incident = Printed(3, 4, Work({0.1, 0.1, 0.5}));
  incident.outlines.push_back(incident.outlines.front());
  const auto odd = FindPrintedLaggard(incident);
  EXPECT_FALSE(odd) << "three steps of three ranks show little";
}

}  // namespace
}  // namespace tacet
