// SPDX-License-Identifier: Apache-2.0
#include "evidence/osu/osu_parse.h"

#include <gtest/gtest.h>

#include "evidence/format.h"

namespace tacet {
extern const Format kOsuFormat;
namespace {

TEST(OsuParse, MegabytesAreDecimal) {
  const OsuOutput out = ParseOsu(
      "# OSU MPI-CUDA Bandwidth Test v7.1\n# Send Buffer on DEVICE (D)\n# Size      Bandwidth (MB/s)\n1048576 "
      "23871.05\n");
  ASSERT_EQ(out.tables.size(), 1u);
  EXPECT_EQ(out.tables[0].title, "MPI-CUDA Bandwidth");
  EXPECT_EQ(out.tables[0].version, "v7.1");
  EXPECT_NEAR(out.tables[0].rows.at(0).gbs, 23.87105, 1e-12);
}

TEST(OsuParse, FullStatisticsAreKept) {
  const OsuOutput out = ParseOsu(
      "# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  "
      "Iterations\n4 3.11 2.90 3.52 1000\n");
  const OsuRow& row = out.tables.at(0).rows.at(0);
  EXPECT_DOUBLE_EQ(row.time_us, 3.11);
  EXPECT_DOUBLE_EQ(row.min_us, 2.90);
  EXPECT_DOUBLE_EQ(row.max_us, 3.52);
}

TEST(OsuParse, OperationsAreNamed) {
  Fragment out;
  kOsuFormat.read(
      {"o.txt",
       "# OSU MPI Allreduce Latency Test\n# Size Avg Latency(us)\n4 3.1\n# OSU MPI Bi-Directional Bandwidth Test v7\n"
       "# Size Bandwidth (MB/s) Validation\n4 1.0 Pass\n8 1.0 Fail\n",
       false},
      out);
  ASSERT_EQ(out.benchmark_runs.size(), 2u);
  EXPECT_EQ(out.benchmark_runs[0].operation, "all_reduce");
  EXPECT_EQ(out.benchmark_runs[1].operation, "osu_bibw");
  EXPECT_EQ(out.benchmark_runs[1].lines[0].out_of_place.wrong, 0);
  EXPECT_EQ(out.benchmark_runs[1].lines[1].out_of_place.wrong, 1);
}

TEST(OsuParse, RowsWithoutAHeadingAndHostileOnesAreNoRows) {
  EXPECT_TRUE(ParseOsu("# OSU MPI Latency Test\n1 2\n").tables.at(0).rows.empty());
  EXPECT_TRUE(ParseOsu("# OSU MPI Latency Test\n# Size Latency (us)\n-1 2\n4 nan\n8\n").tables.at(0).rows.empty());
  EXPECT_TRUE(ParseOsu("").tables.empty());
}

}  // namespace
}  // namespace tacet
