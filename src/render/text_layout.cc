// SPDX-License-Identifier: Apache-2.0
#include "render/text_layout.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>

#include "render/text_pieces.h"

namespace tacet {

static bool StartsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), StartsCodePoint));
}

// The byte where column `columns` begins.
static size_t ByteOfColumn(std::string_view text, size_t columns) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (StartsCodePoint(text[at]) && columns-- == 0) return at;
  return at;
}

std::string Cut(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 3) return std::string(width, '.');
  std::string_view kept = text.substr(0, ByteOfColumn(text, width - 3));
  while (kept.ends_with(' ')) kept.remove_suffix(1);
  return std::string(kept) + "...";
}

// "process group ... #17": whole words of both ends. Empty where they would leave much of the room unused.
static std::string CutMiddleWords(std::string_view text, size_t width) {
  constexpr std::string_view kGap = " ... ";
  size_t front = 0, back = text.size();  // what is kept: before `front` and from `back` on
  for (bool grown = true; grown;) {
    grown = false;
    const size_t before = back < 2 ? std::string_view::npos : text.rfind(' ', back - 2);
    const size_t earlier = before == std::string_view::npos ? 0 : before + 1;
    if (earlier > front &&
        DisplayWidth(text.substr(0, front)) + kGap.size() + DisplayWidth(text.substr(earlier)) <= width)
      back = earlier, grown = true;
    const size_t later = std::min(text.find(' ', front + 1), text.size());
    if (later < back && DisplayWidth(text.substr(0, later)) + kGap.size() + DisplayWidth(text.substr(back)) <= width)
      front = later, grown = true;
  }
  if (front == 0 || back == text.size()) return "";
  const std::string out = std::string(text.substr(0, front)) + std::string(kGap) + std::string(text.substr(back));
  return 3 * DisplayWidth(out) >= 2 * width ? out : "";
}

std::string CutMiddle(std::string_view text, size_t width) {
  const size_t columns = DisplayWidth(text);
  if (columns <= width) return std::string(text);
  if (width <= 3) return std::string(width, '.');
  if (std::string words = CutMiddleWords(text, width); !words.empty()) return words;
  const size_t back = (width - 3) / 2, front = width - 3 - back;
  return std::string(text.substr(0, ByteOfColumn(text, front))) + "..." +
         std::string(text.substr(ByteOfColumn(text, columns - back)));
}

std::string CutFront(std::string_view text, size_t width) {
  const size_t columns = DisplayWidth(text);
  if (columns <= width) return std::string(text);
  if (width <= 3) return std::string(width, '.');
  return "..." + std::string(text.substr(ByteOfColumn(text, columns - (width - 3))));
}

static void WrapLine(std::string_view line, size_t width, std::vector<std::string>* out) {
  // Leading blanks are kept: a quoted line of code means something by them.
  const size_t lead = std::min(line.find_first_not_of(' '), line.size());
  std::string current(line.substr(0, std::min(lead, width / 2)));
  size_t used = current.size();
  bool empty = true;
  for (size_t at = lead; at < line.size();) {
    const size_t end = PieceEnd(line, at, width);
    std::string_view word = line.substr(at, end - at);
    at = std::min(line.find_first_not_of(' ', end), line.size());
    if (!empty && used + 1 + DisplayWidth(word) > width) {
      out->push_back(std::move(current));
      current.clear();
      used = 0;
      empty = true;
    }
    if (!empty) {
      current += ' ';
      ++used;
    }
    while (used + DisplayWidth(word) > width) {  // longer than a line by itself
      size_t bytes = ByteOfColumn(word, width - used);
      // Behind a comma, a slash or a parenthesis, unless little would be left of the line.
      // Of a name without any of these behind a full stop or a colon.
      for (const std::string_view marks : {",/(", ".:"})
        if (const size_t mark = word.substr(0, bytes).find_last_of(marks);
            mark != std::string_view::npos && mark > bytes / 2) {
          bytes = mark + 1;
          break;
        }
      out->push_back(current + std::string(word.substr(0, bytes)));
      word.remove_prefix(bytes);
      current.clear();
      used = 0;
    }
    current += word;
    used += DisplayWidth(word);
    empty = false;
  }
  out->push_back(std::move(current));
}

std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  width = std::max<size_t>(width, 8);
  while (true) {
    const size_t end = text.find('\n');
    WrapLine(text.substr(0, end), width, &lines);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string TextPage::Paint(std::string_view text, Ink ink) const {
  static constexpr std::string_view kCodes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[33m", "\x1b[32m"};
  if (!colour_ || ink == Ink::plain || text.empty()) return std::string(text);
  return std::string(kCodes[static_cast<size_t>(ink)]) + std::string(text) + "\x1b[0m";
}

void TextPage::Blank() {
  if (!out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
}

void TextPage::Heading(std::string_view text) {
  Blank();
  Paragraph("", text, Ink::strong);
}

void TextPage::Paragraph(std::string_view first, std::string_view text, Ink ink) {
  const size_t indent = DisplayWidth(first);
  const std::string blanks(indent, ' ');
  bool begun = false;
  for (const std::string& line : Wrap(text, width_ > indent ? width_ - indent : 0)) {
    Line(line.empty() && begun ? "" : (begun ? blanks : std::string(first)) + Paint(line, ink));
    begun = true;
  }
}

static std::vector<size_t> FitColumns(const std::vector<TextRow>& rows, size_t columns, size_t room) {
  constexpr size_t kLeast = 10;  // narrower, a column says nothing any more
  std::vector<size_t> widths(columns, 0);
  for (const TextRow& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i].text));
  const auto total = [&] {
    size_t sum = 0;
    for (const size_t width : widths) sum += width == 0 ? 0 : width + 2;
    return sum;
  };
  while (room < SIZE_MAX / 4 && total() > room + 2) {
    size_t widest = columns;
    for (size_t i = 0; i < columns; ++i)
      if (!rows[0][i].firm && (widest == columns || widths[i] > widths[widest])) widest = i;
    if (widest == columns || widths[widest] <= kLeast) break;
    --widths[widest];
  }
  return widths;
}

static size_t WidthOf(const std::vector<size_t>& widths) {
  size_t sum = 0;
  for (const size_t width : widths) sum += width == 0 ? 0 : width + 2;
  return sum < 2 ? 0 : sum - 2;
}

// Whether no two rows have the same texts in the first columns; a blank stands for the text above it.
static bool AreTellingApart(const std::vector<TextRow>& rows, size_t columns) {
  std::set<std::vector<std::string_view>> seen;
  std::string_view above;
  for (size_t r = 1; r < rows.size(); ++r) {
    if (!rows[r][0].text.empty()) above = rows[r][0].text;
    std::vector<std::string_view> names = {above};
    for (size_t i = 1; i < columns; ++i) names.push_back(rows[r][i].text);
    if (!seen.insert(std::move(names)).second) return false;
  }
  return true;
}

// Columns that name a row and are repeated when the others do not fit beside each other: as many as tell the rows
// apart. Where the first is left blank under an equal one, the second names the row with it.
static size_t NamingColumns(const std::vector<TextRow>& rows) {
  constexpr size_t kMost = 3;
  if (rows[0].size() < 3) return 1;
  const bool gaps = std::any_of(rows.begin() + 1, rows.end(), [](const TextRow& row) { return row[0].text.empty(); });
  for (size_t columns = gaps ? 2 : 1; columns <= kMost && columns + 1 < rows[0].size(); ++columns)
    if (AreTellingApart(rows, columns)) return columns;
  return gaps ? 2 : 1;
}

void TextPage::Rows(const std::vector<TextRow>& rows, const std::vector<size_t>& widths, size_t indent,
                    const std::vector<size_t>& columns) {
  for (const TextRow& row : rows) {
    std::string line(indent, ' ');
    size_t pending = 0;
    for (const size_t i : columns) {
      const std::string text = CutMiddle(row[i].text, widths[i]);
      if (!text.empty()) line += std::string(pending, ' ') + Paint(text, row[i].ink);
      pending = (text.empty() ? pending : 0) + widths[i] - DisplayWidth(text) + 2;
    }
    Line(line);
  }
}

static size_t WidestOf(const std::vector<size_t>& widths, size_t from) {
  return from < widths.size() ? *std::max_element(widths.begin() + static_cast<std::ptrdiff_t>(from), widths.end()) : 0;
}

// "node0 to node3 (4 alike)", and below it "RANKS ranks 0-3; GPUS 1 GPU; NICS 1 NIC eth0".
void TextPage::RowsAsList(const std::vector<TextRow>& rows, size_t indent) {
  const std::string blanks(indent, ' ');
  for (size_t r = 1; r < rows.size(); ++r) {
    const std::string name = rows[0][0].text.empty() ? std::string() : rows[0][0].text + ": ";
    if (!rows[r][0].text.empty()) Paragraph(blanks, name + rows[r][0].text, rows[r][0].ink);
    std::string text;
    for (size_t i = 1; i < rows[r].size(); ++i) {
      if (rows[r][i].text.empty()) continue;
      text.append(text.empty() ? "" : "; ").append(rows[0][i].text).append(": ").append(rows[r][i].text);
    }
    Paragraph(blanks + "  ", text);
  }
}

void TextPage::RowsInParts(const std::vector<TextRow>& rows, size_t indent, size_t room) {
  const size_t all = rows[0].size(), naming = NamingColumns(rows);
  std::vector<size_t> widths = FitColumns(rows, all, SIZE_MAX / 2), names(naming);
  std::iota(names.begin(), names.end(), size_t{0});
  const auto width_of_names = [&] {
    size_t sum = 0;
    for (const size_t i : names) sum += widths[i] + 2;
    return sum;
  };
  // Names stay whole where every other column still fits beside them.
  if (width_of_names() + std::min(WidestOf(widths, naming), room / 2) > room)
    for (const size_t i : names) widths[i] = std::min(widths[i], std::max<size_t>(room / (2 * naming), 1));
  const size_t used = width_of_names();
  for (size_t next = naming; next < all;) {
    if (next > naming) Blank();
    std::vector<size_t> columns = names;
    for (size_t taken = used; next < all; taken += widths[next - 1] + 2) {
      widths[next] = std::min(widths[next], room > used ? room - used : 1);
      if (columns.size() > naming && (taken + widths[next] > room || rows[0][next].leads)) break;
      columns.push_back(next++);
    }
    // Behind the first part a row without a value says nothing.
    std::vector<TextRow> shown;
    for (const TextRow& row : rows)
      if (columns[naming] == naming || naming > 1 ||
          std::any_of(columns.begin() + static_cast<std::ptrdiff_t>(naming), columns.end(),
                      [&](size_t column) { return !row[column].text.empty(); }))
        shown.push_back(row);
    Rows(shown, widths, indent, columns);
  }
}

// The first row is the head; a column in which only the head has text says nothing.
static std::vector<TextRow> FilledColumns(const std::vector<TextRow>& rows) {
  std::vector<TextRow> kept(rows.size());
  for (size_t column = 0; column < rows[0].size(); ++column) {
    const bool filled =
        std::any_of(rows.begin() + 1, rows.end(), [&](const TextRow& row) { return !row[column].text.empty(); });
    if (!filled) continue;
    for (size_t i = 0; i < rows.size(); ++i) kept[i].push_back(rows[i][column]);
  }
  return kept;
}

// Takes columns out of a table that does not fit, if they have one text in all rows: one where that is enough, else all
// of them. "in all rows: GROUP = default_pg, RANKS = 0-7"; empty where nothing was taken out.
static std::string TakeConstants(std::vector<TextRow>& rows, size_t room) {
  const std::vector<size_t> widths = FitColumns(rows, rows[0].size(), SIZE_MAX / 2);
  const size_t all = WidthOf(widths);
  if (rows.size() < 3 || all <= room) return "";
  std::vector<size_t> constant;
  size_t narrowest = rows[0].size();
  for (size_t column = 0; column < rows[0].size(); ++column) {
    const std::string& text = rows[1][column].text;
    if (text.empty() || rows[0][column].leads || rows[0][column].text.empty() ||
        !std::all_of(rows.begin() + 1, rows.end(), [&](const TextRow& row) { return row[column].text == text; }))
      continue;
    constant.push_back(column);
    const bool enough = all <= room + widths[column] + 2;
    if (enough && (narrowest == rows[0].size() || widths[column] < widths[narrowest])) narrowest = column;
  }
  if (narrowest < rows[0].size())
    constant = {narrowest};
  else if (constant.size() + 2 > rows[0].size())
    return "";
  std::string words;
  for (const size_t column : constant)
    words.append(words.empty() ? "in all rows: " : ", ")
        .append(rows[0][column].text)
        .append(" = ")
        .append(rows[1][column].text);
  for (auto column = constant.rbegin(); column != constant.rend(); ++column)
    for (TextRow& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(*column));
  return words;
}

bool TextPage::Fits(const std::vector<TextRow>& rows, size_t indent) const {
  if (rows.empty()) return true;
  const std::vector<TextRow> kept = FilledColumns(rows);
  return indent + WidthOf(FitColumns(kept, kept[0].size(), SIZE_MAX / 2)) <= width_;
}

void TextPage::PartsTable(const std::vector<TextRow>& rows, size_t indent) {
  if (rows.empty()) return;
  const std::vector<TextRow> kept = FilledColumns(rows);
  if (Fits(rows, indent) || kept[0].size() < 2) return Table(rows, indent, false);
  const std::vector<size_t> widths = FitColumns(kept, kept[0].size(), SIZE_MAX / 2);
  const size_t naming = NamingColumns(kept);
  size_t names = 0;
  for (size_t i = 0; i < naming; ++i) names += widths[i] + 2;
  if (indent + names + WidestOf(widths, naming) > width_) return RowsAsList(kept, indent);
  RowsInParts(kept, indent, width_ > indent ? width_ - indent : 0);
}

void TextPage::Table(const std::vector<TextRow>& rows, size_t indent, bool whole) {
  if (rows.empty()) return;
  std::vector<TextRow> kept = FilledColumns(rows);
  if (kept[0].empty()) return;
  const size_t room = width_ > indent ? width_ - indent : 0;
  if (const std::string constants = TakeConstants(kept, room); !constants.empty()) {
    Table(kept, indent, whole);
    return Paragraph(std::string(indent, ' '), constants, Ink::dim);
  }
  const std::vector<size_t> widths = FitColumns(kept, kept[0].size(), whole ? SIZE_MAX / 2 : room);
  // What is asked for whole may stand out of a file or a wide terminal, so that grep finds a row in one line.
  constexpr size_t kNarrow = 100;
  if (kept[0].size() > 1 && WidthOf(widths) > room && (!whole || width_ < kNarrow))
    return RowsInParts(kept, indent, room);
  std::vector<size_t> columns(kept[0].size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  Rows(kept, widths, indent, columns);
}

}  // namespace tacet
