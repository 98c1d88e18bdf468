// SPDX-License-Identifier: Apache-2.0
#include "launch/output_sense.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

constexpr std::string_view kReport =
    "[default1]:[rank1]:[I1116 18:38:25.215080311 ProcessGroupNCCL.cpp:2088] [PG ID 0 Rank 1] looked\n";
constexpr std::string_view kTrace =
    "[I1116 18:38:31.024867087 TCPStoreLibUvBackend.cpp:930] [c10d - trace] check key_count:1\n\n";

TEST(OutputSense, ReportsOfMonitorsShowNoWork) {
  OutputSense sense;
  EXPECT_FALSE(sense.ShowsWork(kReport));
  EXPECT_FALSE(sense.ShowsWork(std::string(kTrace) + std::string(kReport)));
}

TEST(OutputSense, WarningsAndStepsDo) {
  OutputSense sense;
  EXPECT_TRUE(sense.ShowsWork(std::string(kTrace) + "step 12 loss 3.1\n"));
  EXPECT_TRUE(sense.ShowsWork("[rank0]:[W1116 18:38:25.2 ProcessGroupNCCL.cpp:1575] Warning: ...\n"));
  EXPECT_TRUE(sense.ShowsWork(" 12%|#   | 12/100\r"));
}

TEST(OutputSense, ALineCutAnywhereIsReadAsOne) {
  for (size_t cut = 24; cut < kReport.size(); ++cut) {
    OutputSense sense;
    EXPECT_FALSE(sense.ShowsWork(kReport.substr(0, cut))) << cut;
    EXPECT_FALSE(sense.ShowsWork(kReport.substr(cut))) << cut;
    EXPECT_TRUE(sense.ShowsWork("epoch 3\n"));
  }
}

}  // namespace
}  // namespace tacet
