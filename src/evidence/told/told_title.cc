// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_title.h"

#include <algorithm>

#include "base/text_scan.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"
#include "evidence/told/told_subject.h"

namespace tacet {
namespace {

// Marks of Markdown, tags in brackets, and the words by which forms begin a title.
std::string_view WithoutHead(std::string_view line) {
  constexpr std::string_view kHeads[] = {"bug report", "bug",     "issue", "question", "help wanted", "help",
                                         "title",      "subject", "re",    "fwd",      "q",           "performance"};
  for (bool again = true; again && !line.empty();) {
    again = false;
    line = Trim(line);
    while (!line.empty() && (line[0] == '#' || line[0] == '*' || line[0] == '>' || line[0] == ' '))
      line.remove_prefix(1);
    // An emoji, or another sign that is no letter of a word.
    size_t sign = 0;
    while (sign < line.size() && (static_cast<unsigned char>(line[sign]) & 0x80u) != 0) ++sign;
    if (sign > 0 && sign <= 8 && sign < line.size() && line[sign] == ' ') line.remove_prefix(sign + 1), again = true;
    if (line.starts_with('[') && line.find(']') < 30) {
      line = Trim(line.substr(line.find(']') + 1));
      TakeLiteral(line, ":");
      again = true;
    }
    const std::string low = LowerCase(line.substr(0, 20));
    for (const std::string_view head : kHeads)
      if (low.starts_with(head) && low.size() > head.size() + 1 && low[head.size()] == ':') {
        line.remove_prefix(head.size() + 1);
        again = true;
        break;
      }
  }
  while (!line.empty() && (line.back() == '*' || line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::string_view TitleOf(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos || end == 0 || end > 200) return {};
  const std::string_view rest = bytes.substr(end + 1, 3);
  return rest.starts_with('\n') || rest.starts_with("\r\n") || rest == "```" ? bytes.substr(0, end)
                                                                             : std::string_view();
}

std::string TitleWords(std::string_view title) { return std::string(Trim(ProseOf(WithoutHead(title)))); }

bool TitleSaysItHangs(std::string_view title) {
  const std::string words = TitleWords(title);
  const bool plain = std::all_of(words.begin(), words.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view(" ,.'()-_/+@:&%\"<>!").find(c) != std::string_view::npos;
  });
  if (words.size() < 4 || words.size() > 150 || !plain || BlamesATool(title)) return false;
  const std::string low = LowSentence(words);
  // A verb says that it happened; the noun alone may name a part of a program.
  if (std::count(low.begin(), low.end(), ' ') >= 2 && AnyPartStates(low, StatesAHang)) return true;
  return HasAnyWord(low, {"hang", "hangs", "hanging", "stuck", "freeze", "freezes", "frozen", "deadlock", "stalls"}) &&
         !IsDoubted(low) && !GoesOnEachTime(low) &&
         !HasAnyWord(low, {"detection", "detect", "watchdog", "debug", "debugging", "handler", "timeout", "free",
                           "prevention", "monitor", "test", "tests"});
}

}  // namespace tacet
