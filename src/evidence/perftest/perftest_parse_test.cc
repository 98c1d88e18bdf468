// SPDX-License-Identifier: Apache-2.0
#include "evidence/perftest/perftest_parse.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/format.h"

namespace tacet {
extern const Format kPerftestFormat;
namespace {

constexpr std::string_view kHead =
    "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Mtu             : "
    "2048[B]\n"
    " Link type       : IB\n";

TEST(PerftestParse, MegabytesAreMebibytes) {
  const PerftestOutput out = ParsePerftestText(
      std::string(kHead) +
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      " 8388608    2000             23240.68            23240.00                  0.002905\n------\n");
  ASSERT_EQ(out.tables.size(), 1u);
  ASSERT_EQ(out.tables[0].rows.size(), 1u);
  EXPECT_NEAR(out.tables[0].rows[0].average_gbs, 23240.00 * 1048576e-9, 1e-9);
  EXPECT_EQ(out.tables[0].device, "mlx5_0");
  EXPECT_EQ(out.tables[0].mtu, 2048);
  EXPECT_TRUE(out.tables[0].concluded);
  EXPECT_EQ(out.not_understood, 0u);
}

TEST(PerftestParse, GigabitsAreDecimal) {
  const PerftestOutput out = ParsePerftestText(
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536 5000 391.12 391.04 "
      "0.745869\n");
  ASSERT_EQ(out.tables.size(), 1u);
  EXPECT_NEAR(out.tables[0].rows.at(0).average_gbs, 48.88, 1e-9);
}

TEST(PerftestParse, LatencyColumnsAreFoundByTheHeading) {
  const PerftestOutput out = ParsePerftestText(
      "                    Send Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% "
      "percentile[usec]   99.9% percentile[usec] \n"
      " 2       1000          1.02           8.14         1.06     \t       1.07        \t0.09   \t\t1.30    \t\t8.14  "
      " \n");
  ASSERT_EQ(out.tables.size(), 1u);
  const PerftestRow& row = out.tables[0].rows.at(0);
  EXPECT_DOUBLE_EQ(row.min_us, 1.02);
  EXPECT_DOUBLE_EQ(row.average_us, 1.07);
  EXPECT_DOUBLE_EQ(row.p99_us, 1.30);
}

TEST(PerftestParse, RowsOfBothSidesCountOnce) {
  const PerftestOutput out = ParsePerftestText(std::string(kHead) + std::string(kHead) +
                                               " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   "
                                               "MsgRate[Mpps]\n 2 5000 1.00 0.99 0.5\n 2 5000 1.00 0.99 0.5\n"
                                               " 4 5000 2.00 1.99 0.5\n 4 5000 2.00 1.99 0.5\n");
  ASSERT_EQ(out.tables.size(), 1u);
  EXPECT_EQ(out.tables[0].rows.size(), 2u);
}

TEST(PerftestParse, JsonTellsItsUnitByTheRateOfMessages) {
  const PerftestOutput gbits = ParsePerftestJson(
      R"({"test_info":{"test":"RDMA_Write BW Test","Device":"mlx5_0"},"results":{"MsgSize":65536,"BW_peak":391.12,"BW_average":391.05,"MsgRate":0.745869}})");
  EXPECT_NEAR(gbits.tables.at(0).rows.at(0).average_gbs, 391.05 / 8, 1e-9);
  const PerftestOutput mib = ParsePerftestJson(
      R"({"test_info":{"test":"RDMA_Write BW Test"},"results":{"MsgSize":65536,"BW_peak":46616.8,"BW_average":46616.8,"MsgRate":0.745869}})");
  EXPECT_NEAR(mib.tables.at(0).rows.at(0).average_gbs, 46616.8 * 1048576e-9, 1e-6);
}

TEST(PerftestParse, OperationsHaveTheNamesOfTheirPrograms) {
  Fragment out;
  kPerftestFormat.read({"p.txt",
                        "RDMA_Read Bidirectional BW Test\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec] "
                        "MsgRate[Mpps]\n 2 5 1 1 1\n",
                        false},
                       out);
  EXPECT_EQ(out.benchmark_runs.at(0).operation, "ib_read_bi_bw");
}

TEST(PerftestParse, ASmallMtuAndACutAreRemarkedOn) {
  Fragment out;
  const std::string text =
      std::string(kHead) + " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n 2 5 1 1 1\n";
  kPerftestFormat.read({"p.txt", text, false}, out);
  ASSERT_EQ(out.diagnostics.size(), 2u);
  EXPECT_EQ(out.diagnostics[0].code, "truncated");
  EXPECT_EQ(out.diagnostics[1].code, "small-mtu");
}

TEST(PerftestParse, APairIsNamedByTheLineAbove) {
  Fragment out;
  const std::string text =
      "# pair gpu1 gpu2\n RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 2 "
      "5 1 1 1\n---------\n";
  kPerftestFormat.read({"p.txt", text, false}, out);
  EXPECT_EQ(out.benchmark_runs.at(0).from, "gpu1");
  EXPECT_EQ(out.benchmark_runs.at(0).to, "gpu2");
}

TEST(PerftestParse, HostileRowsAreNoRows) {
  const PerftestOutput out = ParsePerftestText(
      " #bytes #iterations BW peak[MB/sec] BW average[MB/sec]\n -5 1 1 1\n 99999999999999999999 1 1 1\n 5 nan nan "
      "nan\n 7\n");
  ASSERT_EQ(out.tables.size(), 1u);
  EXPECT_TRUE(out.tables[0].rows.empty());
  EXPECT_TRUE(ParsePerftestText("").tables.empty());
  EXPECT_TRUE(ParsePerftestJson("{").tables.empty() || ParsePerftestJson("{").tables[0].rows.empty());
}

}  // namespace
}  // namespace tacet
