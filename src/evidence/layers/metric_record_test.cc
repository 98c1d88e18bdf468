// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/metric_record.h"

#include <gtest/gtest.h>

#include <string>

namespace tacet {
namespace {

TEST(MetricRecord, ALineOfJsonBecomesTheLineOfATerminal) {
  const std::string text =
      R"({"loss": 1.43, "grad_norm": NaN, "learning_rate": 1e-05, "epoch": 0.7, "global_step/max_steps": "80/110", )"
      R"("elapsed_time": "5h 38m"})"
      "\n";
  EXPECT_TRUE(HasMetricRecords(text));
  EXPECT_EQ(WriteMetricRecords(text),
            "{'loss': 1.43, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.7, 'step': 80}\n");
}

TEST(MetricRecord, ADictOverManyLinesKeepsTheirNumber) {
  const std::string text = "it prints\n{'loss': 0.0,\n 'reward': 0.5,\n 'epoch': 0.09}\nand stays so\n";
  EXPECT_TRUE(HasMetricRecords(text));
  EXPECT_EQ(WriteMetricRecords(text), "it prints\n{'loss': 0.0, 'reward': 0.5, 'epoch': 0.09}\n\n\nand stays so\n");
}

TEST(MetricRecord, OfAStateOfATrainerTheHistoryIsKept) {
  const std::string text =
      "{\n  \"best_metric\": null,\n  \"log_history\": [\n    {\n      \"epoch\": 0.5,\n      \"loss\": 2.5,\n"
      "      \"step\": 10\n    },\n    {\n      \"epoch\": 1.0,\n      \"loss\": NaN,\n      \"step\": 20\n    }\n  "
      "],\n"
      "  \"max_steps\": 20\n}\n";
  EXPECT_TRUE(HasMetricRecords(text));
  EXPECT_EQ(
      WriteMetricRecords(text),
      "\n\n\n{'epoch': 0.5, 'loss': 2.5, 'step': 10}\n\n\n\n\n{'epoch': 1.0, 'loss': nan, 'step': 20}\n\n\n\n\n\n\n\n");
}

TEST(MetricRecord, OneThatTheEndCutsOffCounts) {
  const std::string text = R"({"loss": 2.1, "grad_norm": 0.4, "step": 30, "learning_r)";
  EXPECT_TRUE(HasMetricRecords(text));
  EXPECT_EQ(WriteMetricRecords(text), "{'loss': 2.1, 'grad_norm': 0.4, 'step': 30}");
}

TEST(MetricRecord, OtherObjectsAreNone) {
  for (const char* text : {R"({"loss": "cross_entropy", "learning_rate": 1e-5, "epochs": 3})",  // a configuration
                           R"({"learning_rate": 1e-5, "router_aux_loss": 0.001, "epochs": 3})",
                           R"({"name": "step", "ph": "X", "ts": 12, "dur": 4, "args": {"loss": 1}})",
                           R"({'loss': 1.2, 'grad_norm': 3.1, 'epoch': 0.1})",  // as it is
                           R"({"step": 10, "seconds": 0.5, "tokens": 4096})", "{}", "{\"loss\": "})
    EXPECT_FALSE(HasMetricRecords(text)) << text;
}

}  // namespace
}  // namespace tacet
