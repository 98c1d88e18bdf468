// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/pasted_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/layers/expected_block.h"
#include "evidence/layers/pasted_wrap.h"
#include "evidence/told/pasted_sentence.h"
#include "evidence/told/told_lines.h"

namespace tacet {
namespace {

std::vector<std::string_view> LinesOf(std::string_view bytes) {
  std::vector<std::string_view> lines;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) lines.push_back(line);
  return lines;
}

bool IsBlank(std::string_view line) { return Trim(line).empty(); }

// "> text", ">text", "> > text"; ">>> " is Python's prompt.
std::string_view WithoutQuoteMarks(std::string_view line) {
  if (line.starts_with(">>>")) return line;
  while (TakeLiteral(line, ">")) {
    TakeLiteral(line, " ");
  }
  return line;
}

// Entities that stand for marks of a log.
struct Entity {
  std::string_view name, text;
};
constexpr std::array<Entity, 10> kEntities{{{"&gt;", ">"},
                                            {"&lt;", "<"},
                                            {"&quot;", "\""},
                                            {"&#34;", "\""},
                                            {"&#x22;", "\""},
                                            {"&#39;", "'"},
                                            {"&#x27;", "'"},
                                            {"&apos;", "'"},
                                            {"&nbsp;", " "},
                                            {"&amp;", "&"}}};

constexpr std::array<std::string_view, 9> kTags{"pre", "code", "br", "p", "div", "span", "samp", "tt", "blockquote"};

// The length of "<pre>", "</code>", "<span class=x>" at the front; 0 where there is none.
size_t TagLength(std::string_view text) {
  if (!text.starts_with('<')) return 0;
  const size_t close = text.substr(0, 200).find('>');
  if (close == std::string_view::npos) return 0;
  std::string_view name = text.substr(1, close - 1);
  TakeLiteral(name, "/");
  name = name.substr(0, name.find_first_of(" /"));
  return std::find(kTags.begin(), kTags.end(), name) == kTags.end() ? 0 : close + 1;
}

// "[10.0.3.7](http://10.0.3.7/)" at the front: the words between the brackets, where the link leads to nothing else;
// `length` is that of the whole.
std::string_view LinkedWords(std::string_view text, size_t* length) {
  if (!text.starts_with('[')) return {};
  const size_t close = text.substr(0, 200).find("](http");
  if (close == std::string_view::npos || close < 2) return {};
  const std::string_view words = text.substr(1, close - 1);
  std::string_view target = text.substr(close + 6);
  TakeLiteral(target, "s");
  if (!TakeLiteral(target, "://") || !TakeLiteral(target, words)) return {};
  TakeLiteral(target, "/");
  if (!TakeLiteral(target, ")")) return {};
  *length = text.size() - target.size();
  return words;
}

bool IsLinked(std::string_view bytes) {
  size_t length = 0;
  for (size_t at = bytes.find("](http"); at != std::string_view::npos; at = bytes.find("](http", at + 1)) {
    const size_t open = bytes.substr(0, at).rfind('[');
    if (open != std::string_view::npos && !LinkedWords(bytes.substr(open), &length).empty()) return true;
  }
  return false;
}

std::string WithoutLinks(std::string_view line) {
  std::string text;
  for (size_t at = 0; at < line.size();) {
    size_t length = 1;
    const std::string_view words = LinkedWords(line.substr(at), &length);
    text += words.empty() ? line.substr(at, 1) : words;
    at += words.empty() ? 1 : length;
  }
  return text;
}

bool IsEscaped(std::string_view bytes) {
  size_t entities = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == '&') {
      for (const Entity& entity : kEntities) entities += bytes.substr(at).starts_with(entity.name);
    } else if (bytes[at] == '<') {
      const size_t length = TagLength(bytes.substr(at));
      if (length == 0) return false;  // marks as they are: nobody escaped this
      at += length - 1;
    } else if (bytes[at] == '>') {
      return false;
    }
  }
  return entities > 0;
}

std::string Unescaped(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    if (const size_t tag = TagLength(line); tag > 0) {
      line.remove_prefix(tag);
      continue;
    }
    const Entity* found = nullptr;
    if (line[0] == '&')
      for (const Entity& entity : kEntities)
        if (line.starts_with(entity.name)) found = &entity;
    if (found != nullptr) {
      text += found->text;
      line.remove_prefix(found->name.size());
    } else {
      text += line[0];
      line.remove_prefix(1);
    }
  }
  return text;
}

// Code inside of a sentence may begin on one line and end on another: "`UserWarning: ..." and "...run_backward(`".
std::string_view WithoutLoneTick(std::string_view line) {
  const size_t tick = line.find('`');
  if (tick == std::string_view::npos || line.find('`', tick + 1) != std::string_view::npos) return line;
  if (line.size() > 20 && line.find_first_not_of(' ') == tick) return line.substr(tick + 1);
  if (line.size() > 20 && tick == line.find_last_not_of(" \r") && tick >= 2 && line[tick - 1] != ' ')
    return line.substr(0, tick);
  return line;
}

// Where the words in bold begin at `at`: "**RuntimeError: bad shape**"; npos where "**" is a part of code
// ("f(**kwargs)", "2**3").
size_t EndOfBold(std::string_view line, size_t at) {
  const auto is_word = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '*' || c == '('; };
  if (line.substr(at, 2) != "**" || at + 3 >= line.size()) return std::string_view::npos;
  if (at > 0 && is_word(line[at - 1])) return std::string_view::npos;
  if (!IsLetter(line[at + 2]) && !IsDigit(line[at + 2])) return std::string_view::npos;
  const size_t close = line.find("**", at + 2);
  if (close == std::string_view::npos || line[close - 1] == ' ') return std::string_view::npos;
  return close + 2 < line.size() && is_word(line[close + 2]) ? std::string_view::npos : close;
}

bool HasBold(std::string_view line) {
  for (size_t at = line.find("**"); at != std::string_view::npos; at = line.find("**", at + 1))
    if (EndOfBold(line, at) != std::string_view::npos) return true;
  return false;
}

std::string WithoutBold(std::string_view line) {
  std::string text;
  size_t close = std::string_view::npos;
  for (size_t at = 0; at < line.size();) {
    if (at == close) {
      at += 2;
      continue;
    }
    if (const size_t end = EndOfBold(line, at); end != std::string_view::npos) {
      close = end;
      at += 2;
      continue;
    }
    text += line[at++];
  }
  return text;
}

// "| `text` |", "`text`", "**text**" and "```text"
std::string_view WithoutCell(std::string_view line) {
  std::string_view text = Trim(line);
  // A fence that somebody typed on the line itself; "```console" alone is a fence with its language.
  const bool opens = text.starts_with("```") && text.find_first_of(" :[") != std::string_view::npos;
  const bool closes = text.size() > 3 && text.ends_with("```");
  if (opens || closes) {
    if (opens) text.remove_prefix(3);
    if (closes && text.size() >= 3) text.remove_suffix(3);
    return text;
  }
  if (TakeLiteral(text, "|")) {
    text = Trim(text);
    if (text.ends_with('|')) text = Trim(text.substr(0, text.size() - 1));
  }
  if (text.size() > 4 && text.starts_with("**") && text.ends_with("**") && text[2] != '*')
    return text.substr(2, text.size() - 4);
  if (text.size() < 2 || !text.starts_with('`') || !text.ends_with('`') || text.starts_with("``"))
    return WithoutLoneTick(line);
  return text.substr(1, text.size() - 2);
}

size_t BlockIndent(std::string_view line) { return line.starts_with("    ") ? 4 : line.starts_with('\t') ? 1 : 0; }

// Runs over lines and tells what each loses at its front: blocks begin behind an empty line, with a log's line.
class BlockFinder {
 public:
  size_t Indent(std::string_view line) {
    if (IsBlank(line)) {
      after_blank_ = true;
      return 0;
    }
    const size_t indent = BlockIndent(line);
    const bool begins = after_blank_ && indent > 0 && LooksLikeLineBegin(line.substr(indent));
    inside_ = indent > 0 && (inside_ || begins);
    after_blank_ = false;
    return inside_ ? indent : 0;
  }

 private:
  bool after_blank_ = true, inside_ = false;
};

// The length of a colour code whose escape character was lost on the way, or written out: "[36m", "^[[36m",
// "\\x1b[36m", "\\u001b[0m"; 0 where there is none. A real escape is left to the readers.
size_t LostColourLength(std::string_view text) {
  size_t lead = 0;
  for (const std::string_view escape : {"^[", "\\x1b", "\\033", "\\u001b", "\\e", "\xe2\x90\x9b", "\xef\xbf\xbd"})
    if (text.starts_with(escape) && text.substr(escape.size()).starts_with('[')) lead = escape.size();
  if (text.size() <= lead || text[lead] != '[') return 0;
  const size_t end = text.find_first_not_of("0123456789;", lead + 1);
  if (end == std::string_view::npos || end == lead + 1 || end - lead > 12 || text[end] != 'm') return 0;
  return end + 1;
}

bool HasLostColours(std::string_view bytes) {
  for (const std::string_view reset : {"[0m", "[39m"})
    for (size_t at = bytes.find(reset); at != std::string_view::npos; at = bytes.find(reset, at + 1))
      if (at == 0 || bytes[at - 1] != '\x1b') return true;
  return false;
}

std::string WithoutLostColours(std::string_view line) {
  std::string text;
  for (size_t at = 0; at < line.size();) {
    const size_t length = at > 0 && line[at - 1] == '\x1b' ? 0 : LostColourLength(line.substr(at));
    if (length == 0) text += line[at++];
    at += length;
  }
  return text;
}

// "   12\ttext", "12 | text": the number of the line as an editor or cat -n shows it. "12: text" is a task of srun.
bool TakeLineNumber(std::string_view& line, int64_t* number) {
  std::string_view rest = line;
  SkipBlanks(rest);
  if (!TakeNumber(rest, number)) return false;
  if (!TakeLiteral(rest, "\t") && !TakeLiteral(rest, " | ")) return false;
  line = rest;
  return true;
}

bool IsNumbered(const std::vector<std::string_view>& lines) {
  size_t filled = 0, in_order = 0;
  int64_t before = -1;
  for (std::string_view line : lines) {
    if (IsBlank(line)) continue;
    ++filled;
    int64_t number = -2;
    if (TakeLineNumber(line, &number) && number == before + 1) ++in_order;
    before = number >= 0 ? number : before + 1;
  }
  return filled >= 4 && in_order + 1 >= filled;  // of the first nothing can be said
}

// Which lines stand in a fenced block whose lines an earlier block has as well, whatever marks of a comment or a quote
// stand before them.
std::vector<bool> FindRepeatedBlocks(const std::vector<std::string_view>& lines) {
  constexpr size_t kShortest = 40;  // what short blocks say may well be said twice
  std::vector<bool> repeated(lines.size());
  std::set<std::string> blocks;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!Trim(lines[i]).starts_with("```")) continue;
    size_t end = i + 1;
    std::string block;
    for (; end < lines.size() && !Trim(lines[end]).starts_with("```"); ++end) {
      std::string_view line = Trim(lines[end]);
      while (!line.empty() && (line[0] == '#' || line[0] == '>' || line[0] == ' ')) line.remove_prefix(1);
      if (!line.empty()) block += std::string(line) + '\n';
    }
    if (end == lines.size()) break;  // the fence is not closed
    if (block.size() >= kShortest && !blocks.insert(std::move(block)).second)
      std::fill(repeated.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                repeated.begin() + static_cast<std::ptrdiff_t>(end), true);
    i = end;
  }
  return repeated;
}

bool HasRepeatedBlock(const std::vector<std::string_view>& lines) {
  const std::vector<bool> repeated = FindRepeatedBlocks(lines);
  return std::find(repeated.begin(), repeated.end(), true) != repeated.end();
}

bool IsIndented(const std::vector<std::string_view>& lines) {
  BlockFinder blocks;
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    return blocks.Indent(line) > 0 || WithoutCell(line) != line || HasBold(line);
  });
}

}  // namespace

std::string_view DescribeUndone(Paste paste) {
  switch (paste) {
    case Paste::none: break;
    case Paste::quoted: return "the '> ' of quoted lines was removed";
    case Paste::escaped: return "HTML tags and escapes were removed";
    case Paste::indented: return "Markdown around the lines was removed";
    case Paste::coloured: return "remnants of color codes were removed";
    case Paste::numbered: return "line numbers were removed";
    case Paste::told: return "log lines were extracted from the surrounding text";
    case Paste::wrapped: return "wrapped lines were joined";
    case Paste::repeated: return "a block that was pasted twice is read once";
    case Paste::expected: return "lines that the text only expects were skipped";
    case Paste::linked: return "links that a program made of names and addresses were removed";
  }
  return "";
}

Paste FindPaste(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kMostPasted || bytes.find('\0') != std::string_view::npos) return Paste::none;
  const std::vector<std::string_view> lines = LinesOf(bytes);
  size_t filled = 0, quoted = 0;
  for (const std::string_view line : lines) {
    filled += !IsBlank(line);
    quoted += line.starts_with('>') && !line.starts_with(">>>");
  }
  if (quoted * 5 >= filled * 2 && quoted > 0) return Paste::quoted;
  if (IsEscaped(bytes)) return Paste::escaped;
  if (IsLinked(bytes)) return Paste::linked;
  if (HasExpectedBlock(lines)) return Paste::expected;
  if (HasRepeatedBlock(lines)) return Paste::repeated;
  if (HasLostColours(bytes)) return Paste::coloured;
  if (IsNumbered(lines)) return Paste::numbered;
  if (IsIndented(lines)) return Paste::indented;
  if (IsWrapped(lines)) return Paste::wrapped;
  return IsTold(lines) ? Paste::told : Paste::none;
}

std::string UndoPaste(std::string_view bytes, Paste paste) {
  const std::vector<std::string_view> lines = LinesOf(bytes);
  if (paste == Paste::wrapped) return JoinWrapped(lines);
  std::string text;
  text.reserve(bytes.size());
  BlockFinder blocks;
  const std::vector<bool> dropped = paste == Paste::repeated   ? FindRepeatedBlocks(lines)
                                    : paste == Paste::expected ? FindExpectedBlocks(lines)
                                                               : std::vector<bool>(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if ((paste == Paste::repeated || paste == Paste::expected) && !dropped[i]) text += line;
    if (paste == Paste::quoted) text += WithoutQuoteMarks(line);
    if (paste == Paste::escaped) text += Unescaped(line);
    if (paste == Paste::linked) text += WithoutLinks(line);
    if (paste == Paste::indented) text += WithoutBold(WithoutCell(line.substr(blocks.Indent(line))));
    if (paste == Paste::told) text += LineInSentence(line);
    if (paste == Paste::coloured) text += WithoutLostColours(line);
    if (paste == Paste::numbered) {
      std::string_view rest = line;
      int64_t number = 0;
      TakeLineNumber(rest, &number);
      text += rest;
    }
    if (paste == Paste::none) text += line;
    text += '\n';
  }
  if (!bytes.ends_with('\n') && !text.empty()) text.pop_back();  // the last line is cut, and still is
  return text;
}

}  // namespace tacet
