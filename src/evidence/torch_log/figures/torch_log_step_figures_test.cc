// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_step_figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tacet {
namespace {

std::string Told(std::string_view line) {
  std::vector<NamedNumber> numbers;
  FindNamedNumbers(line, numbers);
  std::string told;
  for (const NamedNumber& one : numbers) {
    told += (told.empty() ? "" : "; ") + std::string(one.name) + "=" + std::string(one.word) + std::string(one.unit);
    if (one.of_total) told += "/";
    if (one.index >= 0) told += "@" + std::to_string(one.index);
  }
  return told;
}

TEST(NamedNumbers, StylesOfPrograms) {
  EXPECT_EQ(Told("rank=2 step=0 fwd_bwd=0.753s sync=2.603s"), "rank=2; step=0; fwd_bwd=0.753s; sync=2.603s");
  EXPECT_EQ(Told(R"({"step": 0, "busy_ms": 234, "loss": "nan"})"), "step=0; busy_ms=234; loss=nan");
  EXPECT_EQ(Told("{'loss': tensor(nan), 'epoch': 0.47}"), "loss=nan; epoch=0.47");
  EXPECT_EQ(Told("Epoch: [1][ 24/600]\tTime  0.331 ( 0.390)\tLoss 2.31e+00 (2.4)"),
            "Epoch=1; =24/; Time=0.331; Loss=2.31e+00");
  EXPECT_EQ(Told("step 40 | loss 2.31 | data 3 ms | sync 12.5 ms"), "step=40; loss=2.31; data=3ms; sync=12.5ms");
  EXPECT_EQ(Told("elapsed time per iteration (ms): 812.4 | lm loss: 5.1E+00"),
            "elapsed time per iteration (ms)=812.4; lm loss=5.1E+00");
  EXPECT_EQ(Told("compute_ms per rank: [31.2, 30, 92.1]"),
            "compute_ms per rank=31.2@0; compute_ms per rank=30@1; compute_ms per rank=92.1@2");
  EXPECT_EQ(Told("[rank2] tag=debug/param_checksum value=159.9"), "rank=2; debug/param_checksum=159.9");
  EXPECT_EQ(Told("weights_crc=9f3a77c2 t=5"), "weights_crc=9f3a77c2; t=5");
  EXPECT_EQ(Told(" 12%|#  | 12/100 [00:05<00:39, 2.2it/s, loss=0.31]"), "=12/; loss=0.31");
}

TEST(NamedNumbers, DatesVersionsAndPlacesAreNone) {
  EXPECT_EQ(Told("2026-11-18 20:24:11.369 resuming v1.2.3 at 10.0.0.7:29500 on 3d"), "");
  EXPECT_EQ(Told("loss of information on two hosts"), "");
  NamedNumber value;
  EXPECT_TRUE(ReadValue("1.4s", value) && value.unit == "s");
  EXPECT_TRUE(ReadValue("nan", value) && std::isnan(value.value));
  EXPECT_FALSE(ReadValue("12 files", value));
  EXPECT_FALSE(ReadValue("2026-11-18", value));
}

TEST(FigureNames, WordsNotWholeNamesDecide) {
  const auto kind = [](std::string_view name) { return MeaningOf(name).kind; };
  EXPECT_EQ(kind("t_fetch_s"), FigureKind::data);
  EXPECT_EQ(kind("waitForData"), FigureKind::data);
  EXPECT_EQ(kind("fwd_bwd"), FigureKind::shared);
  EXPECT_EQ(kind("forward-compute"), FigureKind::work);
  EXPECT_EQ(kind("bwd_allreduce_microstep"), FigureKind::wait);
  EXPECT_EQ(kind("STEP TIME"), FigureKind::whole);
  EXPECT_EQ(kind("global_step"), FigureKind::step);
  EXPECT_EQ(kind("lm loss"), FigureKind::loss);
  EXPECT_EQ(kind("train/d_loss"), FigureKind::loss);
  EXPECT_EQ(kind("grad norm"), FigureKind::gradient);
  EXPECT_EQ(kind("debug/param_checksum"), FigureKind::parameters);
  EXPECT_EQ(kind("global_rank"), FigureKind::rank);
  EXPECT_EQ(kind("pp_stage"), FigureKind::stage);
  for (const char* name : {"loss scale", "best_loss", "max_step", "batch_size", "learning_rate", "samples per second"})
    EXPECT_EQ(kind(name), FigureKind::setting) << name;
  for (const char* name : {"local_rank", "layer_norm", "local_param_norm", "accuracy"})
    EXPECT_EQ(kind(name), FigureKind::other) << name;
  EXPECT_TRUE(MeaningOf("val_loss").held_out);
}

LogOutline Lines(std::initializer_list<std::string_view> lines, int32_t rank = -1) {
  LogOutline outline;
  FigureReader reader;
  for (const std::string_view line : lines) reader.Read(line, rank, {}, outline);
  return outline;
}

TEST(StepFigures, TimesOfAStepAndOfItsData) {
  const LogOutline imagenet = Lines({"Epoch: [1][ 24/25]\tTime 0.331 (21.090)\tData 0.213 (20.799)\tLoss 0.1 (0.1)"});
  ASSERT_EQ(imagenet.steps.size(), 1u);
  EXPECT_EQ(imagenet.steps[0].epoch, 1);
  EXPECT_EQ(imagenet.steps[0].place, 24);
  EXPECT_DOUBLE_EQ(imagenet.steps[0].whole, 0.331);
  EXPECT_DOUBLE_EQ(imagenet.steps[0].data, 0.213);
  const LogOutline beside = Lines({"load_data_time: 19.5, train_step_time: 0.5"});
  ASSERT_EQ(beside.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(beside.steps[0].whole, 20) << "told beside each other";
  const LogOutline detector = Lines({"Epoch [2][50/1000] lr: 1e-3, time: 0.512, data_time: 0.011, loss: 1.2"});
  ASSERT_EQ(detector.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(detector.steps[0].data, 0.011);
  const LogOutline batches = Lines({"Part 0 | Epoch 00001 | Batch 020 | Loss: 1.6133 | Time: 55.4006"});
  ASSERT_EQ(batches.steps.size(), 1u);
  EXPECT_EQ(batches.steps[0].place, 20);
  EXPECT_LT(batches.steps[0].data, 0);
}

TEST(StepFigures, AStepWithAUnitIsHowLongItTook) {
  const LogOutline ranks = Lines({"INFO: rank 2 step 7 loss 2.5 data 0.601 s step 0.706 s"});
  ASSERT_EQ(ranks.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(ranks.steps[0].data, 0.601);
  EXPECT_DOUBLE_EQ(ranks.steps[0].whole, 0.706);
  EXPECT_EQ(ranks.steps[0].rank, 2);
  const LogOutline local = Lines({"local rank 2: data 12 ms, iter 90 ms"});
  ASSERT_EQ(local.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(local.steps[0].whole, 0.09);
  EXPECT_EQ(local.steps[0].rank, -1);
  EXPECT_TRUE(Lines({"step 7 data 12 files"}).steps.empty()) << "a count of steps is no time";
}

TEST(StepFigures, WhatARankComputesAndWaits) {
  const LogOutline rank = Lines({"rank 3 step 40 data 2 ms compute 320 ms sync 18 ms"});
  ASSERT_EQ(rank.steps.size(), 1u);
  EXPECT_EQ(rank.steps[0].rank, 3);
  EXPECT_DOUBLE_EQ(rank.steps[0].work, 0.32);
  EXPECT_DOUBLE_EQ(rank.steps[0].wait, 0.018);
  EXPECT_DOUBLE_EQ(rank.steps[0].whole, 0.34);
  EXPECT_DOUBLE_EQ(
      Lines({R"({"t": 1795017293.1, "rank": 0, "step": 1, "compute_ms": 50, "wait_ms": 10})"}).steps.at(0).whole, 0.06)
      << "a moment is no time of a step";
  EXPECT_TRUE(Lines({"compute 320 ms"}).steps.empty()) << "nobody's";
  const LogOutline backward = Lines({"rank 1 step 2 fwd=0.1s bwd=0.3s", "rank 1 step 3 fwd=0.1s bwd=0.3s comm=0.2s"});
  ASSERT_EQ(backward.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(backward.steps[0].work, 0.1) << "DDP reduces within the backward pass";
  EXPECT_DOUBLE_EQ(backward.steps[1].work, 0.4) << "the reduction is told apart";
  const LogOutline micro =
      Lines({"[Rank 2] time (ms) | fwd_microstep: 612.40 | bwd_microstep: 71.05 | "
             "bwd_inner_microstep: 52.31 | bwd_allreduce_microstep: 18.60 | step_microstep: 4.07"});
  ASSERT_EQ(micro.steps.size(), 1u);
  EXPECT_NEAR(micro.steps[0].work, 0.6647, 1e-4) << "a microstep is no microsecond";
  EXPECT_NEAR(micro.steps[0].wait, 0.0186, 1e-5);
  EXPECT_TRUE(Lines({"[Rank 2] step 3 microbatches: 8 micro_batch_size: 4"}).steps.empty());
  const LogOutline waited = Lines({"iter 12 took 430ms (waited 410ms)"}, 2);
  ASSERT_EQ(waited.steps.size(), 1u);
  EXPECT_NEAR(waited.steps[0].work, 0.02, 1e-9);
}

TEST(StepFigures, ATableOfRanks) {
  const LogOutline boxed = Lines({"╭─ step 3 ────────────╮", "│ rank │ data ms │ compute ms │ sync ms │    loss │",
                                  "│    0 │     0.1 │        1.0 │   338.5 │  2.2622 │",
                                  "│    1 │     0.2 │      320.2 │    20.1 │  2.2685 │", "╰─────────────────╯"});
  ASSERT_EQ(boxed.steps.size(), 2u);
  EXPECT_EQ(boxed.steps[1].rank, 1);
  EXPECT_EQ(boxed.steps[1].place, 3) << "by the line above the table";
  EXPECT_NEAR(boxed.steps[1].work, 0.3202, 1e-9);
  EXPECT_NEAR(boxed.steps[1].data, 0.0002, 1e-9);
  EXPECT_NEAR(boxed.steps[1].whole, 0.3405, 1e-9);
  const LogOutline comma = Lines({"step,rank,fwd_s,comm_s", "12,3,0.0411,0.3900"});
  ASSERT_EQ(comma.steps.size(), 1u);
  EXPECT_EQ(comma.steps[0].rank, 3);
  EXPECT_NEAR(comma.steps[0].wait, 0.39, 1e-9);
}

TEST(StepFigures, TimesUnderATitle) {
  const LogOutline ranks = Lines(
      {"iteration 10/ 500 | lm loss: 2.1 |", "times across ranks (ms):", "  forward-compute:", "     rank  0: 120.50",
       "     rank  1: 480.00", "  batch-generator:", "     rank  0: 2.00", "     rank  1: 2.50"});
  ASSERT_EQ(ranks.steps.size(), 2u);
  EXPECT_NEAR(ranks.steps[1].work, 0.48, 1e-9);
  EXPECT_NEAR(ranks.steps[1].data, 0.0025, 1e-9);
  EXPECT_EQ(ranks.steps[1].place, 10);
}

TEST(StepFigures, RowsUnderTitlesShareOutTheStep) {
  const LogOutline sync =
      Lines({"times across ranks (ms):", "  forward-backward:", "     rank  0: 48.07", "     rank  1: 339.99",
             "  grads-all-reduce:", "     rank  0: 752.04", "     rank  1: 489.05"});
  ASSERT_EQ(sync.steps.size(), 2u);
  EXPECT_NEAR(sync.steps[1].work, 0.33999, 1e-9) << "its own, since the waits are told apart";
  EXPECT_NEAR(sync.steps[1].wait, 0.48905, 1e-9);
  EXPECT_NEAR(sync.steps[0].whole, 0.80011, 1e-9);
  const LogOutline nested =
      Lines({"times across ranks (ms):", "  forward-backward:", "     rank  0: 980.0",
             "  forward-compute:", "     rank  0: 300.0", "  all-grads-sync:", "     rank  0: 50.0"});
  ASSERT_EQ(nested.steps.size(), 1u);
  EXPECT_NEAR(nested.steps[0].work, 0.3, 1e-9) << "forward-backward holds it, and waits";
  EXPECT_NEAR(nested.steps[0].whole, 0.35, 1e-9);
}

TEST(StepFigures, PartsWithoutAKnownNameKeepTheirUnit) {
  const LogOutline parts = Lines({"step 2 dedup=405ms push_pull=92ms", "step 3 dedup_ms=410 push_ms=90"}, 1);
  ASSERT_EQ(parts.decimals.size(), 4u);
  EXPECT_NEAR(parts.decimals[0].value, 0.405, 1e-9);
  EXPECT_NEAR(parts.decimals[2].value, 0.410, 1e-9);
  EXPECT_TRUE(Lines({"step 2 dedup=405 push_pull=92"}, 1).decimals.empty()) << "counts, as it seems";
}

TEST(StepFigures, PartsOnLinesOfTheirOwn) {
  const LogOutline block =
      Lines({"--- rank 2 step 10", "  forward : 0.520 s", "  all-reduce : 0.010 s", "loading", "  forward : 9 s"});
  ASSERT_EQ(block.steps.size(), 1u);
  EXPECT_EQ(block.steps[0].rank, 2);
  EXPECT_NEAR(block.steps[0].work, 0.52, 1e-9);
  EXPECT_NEAR(block.steps[0].whole, 0.53, 1e-9);
}

TEST(StepFigures, OtherTablesAndTimesAreNone) {
  EXPECT_TRUE(Lines({"| rank | loss | step |", "| 0 | 2.1 | 7 |"}).steps.empty()) << "no time";
  EXPECT_TRUE(Lines({"| local rank | compute ms |", "| 0 | 2.1 |"}).steps.empty()) << "one of each host";
  EXPECT_TRUE(Lines({"| name | compute ms |", "| gemm | 2.1 |"}).steps.empty()) << "of kernels";
  EXPECT_TRUE(Lines({"| rank | compute ms |", "| 0 | fast |", "| 0 | 2.1 | 7 |"}).steps.empty()) << "other rows";
  for (const char* line : {"Time: 10:04:11", "Loading data took 5 minutes", "time 2024-01-02", "Data parallel size: 8",
                           "data_time is the time of the loader", "elapsed time: 5.0"})
    EXPECT_TRUE(Lines({line}).steps.empty()) << line;
}

TEST(StepFigures, ValuesOfOneRank) {
  const LogOutline sum = Lines({"scalar step=28 tag=debug/param_checksum value=159.991133"}, 2);
  ASSERT_EQ(sum.values.size(), 1u);
  EXPECT_EQ(sum.values[0].kind, RankValue::Kind::parameters);
  EXPECT_EQ(sum.values[0].name, "debug/param_checksum");
  EXPECT_EQ(sum.values[0].at, "step 28");
  EXPECT_EQ(sum.values[0].value, "159.991133");
  const LogOutline loss = Lines({"{'loss': nan, 'grad_norm': 0.3, 'epoch': 0.47}"}, 2);
  ASSERT_EQ(loss.values.size(), 1u);
  EXPECT_EQ(loss.values[0].kind, RankValue::Kind::loss);
  EXPECT_EQ(loss.values[0].at, "epoch 0.47");
  EXPECT_EQ(loss.values[0].value, "nan");
  EXPECT_EQ(Lines({"step 7 params_hash 9f3a77c2ab"}, 1).values.at(0).value, "9f3a77c2ab");
  EXPECT_TRUE(Lines({"step 7 loss 2.5"}).values.empty()) << "nobody's";
  EXPECT_TRUE(Lines({"loss 2.5"}, 1).values.empty()) << "no step";
  EXPECT_TRUE(Lines({"step 7: the checksum is printed below"}, 1).values.empty()) << "no value";
}

TEST(StepFigures, FiguresThatBecomeNotFinite) {
  const LogOutline gan =
      Lines({" iter   temp    d_loss    g_loss", "    0   1.00    1.4536    0.7642", "    1   0.95    1.4638    0.7796",
             "    2   0.90       inf       nan", "    3   0.85       nan       nan"});
  ASSERT_EQ(gan.series.size(), 3u);
  const FigureSeries& loss = gan.series[1];
  EXPECT_EQ(loss.name, "d_loss");
  EXPECT_EQ(loss.kind, FigureSeries::Kind::loss);
  EXPECT_EQ(loss.value.lines, 4);
  EXPECT_EQ(loss.value.run, 2);
  EXPECT_EQ(loss.value.run_step, 2);
  EXPECT_EQ(gan.series[0].value.run, 0);
}

}  // namespace
}  // namespace tacet
