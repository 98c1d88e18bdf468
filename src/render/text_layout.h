// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

enum class Ink { plain, strong, dim, red, yellow, green };

// Columns a text takes on a terminal, one per code point: file names and log lines are rarely wider than that.
size_t DisplayWidth(std::string_view text);
// At most `width` columns; "..." stands for what is cut at the end, in the middle or at the front.
std::string Cut(std::string_view text, size_t width);
std::string CutMiddle(std::string_view text, size_t width);
std::string CutFront(std::string_view text, size_t width);
// Breaks at blanks, and inside a word only when it is longer than a line; a unit stays with its number. Line breaks in
// the text are kept.
std::vector<std::string> Wrap(std::string_view text, size_t width);

struct TextCell {
  std::string text;
  Ink ink = Ink::plain;
  bool firm = false;   // in the head: this column never shrinks
  bool leads = false;  // in the head: a part begins with this column, where the table is printed in parts
};
using TextRow = std::vector<TextCell>;

// Lines of text in the making. All texts handed in are clean already (CleanLine, CleanText); the page adds nothing but
// blanks and, with colour, escape sequences.
class TextPage {
 public:
  TextPage(size_t width, bool colour) : width_(width), colour_(colour) {}

  size_t width() const { return width_; }
  std::string Paint(std::string_view text, Ink ink) const;
  void Blank();                         // one empty line, never two, none at the top
  void Heading(std::string_view text);  // with a blank line above
  void Line(std::string_view text) { out_.append(text).append("\n"); }
  // `first` stands before the first line; the following lines are indented as far.
  void Paragraph(std::string_view first, std::string_view text, Ink ink = Ink::plain);
  // Aligned columns under an indent; the widest ones shrink until the row fits, unless `whole`: cut in the
  // middle, since the end (a state, a line number) tells as much as the beginning. Empty columns vanish. Where that is
  // not enough, the table is printed in parts, each with the columns that name a row.
  void Table(const std::vector<TextRow>& rows, size_t indent, bool whole);
  // The same without cutting anything: what does not fit into the width is printed in parts at once, and where not even
  // the widest column fits beside the names, as a list of rows.
  void PartsTable(const std::vector<TextRow>& rows, size_t indent);
  bool Fits(const std::vector<TextRow>& rows, size_t indent) const;  // side by side, uncut
  std::string Take() { return std::move(out_); }

 private:
  void Rows(const std::vector<TextRow>& rows, const std::vector<size_t>& widths, size_t indent,
            const std::vector<size_t>& columns);
  void RowsAsList(const std::vector<TextRow>& rows, size_t indent);
  void RowsInParts(const std::vector<TextRow>& rows, size_t indent, size_t room);

  std::string out_;
  size_t width_;
  bool colour_;
};

}  // namespace tacet
