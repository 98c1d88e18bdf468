// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/pair_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Below this share of comparable cells a cell is slow. Copies of one pair repeat within a few percent.
constexpr double kSlow = 0.8;
// Cells whose speeds lie further apart than this run over different hardware.
constexpr double kLevelGap = 0.85;
// A row or column is slow as a whole where this share of its cells is.
constexpr double kWhole = 0.75;

struct Cell {
  uint32_t row = 0, column = 0;
  double speed = 0;  // 1 / latency for latencies
  size_t level = 0;
};

bool IsOwn(const BenchmarkMatrix& matrix, size_t row, size_t column) {
  return matrix.row_kind == matrix.column_kind && row < matrix.rows.size() &&
         matrix.rows[row] == matrix.columns[column];
}

std::vector<Cell> CellsOf(const BenchmarkMatrix& matrix) {
  std::vector<Cell> cells;
  for (uint32_t row = 0; row < matrix.cells.size(); ++row)
    for (uint32_t column = 0; column < matrix.cells[row].size(); ++column) {
      const double value = matrix.cells[row][column];
      if (!(value > 0) || IsOwn(matrix, row, column)) continue;
      cells.push_back({row, column, matrix.is_latency ? 1 / value : value, 0});
    }
  return cells;
}

// Cells fall into levels by gaps in their speeds, the fastest level first.
size_t AssignLevels(std::vector<Cell>& cells) {
  std::vector<Cell*> order;
  for (Cell& cell : cells) order.push_back(&cell);
  std::sort(order.begin(), order.end(), [](const Cell* a, const Cell* b) { return a->speed > b->speed; });
  size_t level = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i]->speed < kLevelGap * order[i - 1]->speed) ++level;
    order[i]->level = level;
  }
  return order.empty() ? 0 : level + 1;
}

// Cells of this level and slower ones that every row and every column hold equally often are how the machine is built:
// pairs with two links and pairs with one, near and far sockets. A fault is never so even, and the cells that it slows
// further are still counted here.
bool IsByDesign(const BenchmarkMatrix& matrix, const std::vector<Cell>& cells, size_t level) {
  std::vector<size_t> rows(matrix.cells.size()), columns(matrix.columns.size());
  for (const Cell& cell : cells)
    if (cell.level >= level) ++rows[cell.row], ++columns[cell.column];
  const auto even = [](const std::vector<size_t>& counts) {
    return !counts.empty() && counts.front() > 0 &&
           std::all_of(counts.begin(), counts.end(), [&](size_t n) { return n == counts.front(); });
  };
  return even(rows) && even(columns);
}

double MedianSpeed(const std::vector<Cell>& cells, size_t level) {
  std::vector<double> speeds;
  for (const Cell& cell : cells)
    if (cell.level == level) speeds.push_back(cell.speed);
  return Median(speeds);
}

// For each cell what it should reach: its own level where that is by design, else the nearest faster one that is, else
// the fastest level that is no exception itself.
std::vector<double> ExpectedSpeeds(const BenchmarkMatrix& matrix, const std::vector<Cell>& cells, size_t levels,
                                   std::vector<double>& designed) {
  std::vector<double> medians(levels), reference(levels, 0);
  std::vector<size_t> counts(levels, 0);
  for (const Cell& cell : cells) ++counts[cell.level];
  const size_t least = std::max<size_t>(2, cells.size() / 5);
  double fastest = 0;
  for (size_t level = 0; level < levels; ++level) {
    medians[level] = MedianSpeed(cells, level);
    if (fastest == 0 && counts[level] >= std::min(least, cells.size())) fastest = medians[level];
  }
  if (fastest == 0 && levels > 0) fastest = medians[0];
  double above = 0;
  for (size_t level = 0; level < levels; ++level) {
    const bool by_design = IsByDesign(matrix, cells, level);
    // A single cell that is faster than all others sets no standard.
    if (by_design && medians[level] <= fastest * (1 + 1e-9)) {
      designed.push_back(medians[level]);
      above = medians[level];
      reference[level] = medians[level];
    } else {
      reference[level] = above > 0 ? above : fastest;
    }
  }
  std::vector<double> expected;
  for (const Cell& cell : cells) expected.push_back(reference[cell.level]);
  return expected;
}

struct LineTally {
  size_t slow = 0, all = 0;
  std::vector<double> shares;
};

void NameLines(const std::vector<LineTally>& tallies, std::vector<uint32_t>& names, std::vector<double>& shares) {
  for (uint32_t i = 0; i < tallies.size(); ++i) {
    const LineTally& tally = tallies[i];
    // Of a line of one cell nothing tells the line from the cell.
    if (tally.all < 2 || static_cast<double>(tally.slow) < kWhole * static_cast<double>(tally.all)) continue;
    names.push_back(i);
    shares.push_back(Median(tally.shares));
  }
  // If all are slow, none stands out.
  if (names.size() == tallies.size()) names.clear(), shares.clear();
}

// A device or host that is slow whether it sends or receives is named once, and not by its row and its column. Rounds
// of pairs leave most cells empty: there row and column together tell.
void NameMembers(const BenchmarkMatrix& matrix, const std::vector<LineTally>& rows,
                 const std::vector<LineTally>& columns, PairMatrixView& view) {
  if (matrix.row_kind != matrix.column_kind || matrix.rows != matrix.columns) return;
  std::vector<LineTally> members = rows;
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].slow += columns[i].slow;
    members[i].all += columns[i].all;
    members[i].shares.insert(members[i].shares.end(), columns[i].shares.begin(), columns[i].shares.end());
    // One direction alone is a row or a column.
    if ((rows[i].all > 0 && rows[i].slow == 0) || (columns[i].all > 0 && columns[i].slow == 0)) members[i].slow = 0;
  }
  NameLines(members, view.slow_members, view.member_shares);
  const auto drop = [&](std::vector<uint32_t>& lines, std::vector<double>& shares) {
    for (size_t i = lines.size(); i-- > 0;) {
      if (std::count(view.slow_members.begin(), view.slow_members.end(), lines[i]) == 0) continue;
      lines.erase(lines.begin() + static_cast<ptrdiff_t>(i));
      shares.erase(shares.begin() + static_cast<ptrdiff_t>(i));
    }
  };
  drop(view.slow_rows, view.row_shares);
  drop(view.slow_columns, view.column_shares);
}

std::string NameOf(const std::string& kind, const std::vector<std::string>& names, uint32_t at) {
  const std::string name = at < names.size() ? names[at] : std::to_string(at);
  return kind.empty() ? name : kind + " " + name;
}

}  // namespace

std::string PairMatrixView::RowName(uint32_t row) const { return NameOf(matrix.row_kind, matrix.rows, row); }
std::string PairMatrixView::ColumnName(uint32_t column) const {
  return NameOf(matrix.column_kind, matrix.columns, column);
}

PairMatrixView ReadPairMatrix(const BenchmarkMatrix& matrix) {
  PairMatrixView view;
  view.matrix = matrix;
  for (const auto& row : matrix.cells)
    for (const double value : row)
      if (value > 0) view.sum += value;
  std::vector<Cell> cells = CellsOf(matrix);
  if (cells.empty()) return view;
  const auto value_of = [&](double speed) { return matrix.is_latency ? 1 / speed : speed; };
  std::vector<double> values;
  for (const Cell& cell : cells) values.push_back(value_of(cell.speed));
  view.typical = Median(values);
  view.least = *std::min_element(values.begin(), values.end());
  view.most = *std::max_element(values.begin(), values.end());
  const size_t levels = AssignLevels(cells);
  const std::vector<double> expected = ExpectedSpeeds(matrix, cells, levels, view.levels);
  for (double& level : view.levels) level = value_of(level);
  std::vector<LineTally> rows(matrix.cells.size()), columns(matrix.columns.size());
  std::vector<char> slow(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const double share = cells[i].speed / expected[i];
    slow[i] = share < kSlow;
    for (LineTally* tally : {&rows[cells[i].row], &columns[cells[i].column]}) {
      ++tally->all;
      tally->slow += slow[i] ? 1 : 0;
      if (slow[i]) tally->shares.push_back(share);
    }
  }
  NameLines(rows, view.slow_rows, view.row_shares);
  NameLines(columns, view.slow_columns, view.column_shares);
  NameMembers(matrix, rows, columns, view);
  const auto has = [](const std::vector<uint32_t>& list, uint32_t one) {
    return std::count(list.begin(), list.end(), one) > 0;
  };
  for (size_t i = 0; i < cells.size(); ++i)
    if (slow[i] && !has(view.slow_rows, cells[i].row) && !has(view.slow_columns, cells[i].column) &&
        !has(view.slow_members, cells[i].row) && !has(view.slow_members, cells[i].column))
      view.slow_cells.push_back({cells[i].row, cells[i].column, value_of(cells[i].speed), value_of(expected[i])});
  return view;
}

std::vector<PairMatrixView> MatricesOfHosts(const std::vector<const BenchmarkRun*>& runs) {
  struct Pairs {
    std::set<std::string> hosts;
    std::map<std::pair<std::string, std::string>, std::vector<double>> rates;
    const BenchmarkRun* first = nullptr;
  };
  std::map<std::pair<std::string, std::string>, Pairs> all;  // by tool and operation
  for (const BenchmarkRun* run : runs) {
    std::string from = run->from, to = run->to;
    std::set<std::string> hosts;
    for (const BenchmarkDevice& device : run->devices) hosts.insert(device.host);
    if (from.empty() && hosts.size() == 2) from = *hosts.begin(), to = *hosts.rbegin();
    double rate = run->received_gbs;
    for (const BenchmarkLine& line : run->lines)
      rate = std::max({rate, line.out_of_place.bus_gbs, line.in_place.bus_gbs});
    if (from.empty() || to.empty() || from == to || rate <= 0) continue;
    Pairs& pairs = all[{run->tool, run->operation}];
    if (!pairs.first) pairs.first = run;
    pairs.hosts.insert(from), pairs.hosts.insert(to);
    pairs.rates[{from, to}].push_back(rate);
    // A collective of two goes both ways.
    if (run->tool == "nccl-tests") pairs.rates[{to, from}].push_back(rate);
  }
  std::vector<PairMatrixView> views;
  for (const auto& [key, pairs] : all) {
    constexpr size_t kMostHosts = 1500;  // 18 MB of cells
    if (pairs.hosts.size() < 3 || pairs.hosts.size() > kMostHosts) continue;
    BenchmarkMatrix matrix;
    matrix.title = key.second + " between hosts, from (row) to (column)";
    matrix.rows.assign(pairs.hosts.begin(), pairs.hosts.end());
    matrix.columns = matrix.rows;
    matrix.source = pairs.first->source;
    matrix.cells.assign(matrix.rows.size(),
                        std::vector<double>(matrix.rows.size(), std::numeric_limits<double>::quiet_NaN()));
    const auto place = [&](const std::string& host) {
      return static_cast<size_t>(std::lower_bound(matrix.rows.begin(), matrix.rows.end(), host) - matrix.rows.begin());
    };
    for (const auto& [pair, rates] : pairs.rates) matrix.cells[place(pair.first)][place(pair.second)] = Median(rates);
    PairMatrixView view = ReadPairMatrix(matrix);
    view.tool = key.first, view.operation = key.second, view.run = pairs.first;
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace tacet
