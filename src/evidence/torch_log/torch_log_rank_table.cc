// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_rank_table.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

constexpr size_t kMostCells = 32;
constexpr size_t kMostRows = 20'000;
constexpr size_t kLongestRow = 1000;

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

// Between bars, or else between two blanks and more.
std::vector<std::string_view> CellsOf(std::string_view text) {
  std::vector<std::string_view> cells;
  size_t size = 0;
  if (BarAt(text, &size) != std::string_view::npos) {
    while (cells.size() < kMostCells) {
      const size_t at = BarAt(text, &size);
      const std::string_view cell = Trim(text.substr(0, at));
      if (!cell.empty()) cells.push_back(cell);
      if (at == std::string_view::npos) break;
      text.remove_prefix(at + size);
    }
    return cells;
  }
  text = Trim(text);
  while (!text.empty() && cells.size() < kMostCells) {
    const size_t at = std::min({text.find("  "), text.find('\t'), text.size()});
    cells.push_back(Trim(text.substr(0, at)));
    text = Trim(text.substr(at));
  }
  return cells;
}

// "compute ms", "compute_ms", "compute (ms)", "compute[ms]": the words, without marks.
std::vector<std::string> WordsOf(std::string_view heading) {
  std::vector<std::string> words(1);
  for (const char c : LowerCase(heading)) {
    if ((c >= 'a' && c <= 'z') || IsDigit(c))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

RankTableReader::Field RankTableReader::FieldOf(std::string_view heading) {
  struct Meaning {
    std::string_view word;
    Column column;
  };
  static constexpr Meaning kMeanings[] = {
      {"rank", Column::rank},    {"data", Column::data},    {"load", Column::data},      {"loader", Column::data},
      {"loading", Column::data}, {"compute", Column::work}, {"forward", Column::work},   {"backward", Column::work},
      {"fwd", Column::work},     {"bwd", Column::work},     {"sync", Column::wait},      {"wait", Column::wait},
      {"comm", Column::wait},    {"barrier", Column::wait}, {"allreduce", Column::wait}, {"step", Column::whole},
      {"total", Column::whole},  {"iter", Column::whole},   {"iteration", Column::whole}};
  Field field;
  bool of_time = false;
  for (const std::string& word : WordsOf(heading)) {
    if (word == "local") return {};  // "local rank"
    if (word == "ms" || word == "msec") field.seconds = 1e-3;
    if (word == "us") field.seconds = 1e-6;
    of_time = of_time || word == "ms" || word == "msec" || word == "us" || word == "s" || word == "sec" ||
              word == "secs" || word == "seconds" || word == "time";
    if (field.column != Column::other) continue;
    for (const Meaning& one : kMeanings)
      if (word == one.word) field.column = one.column;
  }
  // "step" alone is a number, and "data" may be a path: only what says that it is a time is one.
  if (field.column != Column::rank && !of_time) field.column = Column::other;
  return field;
}

bool RankTableReader::ReadHeading(const std::vector<std::string_view>& cells) {
  std::vector<Field> fields;
  bool ranks = false, times = false;
  for (const std::string_view cell : cells) {
    fields.push_back(FieldOf(cell));
    const Column column = fields.back().column;
    if (column == Column::rank && ranks) return false;
    ranks = ranks || column == Column::rank;
    times = times || column == Column::data || column == Column::work;
  }
  if (!ranks || !times) return false;
  fields_ = std::move(fields);
  return true;
}

bool RankTableReader::Read(std::string_view text, const SourceRef& source, LogOutline& out) {
  if (text.size() > kLongestRow) return false;
  const bool has_digit = std::any_of(text.begin(), text.end(), IsDigit);
  if (!has_digit || fields_.empty()) {
    if (text.find("ank") == std::string_view::npos && text.find("ANK") == std::string_view::npos) return false;
    return ReadHeading(CellsOf(text));
  }
  const std::vector<std::string_view> cells = CellsOf(text);
  if (cells.size() != fields_.size()) return false;
  StepShare step;
  step.source = source;
  double wait = 0, told = -1;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Field& field = fields_[i];
    if (field.column == Column::other) continue;
    std::string_view rest = cells[i];
    double value = 0;
    if (!TakeDouble(rest, &value) || value < 0) return false;
    const double seconds = value * field.seconds;
    switch (field.column) {
      case Column::rank: {
        std::string_view digits = cells[i];
        if (!TakeNumber(digits, &step.rank) || !digits.empty() || step.rank < 0) return false;
        break;
      }
      case Column::data: step.data = std::max(step.data, 0.0) + seconds; break;
      case Column::work: step.work = std::max(step.work, 0.0) + seconds; break;
      case Column::wait: wait += seconds; break;
      case Column::whole: told = seconds; break;
      case Column::other: break;
    }
  }
  step.whole = std::max(told, std::max(step.data, 0.0) + std::max(step.work, 0.0) + wait);
  if (step.rank < 0 || step.whole <= 0 || out.steps.size() >= kMostRows) return false;
  out.steps.push_back(step);
  return true;
}

}  // namespace tacet
