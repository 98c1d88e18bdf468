// SPDX-License-Identifier: Apache-2.0
#include "rules/words/message_words.h"

#include <algorithm>
#include <cctype>
#include <variant>

#include "base/text_scan.h"

namespace tacet {
namespace {

void DropEndMarks(std::string& text) {
  while (!text.empty() && std::string_view(" .,:;").find(text.back()) != std::string_view::npos) text.pop_back();
}

// Ascend writes the time behind its code: "EE1002: 2024-09-12-04:18:33.710.902 Stream synchronize timeout"
void DropAscendTime(std::string& words) {
  constexpr size_t kStamp = 27;
  const size_t begin = words.find(": 20");
  if (begin == std::string::npos || begin > 12 || words.size() < begin + 2 + kStamp) return;
  const std::string_view stamp = std::string_view(words).substr(begin + 2, kStamp);
  if (stamp[4] == '-' && stamp[7] == '-' && stamp[10] == '-' && stamp[13] == ':' && stamp[19] == '.' &&
      stamp[23] == '.')
    words.erase(begin + 2, kStamp + (begin + 2 + kStamp < words.size() ? 1 : 0));
}

// "DataLoader worker" ends by a signal: what that looks like from outside.
std::string_view LoaderEndWords(int64_t signal) {
  switch (signal) {
    case 9: return "was killed (SIGKILL)";
    case 11: return "ended with a segmentation fault (SIGSEGV)";
    case 6: return "aborted (SIGABRT)";
    case 7: return "ended with a bus error (SIGBUS)";
    case 4: return "ended with an illegal instruction (SIGILL)";
    case 8: return "ended with a floating point exception (SIGFPE)";
    default: return "exited unexpectedly";
  }
}

}  // namespace

std::string MessageWords(std::string_view text, size_t limit) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string words(Trim(text.substr(0, end)));
  DropAscendTime(words);
  // What is left of "[2026-11-17 05:36:51,263] ERROR".
  if (words.starts_with("] ")) words.erase(0, 2);
  if (words.ends_with(':') && end < text.size()) {
    const std::string_view next = text.substr(end + 1);
    words += ' ';
    words += Trim(next.substr(0, next.find('\n')));
  }
  if (words.size() <= limit) {
    // An ellipsis of the message itself stays.
    if (!words.ends_with("...")) DropEndMarks(words);
    return words;
  }
  // At a word, unless the word is half of it: a path, a mangled name. Never inside a character of several bytes.
  size_t cut = words.rfind(' ', limit);
  if (cut == std::string::npos || cut < limit / 2) cut = limit;
  while (cut > 0 && (static_cast<unsigned char>(words[cut]) & 0xC0) == 0x80) --cut;
  words.resize(cut);
  DropEndMarks(words);
  return words + "...";
}

std::string QuotedLine(const OwnLine& line) { return "'" + MessageWords(line.text) + "'"; }

bool IsKilledLoaderWorker(const Event& event) {
  const auto* worker = std::get_if<LoaderWorkerEnd>(&event.As<Raised>().about);
  return worker && worker->signal == 9;
}

std::string LoaderWorkerWords(const Event& exception, const std::string& who) {
  const auto* told = std::get_if<LoaderWorkerEnd>(&exception.As<Raised>().about);
  const LoaderWorkerEnd worker = told ? *told : LoaderWorkerEnd{};
  const bool several = worker.pids.find(',') != std::string::npos;
  const std::string pids = worker.pids.empty() ? "" : (several ? " (pids " : " (pid ") + worker.pids + ")";
  return (several ? "data loader workers of " : "a data loader worker of ") + who + pids + " " +
         std::string(LoaderEndWords(worker.signal));
}

bool IsSameBesideAddresses(std::string_view a, std::string_view b) {
  const auto skip = [](std::string_view text, size_t at) {
    if (text.substr(at, 2) != "0x") return at;
    for (at += 2; at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at]));) ++at;
    return at;
  };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] != b[j]) return false;
    const size_t after_a = skip(a, i), after_b = skip(b, j);
    if ((after_a > i) != (after_b > j)) return false;
    i = std::max(after_a, i + 1), j = std::max(after_b, j + 1);
  }
  return i == a.size() && j == b.size();
}

}  // namespace tacet
