// SPDX-License-Identifier: Apache-2.0
#include "evidence/nvbandwidth/nvbandwidth_parse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "evidence/format.h"

namespace tacet {
extern const Format kNvbandwidthFormat;
namespace {

constexpr std::string_view kOneTest =
    "nvbandwidth Version: v0.8\n\nRunning device_to_device_memcpy_read_ce.\n"
    "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n 0       N/A    368.12\n"
    " 1    368.34       N/A\n\nSUM device_to_device_memcpy_read_ce 736.46\n";

TEST(NvbandwidthParse, KeepsCellsAndSum) {
  const NvbandwidthOutput out = ParseNvbandwidthText(kOneTest);
  ASSERT_EQ(out.tests.size(), 1u);
  EXPECT_EQ(out.version, "v0.8");
  EXPECT_EQ(out.tests[0].name, "device_to_device_memcpy_read_ce");
  ASSERT_EQ(out.tests[0].tables.size(), 1u);
  EXPECT_TRUE(std::isnan(out.tests[0].tables[0].cells[0][0]));
  EXPECT_DOUBLE_EQ(out.tests[0].tables[0].cells[1][0], 368.34);
  EXPECT_DOUBLE_EQ(out.tests[0].sum, 736.46);
  EXPECT_EQ(out.not_understood, 0u);
}

TEST(NvbandwidthParse, LatenciesAreMicroseconds) {
  Fragment out;
  const std::string text =
      "Running host_device_latency_sm.\nmemory latency SM CPU(row) <-> GPU(column) (ns)\n   0\n 0  772.58\n\n"
      "SUM host_device_latency_sm 772.58\n";
  kNvbandwidthFormat.read({"n.txt", text, false}, out);
  ASSERT_EQ(out.benchmark_runs.size(), 1u);
  const BenchmarkMatrix& matrix = out.benchmark_runs[0].matrices[0];
  EXPECT_TRUE(matrix.is_latency);
  EXPECT_NEAR(matrix.cells[0][0], 0.77258, 1e-9);
  EXPECT_EQ(matrix.row_kind, "CPU");
  EXPECT_EQ(matrix.column_kind, "GPU");
}

TEST(NvbandwidthParse, JsonGivesTheSameCells) {
  const NvbandwidthOutput out = ParseNvbandwidthJson(R"J({"nvbandwidth":{"version":"v0.8","testcases":[
      {"name":"t","status":"Passed","bandwidth_description":"memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
       "bandwidth_matrix":[["N/A","368.12"],["368.34","N/A"]],"sum":736.46},
      {"name":"w","status":"Waived"}]}})J");
  ASSERT_EQ(out.tests.size(), 2u);
EXPECT_DOUBLE_EQ(out.tests[0].tables[0].cells[0][1], 368.12);
EXPECT_DOUBLE_EQ(out.tests[0].sum, 736.46);
EXPECT_TRUE(out.tests[1].waived);
}

TEST(NvbandwidthParse, ACutTableIsToldAndKept) {
  Fragment out;
  const std::string_view cut = kOneTest.substr(0, kOneTest.find(" 1    368.34"));
  kNvbandwidthFormat.read({"n.txt", cut, false}, out);
  ASSERT_EQ(out.benchmark_runs.size(), 1u);
  EXPECT_FALSE(out.benchmark_runs[0].concluded);
  ASSERT_EQ(out.diagnostics.size(), 1u);
  EXPECT_EQ(out.diagnostics[0].code, "truncated");
}

TEST(NvbandwidthParse, RowsThatDoNotFitAreNoRows) {
  const NvbandwidthOutput out = ParseNvbandwidthText(
      "Running x.\nmemcpy GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 1 2 3\n 9999999999 1 2\n -1 2 3\n 0 nan "
      "inf\n");
  ASSERT_EQ(out.tests.size(), 1u);
  EXPECT_TRUE(out.tests[0].tables[0].rows.empty());
  EXPECT_EQ(ParseNvbandwidthJson("{\"nvbandwidth\":").tests.size(), 0u);
  EXPECT_EQ(ParseNvbandwidthText("").tests.size(), 0u);
}

}  // namespace
}  // namespace tacet
