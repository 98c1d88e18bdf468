// SPDX-License-Identifier: Apache-2.0
// What shells say of the processes that they started.
#include <array>
#include <string>

#include "base/signal_name.h"
#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"

namespace tacet {
namespace {

struct NamedEnd {
  std::string_view words;
  int signal;
};
// As zsh prints them.
constexpr std::array<NamedEnd, 6> kSmallWords{{{"killed", 9},
                                               {"segmentation fault", 11},
                                               {"bus error", 7},
                                               {"abort", 6},
                                               {"floating point exception", 8},
                                               {"illegal hardware instruction", 4}}};

// "run.sh: line 12: 12345 " before the words: its pid.
bool TakeScriptsHead(std::string_view& text, int64_t* pid) {
  const auto place = After(text, ": line ");
  if (!place) return false;
  std::string_view rest = *place;
  int64_t number = 0;
  if (!TakeNumber(rest, &number) || !TakeLiteral(rest, ":")) return false;
  SkipBlanks(rest);
  if (!TakeNumber(rest, pid)) return false;
  text = Trim(rest);
  return true;
}

// "[1]    75076 ", "[2]  + 30412 ", "[1]+  ", "zsh: " before the words, which a command follows.
bool TakeJobsHead(std::string_view& text, int64_t* pid) {
  std::string_view rest = text;
  int64_t job = 0;
  if (TakeLiteral(rest, "zsh: ")) {
    text = Trim(rest);
    return true;
  }
  if (!TakeLiteral(rest, "[") || !TakeNumber(rest, &job) || job <= 0 || job > 999 || !TakeLiteral(rest, "]"))
    return false;
  for (int i = 0; i < 2; ++i) {
    SkipBlanks(rest);
    if (!TakeLiteral(rest, "+")) TakeLiteral(rest, "-");
  }
  SkipBlanks(rest);
  if (!rest.empty() && IsDigit(rest[0])) TakeNumber(rest, pid);
  text = Trim(rest);
  return true;
}

}  // namespace

// Killed
// Segmentation fault (core dumped)
// /opt/run.sh: line 12: 12345 Killed                  python train.py
// [1]+  Killed                  nohup python train.py > out.log 2>&1
// [1]    75076 killed     python main.py
// zsh: segmentation fault (core dumped)  torchrun --nproc_per_node 2 train.py
std::optional<ShellNotice> FindShellNotice(std::string_view text) {
  text = Trim(text);
  ShellNotice notice;
  const bool of_script = TakeScriptsHead(text, &notice.pid);
  const bool of_job = !of_script && TakeJobsHead(text, &notice.pid);
  const auto ends = [&](std::string_view words) {
    if (words.empty() || !text.starts_with(words)) return false;
    std::string_view behind = text.substr(words.size());
    TakeLiteral(behind, " (core dumped)");
    // A command stands behind two blanks or more; where nothing stood before the words they are alone.
    return behind.empty() || (of_script || of_job ? behind.starts_with("  ") : false);
  };
  for (const SignalNames& one : AllSignals())
    if (one.number >= 4 && one.number != 13 && ends(one.shell)) {
      notice.signal = one.number;
      return notice;
    }
  for (const NamedEnd& one : kSmallWords)
    if (of_job && ends(one.words)) {
      notice.signal = one.signal;
      return notice;
    }
  return std::nullopt;
}

}  // namespace tacet
