// SPDX-License-Identifier: Apache-2.0
#include "evidence/bench_table/bench_table_parse.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostCells = 12;
enum class Kind { other, size, time, algorithm, bus };

struct Column {
  Kind kind = Kind::other;
  double scale = 1;  // to bytes, us or GB/s
};

// Cells of one line: between commas, semicolons, tabs or bars where there are any, else between blanks.
std::vector<std::string_view> CellsOf(std::string_view line) {
  std::vector<std::string_view> cells;
  line = Trim(line);
  const char mark = Contains(line, "|")    ? '|'
                    : Contains(line, "\t") ? '\t'
                    : Contains(line, ",")  ? ','
                    : Contains(line, ";")  ? ';'
                                           : ' ';
  if (mark == '|') {
    TakeLiteral(line, "|");
    if (line.ends_with('|')) line.remove_suffix(1);
  }
  while (cells.size() <= kMostCells && !Trim(line).empty()) {
    if (mark == ' ') {
      cells.push_back(TakeWord(line));
      continue;
    }
    cells.push_back(Trim(TakeUntil(line, mark)));
    if (!line.empty()) line.remove_prefix(1);
  }
  return cells;
}

double TimeScale(std::string_view name) {
  if (Contains(name, "ns")) return 1e-3;
  if (Contains(name, "ms")) return 1e3;
  if (Contains(name, "us") || Contains(name, "\xc2\xb5s") || Contains(name, "\xce\xbcs")) return 1;
  return Contains(name, "(s)") || Contains(name, "[s]") || Contains(name, "sec") ? 1e6 : 1;
}

// Bits are written with a small b; without a unit it is GB/s, as nccl-tests has it.
double RateScale(std::string_view written) {
  const std::string name = LowerCase(written);
  const bool bits = Contains(name, "bit") || Contains(name, "bps") || Contains(written, "b/s");
  double scale = bits ? 0.125 : 1;
  if (Contains(name, "mib")) return 1048576e-9;
  if (Contains(name, "gib")) return 1073741824e-9;
  if (Contains(name, "mb") || Contains(name, "mbit")) scale *= 1e-3;
  return scale;
}

Column ColumnOf(std::string_view written) {
  const std::string name = LowerCase(written);
  const auto has = [&](std::string_view part) { return Contains(name, part); };
  if (has("busbw") || has("bus_bw") || has("bus bw") || has("bus")) return {Kind::bus, RateScale(written)};
  if (has("algbw") || has("alg_bw") || has("bandwidth") || has("bw") || has("b/s") || has("bps"))
    return {Kind::algorithm, RateScale(written)};
  if (has("time") || has("latency") || name == "us" || name == "(us)" || name == "t")
    return {Kind::time, TimeScale(name)};
  if (has("size") || has("bytes") || has("msg") || name == "(b)") {
    const double scale = has("kib") || has("kb") ? 1024 : has("mib") || has("mb") ? 1048576 : 1;
    return {Kind::size, scale};
  }
  return {};
}

// "# size(B)  time(us)  busbw(GB/s)", "size,time_us,bw". A unit in a word of its own belongs to the word before it.
std::vector<Column> ParseHeading(std::string_view line) {
  line = Trim(line);
  while (TakeLiteral(line, "#") || TakeLiteral(line, " ")) {
  }
  std::vector<Column> columns;
  std::vector<std::string> names;
  for (const std::string_view cell : CellsOf(line)) {
    if (!cell.empty() && (cell[0] == '(' || cell[0] == '[') && !names.empty() && !Contains(line, ",") &&
        !Contains(line, "|"))
      names.back() += cell;
    else
      names.emplace_back(cell);
  }
  bool size = false, figure = false;
  for (const std::string& name : names) {
    double number = 0;
    if (IsWholeNumber(name, &number) || name.size() > 40) return {};
    columns.push_back(ColumnOf(name));
    size = size || columns.back().kind == Kind::size;
    figure = figure || columns.back().kind == Kind::time || columns.back().kind == Kind::algorithm ||
             columns.back().kind == Kind::bus;
  }
  // The size comes first in all such tables; a word elsewhere is prose.
  if (!size || !figure || columns.size() > kMostCells || columns.front().kind != Kind::size) return {};
  return columns;
}

bool ParseRow(std::string_view line, const std::vector<Column>& columns, BenchTableRow* row) {
  const std::vector<std::string_view> cells = CellsOf(line);
  if (cells.size() < 2 || cells.size() > columns.size()) return false;
  bool any = false;
  for (size_t i = 0; i < cells.size(); ++i) {
    double value = -1;
    if (columns[i].kind == Kind::size) {
      const int64_t bytes = ParseTableSize(cells[i]);
      if (bytes < 0) return false;
      row->bytes = static_cast<int64_t>(static_cast<double>(bytes) * columns[i].scale);
    } else if (columns[i].kind != Kind::other) {
      if (!IsWholeNumber(cells[i], &value) || value < 0) return false;
      value *= columns[i].scale;
      any = true;
      if (columns[i].kind == Kind::time) row->time_us = value;
      if (columns[i].kind == Kind::algorithm) row->algorithm_gbs = value;
      if (columns[i].kind == Kind::bus) row->bus_gbs = value;
    }
  }
  return any && row->bytes >= 0;
}

// Three bare numbers: size, time in us, GB/s. The third must follow from the first two by one factor for all rows, else
// nothing says that this is a benchmark.
bool FitsByFigures(const std::vector<BenchTableRow>& rows) {
  std::vector<double> factors;
  for (const BenchTableRow& row : rows)
    // Small rates have too few digits to tell.
    if (row.bytes > 0 && row.time_us > 0 && row.algorithm_gbs >= 0.2)
      factors.push_back(row.algorithm_gbs * row.time_us * 1e3 / static_cast<double>(row.bytes));
  if (factors.size() < 3) return false;
  std::vector<double> sorted = factors;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted[sorted.size() / 2];
  if (middle < 0.45 || middle > 2.05) return false;
  const auto near =
      std::count_if(factors.begin(), factors.end(), [&](double f) { return std::fabs(f / middle - 1) < 0.05; });
  return static_cast<size_t>(near) * 10 >= factors.size() * 9;
}

// "# all_reduce, 16 ranks": words above a table.
void TakeRemark(std::string_view line, std::string& operation, int64_t& ranks) {
  const std::string text = LowerCase(line);
  for (const auto& [word, name] :
       {std::pair{"reduce_scatter", "reduce_scatter"}, std::pair{"reducescatter", "reduce_scatter"},
        std::pair{"all_reduce", "all_reduce"}, std::pair{"allreduce", "all_reduce"},
        std::pair{"all_gather", "all_gather"}, std::pair{"allgather", "all_gather"},
        std::pair{"alltoall", "all_to_all"}, std::pair{"all_to_all", "all_to_all"}, std::pair{"broadcast", "broadcast"},
        std::pair{"sendrecv", "sendrecv"}})
    if (Contains(text, word)) {
      operation = name;
      break;
    }
  for (const std::string_view key : {"ranks:", "ranks=", "gpus:", "gpus=", "nranks:", "nranks=", "ranks "})
    if (auto rest = After(text, key)) {
      SkipBlanks(*rest);
      int64_t value = 0;
      if (TakeNumber(*rest, &value) && value > 0) ranks = value;
    }
  for (const std::string_view key : {" ranks", " gpus"})
    if (const size_t at = text.find(key); at != std::string::npos) {
      size_t begin = at;
      while (begin > 0 && IsDigit(text[begin - 1])) --begin;
      std::string_view number = std::string_view(text).substr(begin, at - begin);
      int64_t value = 0;
      if (TakeNumber(number, &value) && value > 0) ranks = value;
    }
}

bool IsRule(std::string_view text) { return text.find_first_not_of("-=|:+ ") == std::string_view::npos; }

}  // namespace

int64_t ParseTableSize(std::string_view cell) {
  cell = Trim(cell);
  double value = 0;
  if (!TakeDouble(cell, &value) || value < 0) return -1;
  SkipBlanks(cell);
  double scale = 1;
  if (!cell.empty()) {
    switch (std::tolower(static_cast<unsigned char>(cell[0]))) {
      case 'k': scale = 1024; break;
      case 'm': scale = 1048576; break;
      case 'g': scale = 1073741824; break;
      case 'b': break;
      default: return -1;
    }
    std::string rest = LowerCase(cell.substr(cell[0] == 'b' || cell[0] == 'B' ? 0 : 1));
    if (!rest.empty() && rest != "b" && rest != "ib" && rest != "byte" && rest != "bytes") return -1;
  }
  value *= scale;
  return value < 9e15 ? static_cast<int64_t>(std::llround(value)) : -1;
}

BenchTableOutput ParseBenchTables(std::string_view bytes) {
  BenchTableOutput out;
  std::vector<Column> columns;
  const std::vector<Column> bare = {{Kind::size, 1}, {Kind::time, 1}, {Kind::algorithm, 1}};
  std::string operation;
  int64_t ranks = -1;
  bool open = false;
  uint64_t bare_bytes = 0;
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    const std::string_view text = Trim(line);
    uint64_t* account = &out.not_understood;
    BenchTableRow row;
    if (text.empty() || IsRule(text)) {
      account = &out.ignored;
    } else if (std::vector<Column> heading = line.size() < 400 ? ParseHeading(text) : std::vector<Column>();
               !heading.empty()) {
      columns = std::move(heading);
      open = false;
      account = &out.understood;
    } else if (line.size() < 400 && ParseRow(text, columns.empty() ? bare : columns, &row)) {
      if (!open) {
        BenchTable& table = out.tables.emplace_back();
        table.operation = operation;
        table.ranks = ranks;
        table.headed = !columns.empty();
        table.line = lines.number();
        table.offset = lines.offset();
        open = true;
      }
      row.line = lines.number();
      row.offset = lines.offset();
      out.tables.back().rows.push_back(row);
      account = &out.understood;
      if (columns.empty()) bare_bytes += lines.line_bytes();
    } else if (text.starts_with('#') && line.size() < 400) {
      open = false;
      TakeRemark(text, operation, ranks);
      account = &out.understood;
    }
    *account += lines.line_bytes();
  }
  // Numbers without a heading are a table only where the figures themselves say so.
  const size_t before = out.tables.size();
  std::erase_if(out.tables, [](const BenchTable& table) { return !table.headed && !FitsByFigures(table.rows); });
  if (out.tables.empty() && before > 0) {
    out.understood -= bare_bytes;
    out.not_understood += bare_bytes;
  }
  return out;
}

}  // namespace tacet
