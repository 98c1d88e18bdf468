// SPDX-License-Identifier: Apache-2.0
#include "evidence/bench_table/bench_table_parse.h"

#include <gtest/gtest.h>

#include "evidence/format.h"

namespace tacet {
extern const Format kBenchTableFormat;
namespace {

TEST(BenchTableParse, TheHeadingNamesColumnsAndUnits) {
  const BenchTableOutput out =
      ParseBenchTables("# all_reduce, 16 ranks\nsize, time_ms, bandwidth (Gbit/s)\n1M, 0.5, 16\n2 MiB, 1, 16\n");
  ASSERT_EQ(out.tables.size(), 1u);
  const BenchTable& table = out.tables[0];
  EXPECT_EQ(table.operation, "all_reduce");
  EXPECT_EQ(table.ranks, 16);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1].bytes, 2097152);
  EXPECT_DOUBLE_EQ(table.rows[0].time_us, 500);
  EXPECT_DOUBLE_EQ(table.rows[0].algorithm_gbs, 2);
}

TEST(BenchTableParse, MarkdownIsATableToo) {
  const BenchTableOutput out =
      ParseBenchTables("| size | time (us) | busbw |\n|---|---|---|\n| 1024 | 12.5 | 0.14 |\n");
  ASSERT_EQ(out.tables.size(), 1u);
  EXPECT_DOUBLE_EQ(out.tables[0].rows.at(0).bus_gbs, 0.14);
}

TEST(BenchTableParse, BareNumbersMustAgreeWithEachOther) {
  EXPECT_EQ(ParseBenchTables("1048576 82.1 12.77\n4194304 131.4 31.92\n16777216 331.7 50.58\n").tables.size(), 1u);
  EXPECT_EQ(ParseBenchTables("1048576 82.1 3.1\n4194304 131.4 9\n16777216 331.7 1\n").tables.size(), 0u);
}

TEST(BenchTableParse, SizesMayHaveUnits) {
  EXPECT_EQ(ParseTableSize("64K"), 65536);
  EXPECT_EQ(ParseTableSize("64KiB"), 65536);
  EXPECT_EQ(ParseTableSize("1 GB"), 1073741824);
  EXPECT_EQ(ParseTableSize("512B"), 512);
  EXPECT_EQ(ParseTableSize("12 apples"), -1);
  EXPECT_EQ(ParseTableSize("-1"), -1);
  EXPECT_EQ(ParseTableSize("1e30"), -1);
}

TEST(BenchTableFormat, IsOnlyEverAGuessAndNeverOfProse) {
  const std::string_view table = "# size(B) time(us) busbw(GB/s)\n1024 1 1\n2048 2 1\n4096 4 1\n";
  EXPECT_EQ(kBenchTableFormat.recognise(table, "x"), Recognition::maybe);
  EXPECT_EQ(kBenchTableFormat.recognise("The size of the bus grows with time.\nNothing else.\nAt all.\n1 2 3\n", "x"),
            Recognition::no);
  EXPECT_EQ(kBenchTableFormat.recognise("step loss time\n1 2.3 0.5\n2 2.2 0.5\n3 2.1 0.5\n", "x"), Recognition::no);
  EXPECT_EQ(kBenchTableFormat.recognise("", "x"), Recognition::no);
}

TEST(BenchTableParse, HostileRowsAreNoRows) {
  const BenchTableOutput out = ParseBenchTables("size time bw\n-1 2 3\nnan 1 1\n5 inf 1\n1 2 3 4 5\n");
  EXPECT_TRUE(out.tables.empty());
}

}  // namespace
}  // namespace tacet
