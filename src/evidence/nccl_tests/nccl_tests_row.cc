// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_row.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsInteger(std::string_view word) {
  int64_t value = 0;
  return TakeNumber(word, &value) && word.empty();
}

// "86.70", "1e+03", "N/A", "nan"
bool IsFigure(std::string_view word) {
  if (word == "N/A") return true;
  double value = 0;
  return TakeDouble(word, &value) && word.empty();
}

double FigureOf(std::string_view word) {
  double value = -1;
  if (!TakeDouble(word, &value) || !word.empty() || !std::isfinite(value) || value < 0) return -1;
  return value;
}

bool IsTypeName(std::string_view word) {
  static constexpr std::string_view kTypes[] = {
      "int8",   "uint8",  "int32",    "uint32",   "int64", "uint64", "half",    "float",   "double", "bfloat16",
      "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "char",  "int",    "float16", "float32", "float64"};
  return std::find(std::begin(kTypes), std::end(kTypes), word) != std::end(kTypes);
}

// Where NCCL's own line begins that broke in: "host:pid:tid [0] NCCL INFO ...". The host stands right behind the row.
std::string_view DropIntruder(std::string_view line) {
  const size_t nccl = line.find("] NCCL ");
  if (nccl == std::string_view::npos) return line;
  const size_t stamp = line.rfind(':', nccl);
  if (stamp == std::string_view::npos) return {};
  size_t begin = line.rfind(' ', stamp);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  // "-1node7:42:42": a root and a host without a blank between them.
  std::string_view word = line.substr(begin);
  int64_t number = 0;
  std::string_view rest = word;
  const bool glued =
      TakeNumber(rest, &number) && !rest.empty() && ((rest[0] | 0x20) >= 'a') && ((rest[0] | 0x20) <= 'z');
  return line.substr(0, begin + (glued ? word.size() - rest.size() : 0));
}

}  // namespace

bool ParseNcclTestsHeading(std::string_view line, NcclTestsColumns* out) {
  SkipBlanks(line);
  TakeLiteral(line, "#");  // which a copy may have lost
  NcclTestsColumns columns;
  std::string_view look = line;
  if (TakeWord(look) != "size") return false;
  size_t times = 0, busbw = 0, iterations = 0;
  bool size = false, count = false;
  for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
    size |= word == "size";
    count |= word == "count";
    times += word == "time" || word == "cputime";
    columns.host_times |= word == "cputime";
    busbw += word == "busbw";
    if (word.starts_with("i_")) {
      if (times == 1 && word == "i_min") columns.least = 4 + iterations;
      if (times == 1 && word == "i_max") columns.greatest = 4 + iterations;
      if (times == 1 && word == "i_p99") columns.p99 = 4 + iterations;
      ++iterations;
    }
    columns.differences |= word == "error";
    columns.timestamp |= word == "timestamp";
  }
  if (!size || !count || times < 1 || times > 2 || busbw != times || iterations % times != 0 || iterations > 12)
    return false;
  columns.sides = times;
  columns.per_side = 4 + iterations / times;
  *out = columns;
  return true;
}

void NcclTestsRowReader::SetColumns(const NcclTestsColumns& columns) {
  columns_ = columns;
  count_ = 0;
}

NcclTestsRowReader::Answer NcclTestsRowReader::Take(std::string_view line, NcclTestsRow* row) {
  line = DropIntruder(line);
  if (!Begin(line) && (count_ == 0 || !Add(line))) return Answer::nothing;
  const size_t wanted = head_ + columns_.sides * columns_.per_side;
  if (count_ < wanted) return Answer::part;
  const bool whole = Finish(row);
  count_ = 0;
  return whole ? Answer::row : Answer::nothing;
}

// "        1024           256     float     sum      -1": reductions and roots stand there or not, as the operation has
// them, and a heading may name a column that stays empty.
bool NcclTestsRowReader::Begin(std::string_view line) {
  std::array<std::string_view, 5> head;
  for (size_t i = 0; i < 3; ++i) head[i] = TakeWord(line);
  if (!IsInteger(head[0]) || !IsInteger(head[1]) || !IsTypeName(head[2])) return false;
  size_t words = 3;
  std::string_view look = line, word = TakeWord(look);
  if (!word.empty() && !IsFigure(word)) {
    head[words++] = word;
    line = look;
    word = TakeWord(look);
  }
  if (IsRoot(word, look)) {
    head[words++] = word;
    line = look;
  }
  std::copy(head.begin(), head.begin() + static_cast<ptrdiff_t>(words), words_.begin());
  count_ = head_ = words;
  if (Add(line)) return true;
  count_ = 0;
  return false;
}

// A root is an integer, but so is a long time: "float     sum    16215  132.44 ...". The number of figures tells.
bool NcclTestsRowReader::IsRoot(std::string_view word, std::string_view behind) const {
  if (!IsInteger(word)) return false;
  size_t figures = 1;
  while (!TakeWord(behind).empty()) ++figures;
  const size_t both = columns_.sides * columns_.per_side + (columns_.timestamp ? 2 : 0);
  return figures != both && figures != columns_.per_side;
}

bool NcclTestsRowReader::Add(std::string_view text) {
  const size_t wanted = head_ + columns_.sides * columns_.per_side;
  const size_t before = count_;
  while (count_ < wanted) {
    const std::string_view word = TakeWord(text);
    if (word.empty()) return true;
    if (!IsFigure(word)) return count_ = before, false;
    words_[count_++] = word;
  }
  return true;  // a timestamp may follow
}

bool NcclTestsRowReader::Finish(NcclTestsRow* row) {
  *row = {};
  std::string_view bytes = words_[0], elements = words_[1];
  if (!TakeNumber(bytes, &row->bytes) || !TakeNumber(elements, &row->elements)) return false;
  row->type = words_[2];
  for (size_t i = 3; i < head_; ++i) {
    std::string_view word = words_[i];
    if (!IsInteger(word))
      row->redop = word;
    else
      TakeNumber(word, &row->root);
  }
  for (size_t side = 0; side < columns_.sides; ++side) {
    const size_t at = head_ + side * columns_.per_side;
    const bool in_place = columns_.sides == 1 ? columns_.in_place : side == 1;
    NcclTestsFigure& figure = in_place ? row->in_place : row->out_of_place;
    if (columns_.least > 0) figure.min_us = FigureOf(words_[at + columns_.least]);
    if (columns_.greatest > 0) figure.max_us = FigureOf(words_[at + columns_.greatest]);
    if (columns_.p99 > 0) figure.p99_us = FigureOf(words_[at + columns_.p99]);
    figure.time_us = FigureOf(words_[at]);
    figure.algorithm_gbs = FigureOf(words_[at + 1]);
    figure.bus_gbs = FigureOf(words_[at + 2]);
    figure.wrong = FigureOf(words_[at + 3]);
  }
  return row->bytes >= 0;
}

}  // namespace tacet
