// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/pair_matrix.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/bandwidth/bandwidth_faults.h"

namespace tacet {
namespace {

BenchmarkMatrix Square(size_t n, double value) {
  BenchmarkMatrix matrix;
  matrix.row_kind = matrix.column_kind = "GPU";
  for (size_t i = 0; i < n; ++i) matrix.rows.push_back(std::to_string(i));
  matrix.columns = matrix.rows;
  matrix.cells.assign(n, std::vector<double>(n, value));
  for (size_t i = 0; i < n; ++i) matrix.cells[i][i] = 10 * value;  // own memory
  return matrix;
}

TEST(PairMatrix, EvenCellsAreInOrder) {
  BenchmarkMatrix matrix = Square(8, 370);
  matrix.cells[2][5] = 355;
  EXPECT_FALSE(ReadPairMatrix(matrix).HasFault());
}

TEST(PairMatrix, NamesOneCell) {
  BenchmarkMatrix matrix = Square(8, 370);
  matrix.cells[2][5] = 120;
  const PairMatrixView view = ReadPairMatrix(matrix);
  ASSERT_EQ(view.slow_cells.size(), 1u);
  EXPECT_EQ(view.slow_cells[0].row, 2u);
  EXPECT_EQ(view.slow_cells[0].column, 5u);
  EXPECT_DOUBLE_EQ(view.slow_cells[0].expected, 370);
  EXPECT_TRUE(view.slow_rows.empty() && view.slow_columns.empty() && view.slow_members.empty());
  EXPECT_EQ(SlowPartsOf(view).at(0).name, "GPU 2 -> GPU 5");
}

TEST(PairMatrix, NamesARowAColumnAndADevice) {
  BenchmarkMatrix row = Square(8, 370), column = Square(8, 370), both = Square(8, 370);
  for (size_t i = 0; i < 8; ++i) {
    if (i == 3) continue;
    row.cells[3][i] = 90;
    column.cells[i][3] = 90;
    both.cells[3][i] = both.cells[i][3] = 90;
  }
  EXPECT_EQ(ReadPairMatrix(row).slow_rows, std::vector<uint32_t>{3});
  EXPECT_TRUE(ReadPairMatrix(row).slow_cells.empty());
  EXPECT_EQ(ReadPairMatrix(column).slow_columns, std::vector<uint32_t>{3});
  const PairMatrixView view = ReadPairMatrix(both);
  EXPECT_EQ(view.slow_members, std::vector<uint32_t>{3});
  EXPECT_TRUE(view.slow_rows.empty() && view.slow_columns.empty() && view.slow_cells.empty());
}

TEST(PairMatrix, LinksThatDifferByDesignAreNoFault) {
  // Four GPUs, pairs joined by NVLink, the rest over PCIe.
  BenchmarkMatrix matrix = Square(4, 25);
  matrix.cells[0][1] = matrix.cells[1][0] = matrix.cells[2][3] = matrix.cells[3][2] = 270;
  const PairMatrixView view = ReadPairMatrix(matrix);
  EXPECT_FALSE(view.HasFault());
  EXPECT_EQ(view.levels, (std::vector<double>{270, 25}));
}

TEST(PairMatrix, AFaultAmongLevelsIsStillFound) {
  BenchmarkMatrix matrix = Square(4, 25);
  matrix.cells[0][1] = matrix.cells[1][0] = matrix.cells[2][3] = matrix.cells[3][2] = 270;
  matrix.cells[1][3] = 6;
  const PairMatrixView view = ReadPairMatrix(matrix);
  ASSERT_EQ(view.slow_cells.size(), 1u);
  EXPECT_EQ(view.slow_cells[0].row, 1u);
}

TEST(PairMatrix, OfLatenciesTheLongOnesAreSlow) {
  BenchmarkMatrix matrix = Square(4, 2.5);
  matrix.is_latency = true;
  matrix.cells[1][2] = 9;
  ASSERT_EQ(ReadPairMatrix(matrix).slow_cells.size(), 1u);
}

TEST(PairMatrix, TwoRoundsOfPairsIsolateAHost) {
  std::vector<BenchmarkRun> runs;
  const auto add = [&](const char* a, const char* b, double gbs) {
    BenchmarkRun& run = runs.emplace_back();
    run.tool = "iperf3";
    run.operation = "tcp_stream";
    run.from = a, run.to = b, run.received_gbs = gbs;
  };
  add("a", "b", 11.7), add("c", "d", 3.0), add("e", "f", 11.6);
  add("b", "c", 11.8), add("d", "e", 2.9), add("f", "a", 11.7);
  std::vector<const BenchmarkRun*> pointers;
  for (const BenchmarkRun& run : runs) pointers.push_back(&run);
  const std::vector<PairMatrixView> views = MatricesOfHosts(pointers);
  ASSERT_EQ(views.size(), 1u);
  ASSERT_EQ(views[0].slow_members.size(), 1u);
  EXPECT_EQ(views[0].RowName(views[0].slow_members[0]), "d");
  EXPECT_TRUE(views[0].slow_cells.empty());
}

TEST(PairMatrix, NothingIsSaidOfNothing) {
  EXPECT_FALSE(ReadPairMatrix({}).HasFault());
  BenchmarkMatrix matrix = Square(2, NAN);
  EXPECT_FALSE(ReadPairMatrix(matrix).HasFault());
}

}  // namespace
}  // namespace tacet
