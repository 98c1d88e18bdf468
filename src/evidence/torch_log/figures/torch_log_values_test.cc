// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tacet {
namespace {

TorchLog Parsed(const std::string& text) { return ParseTorchLog(text); }

TEST(TrainingValues, NamesAndValuesOfUsualLines) {
  const LineValues megatron = FindValues(
      " iteration       10/     600 | consumed samples:          640 | elapsed time per iteration (ms): 81220.4 | lm "
      "loss: "
      "2.371E+00 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 |");
  ASSERT_TRUE(megatron.loss && megatron.gradient);
  EXPECT_DOUBLE_EQ(*megatron.loss, 2.371);
  EXPECT_TRUE(std::isnan(*megatron.gradient));
  EXPECT_DOUBLE_EQ(megatron.seconds, 81.2204);
  EXPECT_TRUE(megatron.exact);
  EXPECT_FALSE(megatron.skipped);

  const LineValues trainer = FindValues("{'loss': nan, 'grad_norm': 1.5, 'learning_rate': 2.9e-07, 'epoch': 0.01}");
  EXPECT_TRUE(trainer.loss && std::isnan(*trainer.loss));
  EXPECT_EQ(trainer.loss_word, "nan");

  const LineValues titan = FindValues("step: 300  loss:  5.5120  memory: 49.66GiB(52.28%)  tps: 5,851  mfu: 34.26%");
  EXPECT_DOUBLE_EQ(titan.loss.value_or(0), 5.512);
  EXPECT_DOUBLE_EQ(titan.seconds, 1.0 / 5851);
  EXPECT_EQ(titan.unit, "token");

  const LineValues bar = FindValues(" 16%|xx  | 406/2610 [14:48:58<80:44:30, 131.88s/it, loss=0.31]");
  EXPECT_DOUBLE_EQ(bar.seconds, 131.88);
  EXPECT_DOUBLE_EQ(bar.loss.value_or(0), 0.31);
  EXPECT_FALSE(bar.exact);
}

TEST(TrainingValues, TheSumComesBeforeItsParts) {
  EXPECT_DOUBLE_EQ(FindValues("Epoch [1][100/582] bbox_loss: 0.29, cls_loss: 0.35, loss: 1.94").loss.value_or(0), 1.94);
  EXPECT_DOUBLE_EQ(FindValues("step 3 train_loss=0.7").loss.value_or(0), 0.7);
}

TEST(TrainingValues, ANameThatGoesOnIsAnother) {
  EXPECT_FALSE(FindValues("step 3 loss_scale: 65536").loss);
  EXPECT_FALSE(FindValues("step 3 loss scale: 65536").loss);
  EXPECT_FALSE(FindValues("step 3 loss: info about nothing").loss);
  EXPECT_FALSE(FindValues("step 3 gloss: 5").loss);
}

TEST(TrainingValues, ScalesFall) {
  const auto deepspeed = FindScaleDrop("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 64, reducing to 32");
  ASSERT_TRUE(deepspeed);
  EXPECT_EQ(deepspeed->from, 64);
  EXPECT_EQ(deepspeed->to, 32);
  EXPECT_TRUE(FindScaleDrop("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0"));
  EXPECT_FALSE(FindScaleDrop("Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1"));
  EXPECT_FALSE(FindScaleDrop("loss scale: 65536"));
  const auto floor = FindScaleDrop("OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 1, reducing to 1");
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->to, floor->from);
  EXPECT_EQ(floor->rank, 3);
}

TEST(TrainingRecord, ARunOfNanToTheEnd) {
  const TorchLog log = Parsed("step 1 loss 2.0\nstep 2 loss 1.5\nstep 3 loss nan\nstep 4 loss nan\n");
  ASSERT_EQ(log.training.size(), 1u);
  const TrainingValue& loss = log.training[0].loss;
  EXPECT_EQ(loss.lines, 4);
  EXPECT_EQ(loss.run, 2);
  EXPECT_EQ(loss.run_step, 3);
  EXPECT_EQ(loss.finite_step, 2);
  EXPECT_EQ(loss.first, 2.0);
  EXPECT_EQ(loss.last, 1.5);
  EXPECT_EQ(loss.run_source.line, 3u);
}

TEST(TrainingRecord, OneNanThatNumbersFollow) {
  const TorchLog log = Parsed("step 1 loss nan\nstep 2 loss 1.5\nstep 3 loss 1.4\n");
  ASSERT_EQ(log.training.size(), 1u);
  EXPECT_EQ(log.training[0].loss.run, 0);
  EXPECT_EQ(log.training[0].loss.finite_since, 2);
}

TEST(TrainingRecord, TimesOfAnotherBarAreNotGoneOnWith) {
  std::string text;
  for (int i = 1; i <= 4; ++i) text += "load: 50%|x | " + std::to_string(i) + "/4 [00:01<00:02, 0.10s/it]\n";
  for (int i = 1; i <= 4; ++i) text += "train: 1%|x | " + std::to_string(i) + "/900 [00:01<00:02, 8.00s/it]\n";
  const TorchLog log = Parsed(text);
  ASSERT_EQ(log.training.size(), 1u);
  ASSERT_EQ(log.training[0].times.size(), 4u);
  for (const StepTime& time : log.training[0].times) EXPECT_DOUBLE_EQ(time.seconds, 8);
}

TEST(TrainingRecord, LongRunsAreSampled) {
  std::string text;
  for (int i = 1; i <= 5000; ++i) text += "step " + std::to_string(i) + " loss 1.0 step_time: 0.5\n";
  const TorchLog log = Parsed(text);
  ASSERT_EQ(log.training.size(), 1u);
  EXPECT_LE(log.training[0].times.size(), 97u);
  EXPECT_GE(log.training[0].times.size(), 40u);
  EXPECT_GT(log.training[0].times.back().step, 5000 - 16);
  EXPECT_EQ(log.training[0].lines, 5000);
  const TorchLog lost = Parsed(text + "step 5001 loss nan\nstep 5002 loss nan\n");
  ASSERT_EQ(lost.training.size(), 1u);
  EXPECT_EQ(lost.training[0].loss.run, 2);
  EXPECT_EQ(lost.training[0].loss.run_step, 5001);
  const TorchLog back = Parsed(text + "step 5001 loss nan\nstep 5002 loss 2.5\n");
  EXPECT_EQ(back.training.at(0).loss.run, 0);
}

TrainingRecord RecordOf(const std::string& text) {
  const TorchLog log = Parsed(text);
  return log.training.empty() ? TrainingRecord{} : log.training.front();
}

std::string Report(const std::string& loss, const std::string& norm, int step) {
  return "step " + std::to_string(step) + ": {'loss': " + loss + ", 'grad_norm': " + norm + ", 'epoch': 0.01}\n";
}

TEST(TrainingValues, ALossThatIsSuddenlyZeroIsOdd) {
  const TrainingRecord odd = RecordOf(Report("2.9", "3.2", 1) + Report("2.8114", "3.1", 10) + Report("0.0", "2.9", 20) +
                                      Report("0.0", "2.7", 30));
  EXPECT_EQ(odd.zero_loss.lines, 2);
  EXPECT_EQ(odd.zero_loss.step, 20);
  EXPECT_DOUBLE_EQ(odd.zero_loss.before, 2.8114);
  // At once, but with a norm that is stuck as well.
  const std::string norm = "2.7182817459106445";
  EXPECT_EQ(RecordOf(Report("2.8114", norm, 10) + Report("0.0", norm, 20)).zero_loss.lines, 1);
  // A small problem that is solved within a few steps.
  EXPECT_EQ(RecordOf(Report("514.342", "3.1", 1) + Report("0.000", "2.9", 5)).zero_loss.lines, 0);
  EXPECT_EQ(RecordOf(Report("514.3", "3.1", 1) + Report("8.25", "2.9", 5) + Report("0.0", "2.9", 9)).zero_loss.lines,
            0);
  // From the start on, reached by rounding, or over.
  EXPECT_EQ(RecordOf(Report("0.0", "3.1", 10) + Report("0.0", "2.9", 20)).zero_loss.lines, 0);
  EXPECT_EQ(RecordOf(Report("0.31", "3.1", 10) + Report("0.00", "2.9", 20)).zero_loss.lines, 0);
  EXPECT_EQ(RecordOf(Report("0.0012", "3.1", 10) + Report("0.0", "2.9", 20)).zero_loss.lines, 0);
  EXPECT_EQ(RecordOf(Report("2.81", "3.1", 1) + Report("0.0", "2.9", 2) + Report("2.6", "2.7", 3)).zero_loss.lines, 0);
}

TEST(TrainingValues, APartOfTheLossMayBeZero) {
  EXPECT_EQ(RecordOf("step 1 loss: 2.8114\nstep 2 aux_loss: 0.0\n").zero_loss.lines, 0);
}

TEST(TrainingValues, AGradientNormThatRepeatsItselfIsOdd) {
  const std::string norm = "2.7182817459106445";
  const TrainingRecord odd = RecordOf(Report("2.8", norm, 10) + Report("2.6", norm, 20));
  EXPECT_EQ(odd.same_gradient.lines, 2);
  EXPECT_EQ(odd.same_gradient.word, norm);
  // Clipped, of few digits, of one step on two ranks, or over.
  EXPECT_EQ(
      RecordOf(Report("2.8", "0.9999999403953552", 10) + Report("2.6", "0.9999999403953552", 20)).same_gradient.lines,
      0);
  EXPECT_EQ(RecordOf(Report("2.8", "0.314", 10) + Report("2.6", "0.314", 20)).same_gradient.lines, 0);
  EXPECT_EQ(RecordOf(Report("2.8", norm, 10) + Report("2.8", norm, 10)).same_gradient.lines, 0);
  EXPECT_EQ(RecordOf(Report("2.8", norm, 1) + Report("2.6", norm, 2) + Report("2.5", "2.1", 3)).same_gradient.lines, 0);
}

TEST(TrainingValues, AScaleAtItsMinimum) {
  const std::string one = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1\n";
  const std::string other = "OVERFLOW! Rank 1 Skipping step. Attempted loss scale: 1, reducing to 1\n";
  const TorchLog log = Parsed(one + other + one + other);
  ASSERT_EQ(log.training.size(), 1u);
  EXPECT_EQ(log.training[0].scale.at_floor, 2) << "each step once, though two ranks tell it";
  const TorchLog grown = Parsed(one + one + "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2\n");
  EXPECT_EQ(grown.training[0].scale.at_floor, 0);
}

TEST(TrainingValues, LinesThatOnlySayNotFinite) {
  const auto norm = FindNotFinite("WARN: grad_norm is not finite: nan");
  ASSERT_TRUE(norm);
  EXPECT_FALSE(norm->of_loss);
  EXPECT_EQ(norm->word, "nan");
  const auto loss = FindNotFinite("Loss is NaN, stopping training");
  ASSERT_TRUE(loss);
  EXPECT_TRUE(loss->of_loss);
  EXPECT_FALSE(FindNotFinite("check whether the loss is nan"));
  EXPECT_FALSE(FindNotFinite("skip the step if the gradient is not finite"));
  EXPECT_FALSE(FindNotFinite("the loss is infinitely better"));
  EXPECT_FALSE(FindNotFinite("non-finite gradients: 0"));
}

TEST(ScaleDrop, IsReadInTheWordsOfManyTrainers) {
  for (const char* line :
       {"| WARNING: overflow detected, setting loss scale to: 0.25",
        "2026-11-15 00:20:00 | INFO | fairseq.trainer | NOTE: overflow detected, setting loss scale to: 0.25",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.25",
        "Overflow occurs. Loss scale is adjusted to 0.25", "loss scale decreased to 0.25"}) {
    const auto drop = FindScaleDrop(line);
    ASSERT_TRUE(drop) << line;
    EXPECT_DOUBLE_EQ(drop->to, 0.25) << line;
    EXPECT_FALSE(drop->from_told) << line;
  }
  for (const char* line : {"loss scale: 65536", "setting loss scale to 65536 at start", "loss scale window is 1000"})
    EXPECT_FALSE(FindScaleDrop(line)) << line;
}

TEST(TrainingRecord, TheSameDropOfAnotherProcessIsNotAnotherOne) {
  std::string text;
  for (const char* scale : {"64.0", "32.0", "16.0"})
    for (int process = 0; process < 2; ++process)
      text += "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to " + std::string(scale) + "\n";
  EXPECT_EQ(RecordOf(text).scale.drops, 3);
}

TEST(LineValues, HeldOutLossesAreAnotherSeries) {
  EXPECT_FALSE(FindValues("epoch 027 | valid_loss 8.301 | valid_nll_loss 7.15").loss);
  EXPECT_FALSE(FindValues("{'eval_loss': 1.2, 'epoch': 1.0}").loss);
  EXPECT_DOUBLE_EQ(FindValues("iter: 100 val_loss: 3.38 train_loss: 3.68").loss.value_or(0), 3.68);
  EXPECT_TRUE(IsOfEvaluation("| epoch 027 | valid on 'valid' subset | loss 8.301"));
  EXPECT_FALSE(IsOfEvaluation("| epoch 027 | loss 6.343 | ppl 31.65"));
}

TEST(LineValues, ASentenceHoldsNoFigure) {
  EXPECT_TRUE(
      IsSomebodysSentence("after some time at step 300 I always get loss=0 and I do not know what to do about it"));
  EXPECT_FALSE(IsSomebodysSentence(
      " iteration 10/ 600 | consumed samples: 640 | elapsed time per iteration (ms): 81220.4 | learning rate: 1E-05 | "
      "global batch size: 64 | lm loss: 5.51 | number of skipped iterations: 0 | number of nan iterations: 0 |"));
}

}  // namespace
}  // namespace tacet
