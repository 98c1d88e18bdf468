// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/pasted_wrap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kNarrowest = 60, kWidest = 250;  // of a terminal or a mail
constexpr size_t kWidestByWords = 100;

bool IsEmptyLine(std::string_view line) { return Trim(line).empty(); }

bool IsRuler(std::string_view line) { return line.find_first_not_of(line.substr(0, 1)) == std::string_view::npos; }

std::string_view FirstWord(std::string_view line) { return line.substr(0, line.find(' ')); }

// Around a block of code in Markdown: nothing goes on over it.
bool IsFence(std::string_view line) { return line.starts_with("```") || line.starts_with("~~~"); }

// Is `next` the rest of `line`, as far as the two of them show it?
bool MayGoOn(std::string_view line, std::string_view next) {
  if (line.empty() || IsEmptyLine(next) || IsRuler(line) || next.starts_with("  ") || next.starts_with('\t'))
    return false;
  // Lines of one kind begin alike: "step 10 ..." and "step 20 ...".
  if (line.size() >= 3 && next.starts_with(line.substr(0, 3))) return false;
  return !LooksLikeLineBegin(next) && !IsFence(line) && !IsFence(next);
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

// The widest line, unless many more that go on have one and the same smaller width: whoever pasted may have put a word
// or a mark before the first line.
size_t UsualWidth(const std::vector<std::string_view>& lines) {
  size_t widest = 0;
  std::map<size_t, size_t> going_on;
  for (size_t i = 0; i < lines.size(); ++i) {
    widest = std::max(widest, lines[i].size());
    if (i + 1 < lines.size() && lines[i].size() >= kNarrowest && MayGoOn(lines[i], lines[i + 1]))
      ++going_on[lines[i].size()];
  }
  size_t width = widest;
  for (const auto& [size, count] : going_on)
    if (count >= 3 && count > 3 * going_on[widest]) width = size;
  const auto longer = std::count_if(lines.begin(), lines.end(), [&](auto line) { return line.size() > width; });
  return longer * 4 <= static_cast<int64_t>(going_on[width]) ? width : widest;
}

Wrap FindWrap(const std::vector<std::string_view>& lines) {
  const size_t width = UsualWidth(lines);
  if (width < kNarrowest || width > kWidest || lines.size() < 2) return {};
  // The same line again (a frame that every rank prints) is as wide as before: it tells nothing more.
  std::set<std::string_view> full_lines, joined_lines;
  size_t by_word = 0, loose = 0;
  bool before_blank = false;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const bool at_width = GoesOnAtWidth(lines[i], lines[i + 1], width);
    if (lines[i].size() == width && !IsRuler(lines[i])) full_lines.insert(lines[i]);
    if (at_width) joined_lines.insert(lines[i]);
    before_blank = before_blank || (at_width && lines[i + 1].starts_with(' '));
    if (GoesOnAtWord(lines[i], lines[i + 1], width))
      ++by_word;
    else if (!IsEmptyLine(lines[i + 1]) && !LooksLikeLineBegin(lines[i + 1]) && !IsFence(lines[i]) &&
             !IsFence(lines[i + 1]))
      ++loose;
  }
  const size_t full = full_lines.size(), joined = joined_lines.size();
  const bool of_a_log = std::any_of(lines.begin(), lines.end(), [](auto line) { return LooksLikeLineBegin(line); });
  if (!of_a_log) return {};
  // A terminal cuts inside words and before blanks; a mail does neither, and its lines differ in length.
  const bool by_words = width <= kWidestByWords && by_word >= 3 && loose * 9 <= by_word && !before_blank;
  if (by_words && by_word > joined) return {width, true};
  // One line of 80 may be chance, but not where it is the usual width of a terminal.
  if (joined * 4 >= full * 3 && (joined >= 2 || (joined == 1 && width == 80))) return {width, false};
  if (by_words) return {width, true};
  return {};
}

// How each line is wrapped. Where the text as a whole is not, blocks of code in it may be: whoever writes around them
// wraps nothing, or otherwise.
std::vector<Wrap> FindWraps(const std::vector<std::string_view>& lines) {
  const Wrap whole = FindWrap(lines);
  std::vector<Wrap> wraps(lines.size(), whole);
  if (whole.width > 0) return wraps;
  for (size_t open = 0; open < lines.size(); ++open) {
    if (!IsFence(lines[open])) continue;
    const auto from = lines.begin() + static_cast<std::ptrdiff_t>(open) + 1;
    const auto to = std::find_if(from, lines.end(), IsFence);
    const Wrap wrap = FindWrap(std::vector<std::string_view>(from, to));
    const auto end = static_cast<size_t>(to - lines.begin());
    std::fill(wraps.begin() + static_cast<std::ptrdiff_t>(open) + 1, wraps.begin() + (to - lines.begin()), wrap);
    open = end;
  }
  return wraps;
}

bool EndsInError(std::string_view word) {
  return word.ends_with("Error") || word.ends_with("Exception") || word.ends_with("Interrupt");
}

// "[rank3]: text"
std::string_view WithoutRankLabel(std::string_view line) {
  if (!line.starts_with("[rank")) return Trim(line);
  const size_t end = line.find("]:");
  return Trim(end == std::string_view::npos ? line : line.substr(end + 2));
}

// The last operation that the line describes is not closed: "CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[20,"
bool EndsInsideWork(std::string_view line) {
  constexpr size_t kLongestMessage = 4000;
  if (!ContainsAny(line, {"FingerPrint(", "CL("})) return false;  // most lines; to look from the end is slow
  size_t begin = std::string_view::npos;
  for (const std::string_view open : {"CollectiveFingerPrint(", "CL(SeqNum=", "CL(OpType="})
    if (const size_t at = line.rfind(open);
        at != std::string_view::npos && (begin == std::string_view::npos || at > begin))
      begin = at;
  if (begin == std::string_view::npos || line.size() > kLongestMessage) return false;
  const std::string_view inside = line.substr(begin);
  return std::count(inside.begin(), inside.end(), '(') > std::count(inside.begin(), inside.end(), ')');
}

// PyTorch's messages that have one known middle: whatever width a page has, one that ends there goes on.
//   [Rank 14] Watchdog caught collective operation timeout:
//   WorkNCCL(SeqNum=2070, OpType=REDUCE, ...
//   ... Timeout(ms)=600000)
//   ran for 600888 milliseconds before timing out.
//   ... Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, ...),
//   but Rank 1 is running collective: CollectiveFingerPrint(...
bool GoesOnInMessage(std::string_view line, std::string_view next) {
  line = Trim(line);
  if (EndsInsideWork(line)) return !IsEmptyLine(next) && !LooksLikeLineBegin(next) && !IsFence(next);
  next = WithoutRankLabel(next);
  if (line.ends_with("timeout) detected")) return next.starts_with("by watchdog at work");
  if (line.ends_with("] Watchdog caught")) return next.starts_with("collective operation timeout");
  if (next.starts_with("ran for "))
    return Contains(line.substr(line.size() - std::min<size_t>(line.size(), 24)), "Timeout(ms)=");
  if (line.ends_with("collective operation timeout:")) return next.starts_with("Work") && Contains(next, "CL(");
  if (line.ends_with("is running collective:")) return next.starts_with("Collective") || next.starts_with("Op");
  return (next.starts_with("but Rank ") || next.starts_with(", but Rank ")) && Contains(line, "is running collective:");
}

// How many lines further the rest of this one stands, perhaps behind an empty line; 0 where it has none.
size_t LinesToRest(std::string_view line, const std::vector<std::string_view>& lines, size_t at) {
  for (const size_t ahead : {size_t{1}, size_t{2}}) {
    if (at + ahead >= lines.size()) return 0;
    if (GoesOnInMessage(line, lines[at + ahead])) return ahead;
    if (!IsEmptyLine(lines[at + ahead])) return 0;
  }
  return 0;
}

bool HasTornMessage(const std::vector<std::string_view>& lines) {
  for (size_t i = 0; i + 1 < lines.size(); ++i)
    if (LinesToRest(lines[i], lines, i) > 0) return true;
  return false;
}

}  // namespace

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

// A terminal that keeps its whole screen (tmux, screen) fills every line with blanks: they are no part of what was
// printed there. One blank may be: the line was cut before it.
static std::vector<std::string_view> WithoutPadding(const std::vector<std::string_view>& lines) {
  std::vector<std::string_view> bare = lines;
  for (std::string_view& line : bare)
    if (line.ends_with("  ")) line = line.substr(0, line.find_last_not_of(' ') + 1);
  return bare;
}

bool IsWrapped(const std::vector<std::string_view>& padded) {
  const std::vector<std::string_view> lines = WithoutPadding(padded);
  const std::vector<Wrap> wraps = FindWraps(lines);
  return std::any_of(wraps.begin(), wraps.end(), [](const Wrap& wrap) { return wrap.width > 0; }) ||
         HasTornMessage(lines);
}

std::string JoinWrapped(const std::vector<std::string_view>& padded) {
  const std::vector<std::string_view> lines = WithoutPadding(padded);
  const std::vector<Wrap> wraps = FindWraps(lines);
  std::string text, joined;  // `joined`: the line so far, which the rest of a message may follow
  size_t owed = 0;           // newlines of the lines that were joined: what follows keeps its number
  for (size_t i = 0; i < lines.size(); ++i) {
    const Wrap& wrap = wraps[i];
    const bool by_width = wrap.width > 0;
    joined += joined.empty() || by_width ? lines[i] : WithoutRankLabel(lines[i]);
    const bool more = i + 1 < lines.size();
    if (by_width && more &&
        (wrap.at_words ? GoesOnAtWord(lines[i], lines[i + 1], wrap.width)
                       : GoesOnAtWidth(lines[i], lines[i + 1], wrap.width))) {
      if (wrap.at_words && !lines[i].ends_with(' ')) joined += ' ';
      ++owed;
      continue;
    }
    if (const size_t ahead = by_width ? 0 : LinesToRest(joined, lines, i); ahead > 0) {
      if (!joined.ends_with(' ')) joined += ' ';
      owed += ahead;
      i += ahead - 1;
      continue;
    }
    text += joined;
    joined.clear();
    text.append(owed + 1, '\n');
    owed = 0;
  }
  return text;
}

}  // namespace tacet
