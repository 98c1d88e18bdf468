// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_lines.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/char_set.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/told/told_chinese.h"

namespace tacet {
namespace {

// "Hi all,", "Thanks!", nothing at all: no sentence, and no line of a log either.
bool IsSmallTalk(std::string_view line) {
  line = Trim(line);
  return line.size() < 20 && std::all_of(line.begin(), line.end(), [](char c) {
           return IsLetter(c) || c == ' ' || c == ',' || c == '!' || c == '.' || c == ':';
         });
}

// "  - bursts of Xid 94, then a reset": an item of a list that somebody wrote.
bool IsListedSentence(std::string_view line) {
  const std::string_view text = Trim(line);
  return (text.starts_with("- ") || text.starts_with("* ")) && IsSentence(ProseOf(line));
}

// "# 8 GPUs on one node took 4.1 s, and both nodes have HDR": a remark that somebody wrote into the log, where the log
// has no other line of that kind.
bool IsRemark(std::string_view line) {
  line = Trim(line);
  return line.starts_with("# ") && IsSentence(line.substr(2));
}

// "torchrun --nproc-per-node 8 train.py \", "    --tensor-parallel-size 2 \", "$ python train.py"
bool IsCommand(std::string_view line) {
  constexpr std::array<std::string_view, 10> kPrograms{"python", "python3",    "torchrun", "deepspeed", "accelerate",
                                                       "mpirun", "horovodrun", "srun",     "sbatch",    "vllm"};
  line = Trim(line);
  if (line.starts_with("--") || line.ends_with(" \\")) return true;
  TakeLiteral(line, "$ ");
  const std::string_view word = TakeWord(line);
  return std::find(kPrograms.begin(), kPrograms.end(), word) != kPrograms.end() && Contains(line, "--");
}

}  // namespace

// "train/loss", "and/or": one stroke between two words. A path has more of them, or dots; a name of NCCL's, as in
// "NET/Socket : GPU Direct RDMA Disabled", has capitals.
static bool JoinsTwoWords(std::string_view line, size_t at) {
  if (line[at] != '/') return false;
  size_t begin = at, end = at + 1;
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  while (begin > 0 && is_small(line[begin - 1])) --begin;
  while (end < line.size() && is_small(line[end])) ++end;
  const auto ends = [&](size_t i) {
    return i >= line.size() || std::string_view(" ,;:!?)(").find(line[i]) != std::string_view::npos ||
           (line[i] == '.' && (i + 1 == line.size() || line[i + 1] == ' '));
  };
  return begin < at && end > at + 1 && (begin == 0 || ends(begin - 1)) && ends(end);
}

bool IsSentence(std::string_view line) {
  static constexpr CharSet kMarks("[]{|=<#\\/_");
  line = Trim(line);
  if (IsChineseSentence(line)) return true;
  if (line.size() < 15 || line.size() > 2000) return false;
  // "@name this happens ..." answers somebody.
  if (!IsLetter(line[0]) && !IsDigit(line[0]) && line[0] != '*' && line[0] != '@') return false;
  const size_t most_marks = line.size() / 40;
  size_t letters = 0, blanks = 0, marks = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (IsLetter(c) || (static_cast<unsigned char>(c) & 0x80u) != 0) {
      ++letters;
    } else if (c == ' ') {
      ++blanks;
    } else if (kMarks.Holds(c)) {
      const bool of_unit = c == '/' && i + 1 < line.size() && line[i + 1] == 's';  // GB/s
      if (!of_unit && !JoinsTwoWords(line, i) && ++marks > most_marks) return false;
    }
  }
  return blanks >= 3 && letters * 100 >= line.size() * 60;
}

std::string ProseOf(std::string_view line) {
  static constexpr CharSet kCode("`=");
  line = Trim(line.substr(0, std::min<size_t>(line.size(), 2000)));
  while (!line.empty() && (line[0] == '>' || line[0] == '-' || line[0] == '*' || line[0] == ' ')) line.remove_prefix(1);
  // "## It hangs on two nodes": a heading. "#it hangs here, and then I stopped it": set apart from the log around it.
  if (const size_t marks = line.find_first_not_of('#'); marks > 0 && marks <= 6) {
    if (line.substr(marks).starts_with(' '))
      line.remove_prefix(marks + 1);
    else if (marks == 1 && IsSentence(line.substr(1)))
      line.remove_prefix(1);
  }
  if (line.size() > 3 && IsDigit(line[0]) && (line[1] == ')' || line[1] == '.') && line[2] == ' ')
    line.remove_prefix(3);
  if (kCode.FindIn(line) == std::string_view::npos && !Contains(line, "--")) return std::string(line);
  std::string out;
  bool code = false;
  while (!line.empty()) {
    if (line[0] == '`') {
      code = !code && line.find('`', 1) != std::string_view::npos;
      line.remove_prefix(1);
      continue;
    }
    if (!code && (out.empty() || out.back() == ' ')) {
      const std::string_view word = line.substr(0, std::min(line.find(' '), line.size()));
      if (word.starts_with("--") || (word.find('=') > 1 && word.find('=') < word.size() - 1)) {
        line.remove_prefix(word.size());
        continue;
      }
    }
    if (!code) out += line[0];
    line.remove_prefix(1);
  }
  return out;
}

bool IsProse(std::string_view prose) {
  const std::string_view words = Trim(prose);
  return IsSentence(words) ||
         (words.size() >= 8 && words.size() < 60 &&
          std::all_of(
              words.begin(), words.end(),
              [](char c) { return IsLetter(c) || IsDigit(c) || c == ' ' || c == ',' || c == ':' || c == '.'; }) &&
          std::count(words.begin(), words.end(), ' ') >= 2);
}

AroundTheLog::AroundTheLog(std::string_view bytes) : fenced_(Contains(bytes, "```")) {
  if (fenced_) return;
  const size_t remark = FindText(bytes, "\n#");
  const bool remarks =
      remark == std::string_view::npos || (!bytes.starts_with('#') && !Contains(bytes.substr(remark + 1), "\n#"));
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    if (IsSmallTalk(line) || IsCommand(line)) continue;
    if (IsSentence(line) || IsListedSentence(line) || (remarks && IsRemark(line))) {
      if (last_log_ == 0) top_ = reader.number();
    } else {
      last_log_ = reader.number();
    }
  }
}

bool AroundTheLog::Holds(std::string_view line, uint32_t number) {
  if (!fenced_) return number <= top_ || number > last_log_;
  if (Trim(line).starts_with("```")) inside_ = !inside_;
  return !inside_;
}

}  // namespace tacet
