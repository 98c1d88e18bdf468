// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_figures.h"

#include <gtest/gtest.h>

#include "evidence/torch_log/torch_log_counting.h"
#include "evidence/torch_log/torch_log_rank_table.h"
#include "evidence/torch_log/torch_log_rank_values.h"

namespace tacet {
namespace {

LogOutline Figures(std::string_view line) {
  LogOutline outline;
  ReadFigures(line, {}, outline);
  return outline;
}

TEST(PlainFigures, TimesOfAStepAndOfItsData) {
  const LogOutline imagenet = Figures("Epoch: [1][ 24/25]\tTime 0.331 (21.090)\tData 0.213 (20.799)\tLoss 0.1 (0.1)");
  ASSERT_EQ(imagenet.steps.size(), 1u);
  EXPECT_EQ(imagenet.steps[0].epoch, 1);
  EXPECT_EQ(imagenet.steps[0].place, 24);
  EXPECT_DOUBLE_EQ(imagenet.steps[0].whole, 0.331);
  EXPECT_DOUBLE_EQ(imagenet.steps[0].data, 0.213);
  const LogOutline beside = Figures("load_data_time: 19.5, train_step_time: 0.5");
  ASSERT_EQ(beside.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(beside.steps[0].whole, 20) << "told beside each other";
  const LogOutline detector = Figures("Epoch [2][50/1000] lr: 1e-3, time: 0.512, data_time: 0.011, loss: 1.2");
  ASSERT_EQ(detector.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(detector.steps[0].data, 0.011);
  const LogOutline batches = Figures("Part 0 | Epoch 00001 | Batch 020 | Loss: 1.6133 | Time: 55.4006");
  ASSERT_EQ(batches.steps.size(), 1u);
  EXPECT_EQ(batches.steps[0].place, 20);
  EXPECT_LT(batches.steps[0].data, 0);
}

TEST(PlainFigures, AStepWithAUnitIsHowLongItTook) {
  const LogOutline ranks = Figures("INFO: rank 2 step 7 loss 2.5 data 0.601 s step 0.706 s");
  ASSERT_EQ(ranks.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(ranks.steps[0].data, 0.601);
  EXPECT_DOUBLE_EQ(ranks.steps[0].whole, 0.706);
  EXPECT_EQ(ranks.steps[0].rank, 2);
  const LogOutline local = Figures("local rank 2: data 12 ms, iter 90 ms");
  ASSERT_EQ(local.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(local.steps[0].whole, 0.09);
  EXPECT_EQ(local.steps[0].rank, -1);
  EXPECT_TRUE(Figures("step 7 data 12 files").steps.empty()) << "a count of steps is no time";
}

TEST(PlainFigures, WhatARankComputesItself) {
  const LogOutline rank = Figures("rank 3 step 40 data 2 ms compute 320 ms sync 18 ms");
  ASSERT_EQ(rank.steps.size(), 1u);
  EXPECT_EQ(rank.steps[0].rank, 3);
  EXPECT_DOUBLE_EQ(rank.steps[0].work, 0.32);
  EXPECT_DOUBLE_EQ(rank.steps[0].whole, 0.34);
  EXPECT_TRUE(Figures("compute 320 ms").steps.empty()) << "nobody's";
}

LogOutline Table(std::initializer_list<std::string_view> lines, size_t* taken = nullptr) {
  LogOutline outline;
  RankTableReader reader;
  for (const std::string_view line : lines)
    if (reader.Read(line, {}, outline) && taken) ++*taken;
  return outline;
}

TEST(PlainFigures, ATableOfRanks) {
  size_t taken = 0;
  const LogOutline boxed = Table({"╭─ step 3 ────────────╮", "│ rank │ data ms │ compute ms │ sync ms │    loss │",
                                  "│    0 │     0.1 │        1.0 │   338.5 │  2.2622 │",
                                  "│    1 │     0.2 │      320.2 │    20.1 │  2.2685 │", "╰─────────────────╯"},
                                 &taken);
  EXPECT_EQ(taken, 3u);
  ASSERT_EQ(boxed.steps.size(), 2u);
  EXPECT_EQ(boxed.steps[1].rank, 1);
  EXPECT_NEAR(boxed.steps[1].work, 0.3202, 1e-9);
  EXPECT_NEAR(boxed.steps[1].data, 0.0002, 1e-9);
  EXPECT_NEAR(boxed.steps[1].whole, 0.3405, 1e-9);
  const LogOutline plain =
      Table({"RANK   FORWARD(s)   BACKWARD(s)   STEP TIME", "7      0.100        0.250         0.900"});
  ASSERT_EQ(plain.steps.size(), 1u);
  EXPECT_NEAR(plain.steps[0].work, 0.35, 1e-9);
  EXPECT_NEAR(plain.steps[0].whole, 0.9, 1e-9);
}

TEST(PlainFigures, OtherTablesAreNone) {
  EXPECT_TRUE(Table({"| rank | loss | step |", "| 0 | 2.1 | 7 |"}).steps.empty()) << "no time";
  EXPECT_TRUE(Table({"| local rank | compute ms |", "| 0 | 2.1 |"}).steps.empty()) << "one of each host";
  EXPECT_TRUE(Table({"| name | compute ms |", "| gemm | 2.1 |"}).steps.empty()) << "of kernels";
  EXPECT_TRUE(Table({"| rank | compute ms |", "| 0 | fast |", "| 0 | 2.1 | 7 |"}).steps.empty()) << "other rows";
}

TEST(PlainFigures, ValuesOfOneRank) {
  const auto values = [](std::string_view text, int32_t rank = 2) {
    LogOutline outline;
    ReadRankValues(text, rank, {}, outline);
    return outline.values;
  };
  const auto sum = values("[rank 2] scalar step=28 tag=debug/param_checksum value=159.991133");
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_FALSE(sum[0].is_loss);
  EXPECT_EQ(sum[0].at, "step 28");
  EXPECT_EQ(sum[0].value, "159.991133");
  const auto loss = values("[rank2] {'loss': nan, 'grad_norm': 0.3, 'epoch': 0.47}");
  ASSERT_EQ(loss.size(), 1u);
  EXPECT_TRUE(loss[0].is_loss);
  EXPECT_EQ(loss[0].at, "epoch 0.47");
  EXPECT_EQ(loss[0].value, "nan");
  EXPECT_EQ(values("step 7 params_hash 9f3a77c2ab").at(0).value, "9f3a77c2ab");
  EXPECT_TRUE(values("step 7 loss 2.5", -1).empty()) << "nobody's";
  EXPECT_TRUE(values("loss 2.5").empty()) << "no step";
  EXPECT_TRUE(values("step 7: the checksum is printed below").empty()) << "no value";
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

TEST(PlainFigures, OtherTimesAreNone) {
  for (const char* line : {"Time: 10:04:11", "Loading data took 5 minutes", "time 2024-01-02", "Data parallel size: 8",
                           "data_time is the time of the loader", "elapsed time: 5.0"})
    EXPECT_TRUE(Figures(line).steps.empty()) << line;
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
}

}  // namespace
}  // namespace tacet
