// SPDX-License-Identifier: Apache-2.0
#include "cli/help_wrap.h"

#include <algorithm>
#include <map>
#include <vector>

#include "render/text_layout.h"

namespace tacet {
namespace {

constexpr size_t kLeastText = 28;    // narrower, a description goes below its option
constexpr size_t kIndentBelow = 10;  // there

size_t LeadingBlanks(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// "  -f, --format F      text (default), json": where the text behind two blanks or more begins; 0: nowhere.
size_t GapEnd(std::string_view line) {
  const size_t gap = line.find("  ", LeadingBlanks(line));
  return gap == std::string_view::npos ? 0 : std::min(line.find_first_not_of(' ', gap), line.size());
}

struct HelpRow {
  std::string head, text;
};

class HelpFitter {
 public:
  explicit HelpFitter(size_t width) : width_(width) {}

  std::string Fit(std::string_view help) {
    for (size_t begin = 0; begin < help.size();) {
      const size_t end = std::min(help.find('\n', begin), help.size());
      lines_.push_back(help.substr(begin, end - begin));
      begin = end + 1;
    }
    for (size_t at = 0; at < lines_.size();) at = FitBlock(at);
    return std::move(out_);
  }

 private:
  void Put(std::string_view first, std::string_view text, size_t hang) {
    std::string lead(first);
    for (const std::string& line : Wrap(text, width_ - std::max(hang, first.size()))) {
      out_ += lead + line + "\n";
      lead.assign(hang, ' ');
    }
  }

  // A command that can be copied although it takes several lines: an option stays with its value, and a word that is
  // longer than a line goes on at the very left of the next one.
  void PutCommand(std::string_view line) {
    const size_t indent = LeadingBlanks(line), room = width_ - 2;  // for " \\"
    if (DisplayWidth(line) <= width_) {
      out_ += std::string(line) + "\n";
      return;
    }
    std::string current(indent, ' ');
    bool begun = false;
    for (size_t at = indent; at < line.size();) {
      size_t end = std::min(line.find(' ', at), line.size());
      const size_t next = std::min(line.find(' ', end + 1), line.size());
      if (line[at] == '-' && end + 1 < line.size() && line[end + 1] != '-' && indent + 2 + next - at <= room)
        end = next;
      std::string_view piece = line.substr(at, end - at);
      if (begun && current.size() + 1 + piece.size() > room) {
        out_ += current + " \\\n";
        current.assign(indent + 2, ' ');
        begun = false;
      }
      if (begun) current += ' ';
      while (current.size() + piece.size() > room) {
        size_t bytes = room - current.size();
        if (const size_t comma = piece.substr(0, bytes).rfind(','); comma != std::string_view::npos) bytes = comma + 1;
        out_ += current + std::string(piece.substr(0, bytes)) + "\\\n";
        current.clear();
        piece.remove_prefix(bytes);
      }
      current += piece;
      begun = true;
      at = std::min(line.find_first_not_of(' ', end), line.size());
    }
    out_ += current + "\n";
  }

  // Lines of one kind, from `at` on; returns the one behind them.
  size_t FitBlock(size_t at) {
    const std::string_view line = lines_[at];
    if (line.empty()) {
      out_ += "\n";
      return at + 1;
    }
    if (LeadingBlanks(line) > 0) return FitRows(at);
    if (line.starts_with("tacet ") && (!line.ends_with('.') || line.ends_with("..."))) {  // a line of the usage
      Put("", line, 4);
      return at + 1;
    }
    std::string text(line);
    bool examples = line.starts_with("Example");
    for (++at; at < lines_.size() && !lines_[at].empty() && lines_[at][0] != ' ' && !examples; ++at)
      text += " " + std::string(lines_[at]);
    Put("", text, 0);
    while (examples && at < lines_.size() && lines_[at].starts_with(' ')) PutCommand(lines_[at++]);
    return at;
  }

  size_t FitRows(size_t at) {
    size_t end = at;
    std::map<size_t, size_t> columns;  // where texts begin, and how often
    for (; end < lines_.size() && lines_[end].starts_with(' '); ++end)
      if (const size_t column = GapEnd(lines_[end]); column > 0) ++columns[column];
    size_t column = 0;
    for (const auto& [place, times] : columns)
      if (column == 0 || times > columns[column]) column = place;
    const bool below = width_ < column + kLeastText;
    while (at < end) {
      const std::string_view line = lines_[at];
      const size_t indent = LeadingBlanks(line);
      HelpRow row = SplitRow(line, column);
      for (++at; at < end && LeadingBlanks(lines_[at]) > std::max<size_t>(indent + 4, 9); ++at)
        row.text += (row.text.empty() ? "" : " ") + std::string(lines_[at].substr(LeadingBlanks(lines_[at])));
      PutRow(row, indent, below || column == 0 ? kIndentBelow : column, below);
    }
    return end;
  }

  static HelpRow SplitRow(std::string_view line, size_t column) {
    size_t split = GapEnd(line);
    // A head that fills its column has one blank behind it.
    if (split == 0 && column > 1 && line.size() > column && line[column - 1] == ' ' && line[column - 2] != ',')
      split = column;
    if (split == 0) return {std::string(line), ""};
    std::string_view head = line.substr(0, split);
    while (head.ends_with(' ')) head.remove_suffix(1);
    return {std::string(head), std::string(line.substr(split))};
  }

  void PutRow(const HelpRow& row, size_t indent, size_t column, bool below) {
    if (row.text.empty()) return Put(std::string(indent, ' '), row.head.substr(indent), indent + 2);
    if (below || row.head.size() >= column) {
      Put(std::string(indent, ' '), row.head.substr(indent), indent + 4);
      return Put(std::string(column, ' '), row.text, column);
    }
    Put(row.head + std::string(column - row.head.size(), ' '), row.text, column);
  }

  size_t width_;
  std::vector<std::string_view> lines_;
  std::string out_;
};

}  // namespace

std::string FitHelp(std::string_view help, size_t width) {
  bool fits = true;
  for (size_t begin = 0; begin < help.size() && fits;) {
    const size_t end = std::min(help.find('\n', begin), help.size());
    fits = DisplayWidth(help.substr(begin, end - begin)) <= width;
    begin = end + 1;
  }
  return fits ? std::string(help) : HelpFitter(width).Fit(help);
}

}  // namespace tacet
