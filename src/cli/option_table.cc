// SPDX-License-Identifier: Apache-2.0
#include "cli/option_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace tacet {
namespace {

constexpr size_t kLetterIndent = 2, kNameIndent = 6;  // "  -f, --format" and "      --html"

bool IsNameCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

std::string_view TakeName(std::string_view& line) {
  size_t end = 2;
  while (end < line.size() && IsNameCharacter(line[end])) ++end;
  const std::string_view name = line.substr(0, end);
  line.remove_prefix(end);
  return name;
}

// " FILE  ..." or " on|off  ..."; leaves `line` behind it.
std::string TakeValue(std::string_view& line) {
  if (line.size() < 2 || line[0] != ' ' || line[1] == ' ' || line[1] == '-') return "";
  std::string_view word = line.substr(1, line.find(' ', 1) - 1);
  if (!IsCapital(word[0]) && word.find('|') == word.npos) return "";
  line.remove_prefix(1 + word.size());
  if (word.ends_with(',')) word.remove_suffix(1);
  return std::string(word);
}

size_t IndentOf(std::string_view line) {
  const size_t at = line.find_first_not_of(' ');
  return at == line.npos ? 0 : at;
}

// What the first row of a line begins with: the letter, and `line` from the long name on.
std::optional<char> TakeHead(std::string_view& line) {
  const size_t indent = IndentOf(line);
  if (indent == kLetterIndent && line.size() > 8 && line[2] == '-' && line.substr(4, 4) == ", --") {
    const char letter = line[3];
    line.remove_prefix(kNameIndent);
    return letter;
  }
  if (indent != kNameIndent || !line.substr(indent).starts_with("--")) return std::nullopt;
  line.remove_prefix(indent);
  return char{0};
}

void AddText(std::vector<OptionRow>& rows, size_t first, std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text.empty()) return;
  for (size_t i = first; i < rows.size(); ++i) rows[i].text += (rows[i].text.empty() ? "" : " ") + std::string(text);
}

bool IsChoice(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), IsNameCharacter) && word[0] != '-';
}

std::string WithoutBrackets(std::string_view text) {
  std::string out;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) out += c;
    if (c == ')' && depth > 0) --depth;
  }
  return out;
}

// "text (default), json or sarif"; "exit with 1 at this severity or above: critical, warning (default), never". A list
// of two words or more that are nothing but words; anything else is a sentence.
std::vector<std::string> ReadChoices(const OptionRow& row) {
  std::vector<std::string> choices;
  std::string list = row.value.find('|') != std::string::npos ? row.value : WithoutBrackets(row.text);
  if (const size_t end = list.find(';'); end != list.npos) list.resize(end);
  if (const size_t colon = list.rfind(": "); colon != list.npos) list.erase(0, colon + 2);
  for (size_t at = 0; (at = list.find(" or ", at)) != list.npos;) list.replace(at, 4, ",");
  std::replace(list.begin(), list.end(), '|', ',');
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    std::string word = list.substr(begin, comma - begin);
    word.erase(0, word.find_first_not_of(' ') == word.npos ? word.size() : word.find_first_not_of(' '));
    while (word.ends_with(' ')) word.pop_back();
    begin = comma + 1;
    if (!IsChoice(word)) {
      if (row.value.find('|') != std::string::npos) continue;  // ADDR|off: one of them is a word
      return {};
    }
    choices.push_back(word);
  }
  return choices.size() >= 2 || row.value.find('|') != std::string::npos ? choices : std::vector<std::string>{};
}

}  // namespace

std::vector<OptionRow> ReadOptionRows(std::string_view help) {
  std::vector<OptionRow> rows;
  size_t first = 0;     // rows of the line above
  bool inside = false;  // lines further right go on with them
  while (!help.empty()) {
    std::string_view line = help.substr(0, help.find('\n'));
    help.remove_prefix(std::min(line.size() + 1, help.size()));
    const auto letter = TakeHead(line);
    if (!letter) {
      inside = inside && IndentOf(line) > kNameIndent;
      if (inside) AddText(rows, first, line);
      continue;
    }
    first = rows.size();
    inside = true;
    for (char head = *letter; line.starts_with("--"); head = 0) {
      OptionRow row;
      row.letter = head;
      row.name = std::string(TakeName(line));
      row.value = TakeValue(line);
      rows.push_back(std::move(row));
      const size_t next = line.find_first_not_of(' ');
      if (next != line.npos && line.substr(next).starts_with("--")) line.remove_prefix(next);
    }
    AddText(rows, first, line);
  }
  for (OptionRow& row : rows)
    if (!row.value.empty()) row.choices = ReadChoices(row);
  return rows;
}

}  // namespace tacet
