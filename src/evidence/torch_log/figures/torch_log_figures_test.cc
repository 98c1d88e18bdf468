// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_figures.h"

#include <gtest/gtest.h>

#include "evidence/torch_log/figures/torch_log_counting.h"

namespace tacet {
namespace {

LogOutline Figures(std::string_view line) {
  LogOutline outline;
  ReadFigures(line, {}, outline);
  return outline;
}

TEST(PlainFigures, LinesThatCountSomething) {
  CountingLines counting;
  EXPECT_FALSE(counting.Read("outer 0: residuals 7.6e-01"));
  EXPECT_FALSE(counting.Read("outer 1: residuals 1.0e-01"));
  EXPECT_TRUE(counting.Read("outer 2: residuals 1.2e-02"));
  EXPECT_FALSE(counting.Read("inner 3: residuals 1.2e-02")) << "another word";
  EXPECT_FALSE(counting.Read("outer 2: residuals 1.2e-02")) << "begins anew";
  EXPECT_FALSE(counting.Read("outer 3 done")) << "no figure";
  EXPECT_FALSE(counting.Read("2026-11-18 10:00:00.5"));
}

TEST(PlainFigures, RatesOfGroupsAndPairs) {
  const LogOutline group =
      Figures("AllReduce: [[0, 1, 2, 3]]   Bytes: 2.00000 GB   Time: 0.014 s Bandwidth: 213.68 GB/s");
  ASSERT_EQ(group.rates.size(), 1u);
  EXPECT_EQ(group.rates[0].operation, "allreduce");
  EXPECT_EQ(group.rates[0].members, 4);
  EXPECT_DOUBLE_EQ(group.rates[0].gbs, 213.68);
  const LogOutline pairs = Figures("between 1 and 2 I get 25 GB/s, between 1 and 3 200 Gb/s, same command");
  ASSERT_EQ(pairs.pairs.size(), 2u);
  EXPECT_EQ(pairs.pairs[0].other, "2");
  EXPECT_DOUBLE_EQ(pairs.pairs[1].gbs, 25) << "bits";
  EXPECT_TRUE(Figures("between compute and communication 25 GB/s").pairs.empty());
}

TEST(PlainFigures, UtilizationOfTheModelNotOfTheDevice) {
  EXPECT_DOUBLE_EQ(Figures("  Training Model Floating Point Utilization: 0.84%").utilizations.at(0).percent, 0.84);
  EXPECT_DOUBLE_EQ(Figures("step: 3 mfu: 0.38").utilizations.at(0).percent, 38);
  EXPECT_TRUE(Figures("iter 0: loss 10.9, time 4000ms, mfu -100.00%").utilizations.empty());
  EXPECT_TRUE(Figures("GPU utilization: 3%").utilizations.empty());
  EXPECT_FALSE(Figures("iter 5: loss 1.0036, time 4217.95ms, mfu 0.31%").utilizations.empty());
  EXPECT_TRUE(Figures("iter 5: loss 1.0036, time 17.95ms, mfu 0.31%").utilizations.empty()) << "a small model";
}

}  // namespace
}  // namespace tacet
