// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_columns.h"

#include <algorithm>
#include <cmath>

#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_figure_names.h"

namespace tacet {
namespace {

constexpr size_t kMostCells = 64, kLongestLine = 1000, kLongestHeading = 40;

// "│" and "┃", as programs draw boxes, and the plain "|".
size_t BarAt(std::string_view text, size_t* size) {
  size_t best = std::string_view::npos;
  for (const std::string_view bar : {std::string_view("|"), std::string_view("\u2502"), std::string_view("\u2503")})
    if (const size_t at = text.find(bar); at < best) {
      best = at;
      *size = bar.size();
    }
  return best;
}

std::vector<std::string_view> CellsBetweenBars(std::string_view text) {
  std::vector<std::string_view> cells;
  size_t size = 0;
  while (cells.size() < kMostCells) {
    const size_t at = BarAt(text, &size);
    cells.push_back(Trim(text.substr(0, at)));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + size);
  }
  if (!cells.empty() && cells.front().empty()) cells.erase(cells.begin());
  if (!cells.empty() && cells.back().empty()) cells.pop_back();
  return cells;
}

std::vector<std::string_view> CellsBetween(std::string_view text, char mark) {
  std::vector<std::string_view> cells;
  while (cells.size() < kMostCells) {
    const size_t at = text.find(mark);
    cells.push_back(Trim(text.substr(0, at)));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return cells;
}

// `wide`: between two blanks and more, or else between any.
std::vector<std::string_view> CellsBetweenBlanks(std::string_view text, bool wide) {
  std::vector<std::string_view> cells;
  text = Trim(text);
  while (!text.empty() && cells.size() < kMostCells) {
    const size_t at = std::min({text.find(wide ? "  " : " "), text.find('\t'), text.size()});
    cells.push_back(Trim(text.substr(0, at)));
    text = Trim(text.substr(at));
  }
  return cells;
}

char MarkOf(std::string_view text) {
  size_t size = 0;
  if (BarAt(text, &size) != std::string_view::npos) return '|';
  return std::count(text.begin(), text.end(), ',') > 0 ? ',' : ' ';
}

// "compute ms", "d_loss", "STEP TIME", "top-5 acc"; not "0.31", "loss: 2.1", "=====".
bool IsHeading(std::string_view cell) {
  NamedNumber value;
  for (size_t i = 0; i < cell.size(); ++i)
    if (IsDigit(cell[i]) && (i == 0 || cell[i - 1] == ' ')) return false;  // "policy_loss 0.31"
  const bool letters = std::any_of(cell.begin(), cell.end(), [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
  return letters && cell.size() <= kLongestHeading && cell.find_first_of(":=;") == std::string_view::npos &&
         !ReadValue(cell, value);
}

bool IsEmptyCell(std::string_view cell) {
  return cell.find_first_not_of("-") == std::string_view::npos || cell == "n/a" || cell == "N/A" || cell == "None";
}

}  // namespace

bool ColumnReader::ReadHeading(std::string_view text) {
  const char mark = MarkOf(text);
  for (const bool wide : {true, false}) {
    const std::vector<std::string_view> cells = mark == '|'   ? CellsBetweenBars(text)
                                                : mark == ',' ? CellsBetween(text, ',')
                                                              : CellsBetweenBlanks(text, wide);
    size_t known = 0, figures = 0, ranks = 0;
    bool numbered = false;
    for (const std::string_view cell : cells) {
      if (!IsHeading(cell)) return false;
      const FigureKind kind = names_.Of(cell).kind;
      ranks += kind == FigureKind::rank;
      numbered = numbered || kind == FigureKind::rank || kind == FigureKind::stage || kind == FigureKind::step ||
                 kind == FigureKind::epoch;
      const bool figure = kind >= FigureKind::work;
      figures += figure;
      known += figure || kind != FigureKind::other;
    }
    // Words of a sentence are no columns.
    const bool apart = mark == '|' || mark == ',' || wide || known * 5 >= cells.size() * 3;
    constexpr size_t kManyCells = 4;
    if (cells.size() >= 2 && numbered && (figures > 0 || cells.size() >= kManyCells) && ranks < 2 && apart) {
      headings_.assign(cells.begin(), cells.end());
      mark_ = mark;
      return true;
    }
    if (mark != ' ') break;
  }
  return false;
}

ColumnReader::Line ColumnReader::Read(std::string_view text, std::vector<NamedNumber>& row) {
  row.clear();
  if (text.size() > kLongestLine) return Line::none;
  const bool has_digit = std::any_of(text.begin(), text.end(), IsDigit);
  if (headings_.empty() || !has_digit) {
    if (text.size() < 6 || !ReadHeading(text)) return Line::none;
    return Line::heading;
  }
  if (MarkOf(text) != mark_) return Line::none;
  std::vector<std::string_view> cells = mark_ == '|'   ? CellsBetweenBars(text)
                                        : mark_ == ',' ? CellsBetween(text, ',')
                                                       : CellsBetweenBlanks(text, true);
  if (mark_ == ' ' && cells.size() != headings_.size()) cells = CellsBetweenBlanks(text, false);
  if (cells.size() != headings_.size()) return ReadHeading(text) ? Line::heading : Line::none;
  size_t other = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    NamedNumber value;
    if (IsEmptyCell(cells[i])) continue;
    const FigureKind kind = names_.Of(headings_[i]).kind;
    if (!ReadValue(cells[i], value)) {
      // A row has its numbers where the heading wants them.
      if (kind >= FigureKind::rank && kind <= FigureKind::epoch) {
        row.clear();
        return ReadHeading(text) ? Line::heading : Line::none;
      }
      ++other;
      value.word = cells[i];
      value.digest = true;
      if (kind != FigureKind::parameters) continue;
    }
    value.name = headings_[i];
    value.marked = true;
    row.push_back(value);
  }
  if (row.empty() || other > row.size()) {
    row.clear();
    return Line::none;
  }
  return Line::row;
}

}  // namespace tacet
