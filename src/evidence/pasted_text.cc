// SPDX-License-Identifier: Apache-2.0
#include "evidence/pasted_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kNarrowest = 60, kWidest = 250;  // of a terminal or a mail
constexpr size_t kWidestByWords = 100;

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

// "| `text` |" and "`text`"
std::string_view WithoutCell(std::string_view line) {
  std::string_view text = Trim(line);
  if (TakeLiteral(text, "|")) {
    text = Trim(text);
    if (text.ends_with('|')) text = Trim(text.substr(0, text.size() - 1));
  }
  if (text.size() < 2 || !text.starts_with('`') || !text.ends_with('`') || text.starts_with("``")) return line;
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

bool IsIndented(const std::vector<std::string_view>& lines) {
  BlockFinder blocks;
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    return blocks.Indent(line) > 0 || WithoutCell(line).data() != line.data();
  });
}

bool IsRuler(std::string_view line) { return line.find_first_not_of(line.substr(0, 1)) == std::string_view::npos; }

std::string_view FirstWord(std::string_view line) { return line.substr(0, line.find(' ')); }

// Is `next` the rest of `line`, as far as the two of them show it?
bool MayGoOn(std::string_view line, std::string_view next) {
  if (line.empty() || IsBlank(next) || IsRuler(line) || next.starts_with("  ") || next.starts_with('\t')) return false;
  // Lines of one kind begin alike: "step 10 ..." and "step 20 ...".
  if (line.size() >= 3 && next.starts_with(line.substr(0, 3))) return false;
  return !LooksLikeLineBegin(next);
}

// A terminal cuts at one width: every line that goes on has exactly that many characters.
bool GoesOnAtWidth(std::string_view line, std::string_view next, size_t width) {
  return line.size() == width && MayGoOn(line, next);
}

// A mail cuts before the word that would not fit.
bool GoesOnAtWord(std::string_view line, std::string_view next, size_t width) {
  return line.size() * 2 > width && line.size() + 1 + FirstWord(next).size() > width && MayGoOn(line, next);
}

struct Wrap {
  size_t width = 0;  // 0: not wrapped
  bool at_words = false;
};

Wrap FindWrap(const std::vector<std::string_view>& lines) {
  size_t width = 0;
  for (const std::string_view line : lines) width = std::max(width, line.size());
  if (width < kNarrowest || width > kWidest || lines.size() < 2) return {};
  size_t full = 0, joined = 0, by_word = 0, loose = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const bool at_width = GoesOnAtWidth(lines[i], lines[i + 1], width);
    full += lines[i].size() == width && !IsRuler(lines[i]);
    joined += at_width;
    if (GoesOnAtWord(lines[i], lines[i + 1], width))
      ++by_word;
    else if (!IsBlank(lines[i + 1]) && !LooksLikeLineBegin(lines[i + 1]))
      ++loose;
  }
  const bool of_a_log = std::any_of(lines.begin(), lines.end(), [](auto line) { return LooksLikeLineBegin(line); });
  if (!of_a_log) return {};
  // One line of 80 may be chance, but not where it is the usual width of a terminal.
  if (joined * 4 >= full * 3 && (joined >= 2 || (joined == 1 && width == 80))) return {width, false};
  if (width <= kWidestByWords && by_word >= 3 && loose * 9 <= by_word) return {width, true};
  return {};
}

std::string JoinWrapped(const std::vector<std::string_view>& lines) {
  const Wrap wrap = FindWrap(lines);
  std::string text;
  size_t owed = 0;  // newlines of the lines that were joined: what follows keeps its number
  for (size_t i = 0; i < lines.size(); ++i) {
    text += lines[i];
    const bool more = i + 1 < lines.size();
    const bool goes_on = more && (wrap.at_words ? GoesOnAtWord(lines[i], lines[i + 1], wrap.width)
                                                : GoesOnAtWidth(lines[i], lines[i + 1], wrap.width));
    if (goes_on) {
      if (wrap.at_words && !lines[i].ends_with(' ')) text += ' ';
      ++owed;
      continue;
    }
    text.append(owed + 1, '\n');
    owed = 0;
  }
  return text;
}

bool EndsInError(std::string_view word) {
  return word.ends_with("Error") || word.ends_with("Exception") || word.ends_with("Interrupt");
}

}  // namespace

std::string_view Name(Paste paste) {
  switch (paste) {
    case Paste::none: return "none";
    case Paste::quoted: return "a quotation";
    case Paste::escaped: return "HTML";
    case Paste::indented: return "Markdown";
    case Paste::wrapped: return "lines that were cut at one width";
  }
  return "";
}

bool LooksLikeLineBegin(std::string_view line) {
  if (line.size() < 3) return false;
  const std::string_view head = line.substr(0, 200);
  const char c = line[0];
  const auto digit = [](char d) { return d >= '0' && d <= '9'; };
  if (c == '[' || c == '(' || c == '{' || c == '<') {
    return line.starts_with("[rank") || line.starts_with("[pod/") || line.starts_with("[20") || digit(line[1]) ||
           (c == '[' && (line[1] == ' ' || ((line[1] == 'E' || line[1] == 'W' || line[1] == 'I' || line[1] == 'F') &&
                                            (line[2] == ' ' || digit(line[2]))))) ||
           line.starts_with("[default") || line.starts_with("[trainer") || Contains(head, "pid=") || c == '{';
  }
  if (Contains(head, " NCCL INFO ") || Contains(head, " NCCL WARN ")) return true;
  for (const std::string_view begin : {"  File \"",
                                       "Traceback (most recent",
                                       "NVRM: ",
                                       "srun: ",
                                       "slurmstepd",
                                       "terminate called",
                                       "WARNING",
                                       "ERROR",
                                       "INFO",
                                       "NCCL version",
                                       "RCCL version",
                                       "frame #",
                                       "Last error:",
                                       "ncclRemote",
                                       "ncclSystem",
                                       "ncclInternal",
                                       "ncclInvalid",
                                       "ncclUnhandled",
                                       "Exception raised from",
                                       "Memory cgroup out",
                                       "Out of memory:",
                                       "====",
                                       "----"})
    if (line.starts_with(begin)) return true;
  if (line.size() > 8 && line.starts_with("20") && line[4] == '-' && line[7] == '-') return true;
  if ((c == 'E' || c == 'W' || c == 'I' || c == 'F') && line.size() > 6 && digit(line[1]) && digit(line[4]) &&
      line[5] == ' ')
    return true;
  const size_t colon = head.find(':');
  return colon != std::string_view::npos && EndsInError(line.substr(0, colon)) &&
         line.substr(0, colon).find(' ') == std::string_view::npos;
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
  if (IsIndented(lines)) return Paste::indented;
  return FindWrap(lines).width > 0 ? Paste::wrapped : Paste::none;
}

std::string UndoPaste(std::string_view bytes, Paste paste) {
  const std::vector<std::string_view> lines = LinesOf(bytes);
  if (paste == Paste::wrapped) return JoinWrapped(lines);
  std::string text;
  text.reserve(bytes.size());
  BlockFinder blocks;
  for (const std::string_view line : lines) {
    if (paste == Paste::quoted) text += WithoutQuoteMarks(line);
    if (paste == Paste::escaped) text += Unescaped(line);
    if (paste == Paste::indented) text += WithoutCell(line.substr(blocks.Indent(line)));
    if (paste == Paste::none) text += line;
    text += '\n';
  }
  if (!bytes.ends_with('\n') && !text.empty()) text.pop_back();  // the last line is cut, and still is
  return text;
}

}  // namespace tacet
