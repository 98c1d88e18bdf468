// SPDX-License-Identifier: Apache-2.0
#include "report/make_report.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

std::string QuoteOf(const std::string& line, const std::string& message, const std::string& next = "") {
  Report report;
  report.findings.emplace_back();
  CitedEvidence cited;
  cited.file = "train.log";
  cited.line = 5;
  cited.excerpt = message;
  report.findings[0].evidence.push_back(cited);
  QuoteLines([&](const std::string&, uint32_t number, uint64_t) { return number == cited.line ? line : next; }, report);
  return report.findings[0].evidence[0].quote;
}

TEST(MakeReport, AWrappedLineIsQuotedWithWhatFollowsIt) {
  EXPECT_EQ(QuoteOf("gpu7:61:62 [0] NCCL WARN socketStartConnect: Connect to 1",
                    "socketStartConnect: Connect to 172.17.0.1<48103> failed : Connection refused",
                    "72.17.0.1<48103> failed : Connection refused"),
            "gpu7:61:62 [0] NCCL WARN socketStartConnect: Connect to 172.17.0.1<48103> failed : Connection refused");
}

TEST(MakeReport, AWholeLineIsQuotedAsItStands) {
  const std::string line = "[rank3]: ValueError: sample 1287 has label 41";
  EXPECT_EQ(QuoteOf(line, "ValueError: sample 1287 has label 41"), line);
  EXPECT_EQ(QuoteOf(line, "ValueError: sample 1287 has label 41 (3 times)"), line) << "a count is no part of it";
  EXPECT_EQ(QuoteOf(line, "ValueError: sample 1287 has label 41\nwhich led to RuntimeError"), line);
  EXPECT_EQ(QuoteOf(line, "NCCL_HOSTID=node0"), line);
  const std::string frame = "  File \"/srv/train.py\", line 186 in evaluate_only_here";
  EXPECT_EQ(QuoteOf(frame, "evaluate_only_here (train.py:186) < main (train.py:9)",
                    "  File \"/srv/train.py\", line 9 in main"),
            frame)
      << "a record in words is none of the file's";
}

}  // namespace
}  // namespace tacet
