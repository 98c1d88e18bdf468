// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/benchmark_run.h"

namespace tacet {

struct PairCell {
  uint32_t row = 0, column = 0;
  double value = 0;     // GB/s or us
  double expected = 0;  // what comparable cells reach
};

// A matrix of pairs, and which of its cells, rows and columns are slow.
struct PairMatrixView {
  BenchmarkMatrix matrix;
  std::string tool, operation;
  const BenchmarkRun* run = nullptr;        // the first that it is of
  size_t incident = 0;                      // of that run
  double typical = 0, least = 0, most = 0;  // of the cells that count
  std::vector<double> levels;               // medians, the fastest first, where paths differ by design
  std::vector<PairCell> slow_cells;         // that no slow row or column holds
  std::vector<uint32_t> slow_rows, slow_columns;
  std::vector<uint32_t> slow_members;  // of a matrix of like against like: slow in both directions, or in all pairs
  std::vector<double> row_shares, column_shares, member_shares;  // of the slow ones: median of value over expected
  double sum = 0;                                                // of all cells
  bool HasFault() const {
    return !slow_cells.empty() || !slow_rows.empty() || !slow_columns.empty() || !slow_members.empty();
  }
  std::string RowName(uint32_t row) const;
  std::string ColumnName(uint32_t column) const;
};

PairMatrixView ReadPairMatrix(const BenchmarkMatrix& matrix);

// Tests between two hosts each, as one matrix of hosts; empty where there are fewer than three of them.
std::vector<PairMatrixView> MatricesOfHosts(const std::vector<const BenchmarkRun*>& runs);

}  // namespace tacet
